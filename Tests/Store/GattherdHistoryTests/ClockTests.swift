import CSQLite
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdHistory

/// A machine with a scripted error of the wall clock; the true time is ``epoch`` plus the uptime.
final class Machine: Sendable {
    static let epoch = Fixture.epoch.microseconds
    private static let second: Int64 = 1_000_000

    private struct State {
        /// The time since the first start of the machine.
        var passed: Int64 = 0
        /// That of the last one.
        var started: Int64 = 0
        var error: Int64 = 0
        var isSynchronised = false
        var boot = 1
    }

    private let state = Locked(State())

    /// - Parameter error: The seconds that the wall clock is ahead.
    init(error: Int64) {
        state.withLock { $0.error = error * Self.second }
    }

    var clock: GatewayClock {
        GatewayClock(
            now: { [state] in Timestamp(microseconds: state.withLock { Self.epoch + $0.passed + $0.error }) },
            uptime: { [state] in .microseconds(state.withLock { $0.passed - $0.started }) },
            isSynchronised: { [state] in state.withLock { $0.isSynchronised } },
            boot: "boot \(state.withLock { $0.boot })"
        )
    }

    var now: Timestamp { clock.now() }
    /// The true wall clock time.
    var truth: Int64 { state.withLock { Self.epoch + $0.passed } }

    func pass(_ seconds: Int64) { state.withLock { $0.passed += seconds * Self.second } }
    /// Sets the wall clock.
    func step(toError seconds: Int64) { state.withLock { $0.error = seconds * Self.second } }
    /// Sets the clock to the true time, synchronised by NTP.
    func synchronise() {
        synchronise(toError: 0)
    }
    /// Sets the clock to a wrong time, synchronised by a false NTP server.
    func synchronise(toError seconds: Int64) {
        state.withLock { ($0.error, $0.isSynchronised) = (seconds * Self.second, true) }
    }

    /// Off and on again; the time off counts as well.
    func restart(error: Int64) {
        state.withLock {
            ($0.boot, $0.error, $0.isSynchronised) = ($0.boot + 1, error * Self.second, false)
            $0.started = $0.passed
        }
    }
}

@Suite(.timeLimit(.minutes(3)))
struct ClockTests {
    private static let day: Int64 = 86_400
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Opens the file as a new process would after the one that had `old` open.
    private func open(_ machine: Machine, after old: HistoryFile? = nil) throws(StoreFault) -> HistoryFile {
        try HistoryFile(
            path: folder.database,
            consumers: .one,
            carriedOver: old.map { HistoryFile.CarriedOver(lock: $0.lock) },
            clock: machine.clock,
            log: .silent
        )
    }

    /// A reading a second; its value is the time that it should have.
    private func append(_ count: Int, to file: HistoryFile, _ machine: Machine) throws(StoreFault) {
        for start in stride(from: 0, to: count, by: 25) {
            var batch = ReadingBatch()
            for _ in start..<min(start + 25, count) {
                batch.add(Fixture.plain(), at: machine.now, (0, .integer(machine.truth)))
                machine.pass(1)
            }
            try file.append(batch)
        }
    }

    private func finishUpkeep(_ file: HistoryFile) throws(StoreFault) {
        while file.isUpkeepDue { try file.upkeep() }
    }

    private func count(_ sql: String) throws(StoreFault) -> Int64 {
        let connection = try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READONLY)
        return try connection.integer("SELECT count(*) FROM (\(sql))")
    }

    /// The samples with a wrong time.
    private func wrong() throws(StoreFault) -> Int64 {
        try count("SELECT 1 FROM history WHERE ts <> value")
    }

    /// Expects `seq` to follow the order of arrival, and the summaries to equal the samples.
    private func expectOrder(_ location: SourceLocation = #_sourceLocation) throws {
        let before = "SELECT value, lag(value) OVER (ORDER BY seq) AS before FROM history"
        #expect(try count("SELECT 1 FROM (\(before)) WHERE value < before") == 0, sourceLocation: location)
        try expectSummaries(location)
    }

    /// Expects the summaries to equal the samples.
    private func expectSummaries(_ location: SourceLocation = #_sourceLocation) throws {
        for (view, step) in [("history_minutes", 60_000_000), ("history_hours", 3_600_000_000)] {
            let summed = "SELECT ts, n, min, max FROM \(view)"
            let counted = """
                SELECT ts / \(step) * \(step) AS start, count(*), min(value), max(value) FROM history GROUP BY start
                """
            #expect(try count("\(summed) EXCEPT \(counted)") == 0, sourceLocation: location)
            #expect(try count("\(counted) EXCEPT \(summed)") == 0, sourceLocation: location)
        }
        #expect(try HistoryReader(path: folder.database).check().isEmpty, sourceLocation: location)
    }

    /// Records that are `ages` days old by the gateway's clock.
    private func appendRecords(_ ages: Int64..., to file: HistoryFile, _ machine: Machine) throws(StoreFault) {
        var batch = ReadingBatch()
        for age in ages.map({ $0 * Self.day * 1_000_000 }) {
            let time = Timestamp(microseconds: machine.now.microseconds - age)
            batch.add(Fixture.plain(), at: time, (0, .integer(machine.truth - age)))
            batch.readings[batch.readings.count - 1].isPast = true
        }
        try file.append(batch)
    }

    @Test func `a cursor of stored records has the correction of the clock by which it was written`() throws {
        let machine = Machine(error: -Self.day)
        let file = try open(machine)
        machine.pass(60)
        var batch = ReadingBatch()
        batch.add(Fixture.plain(), at: machine.now, (0, .integer(1)))
        let key = RecordCursor.Key(device: "meter", profile: "glucose", stream: "glucose")
        batch.cursors[key] = RecordCursor(key: key, address: "A", number: 1, time: machine.now, state: "s")
        try file.append(batch)
        #expect(try file.recordCursors().map(\.correction) == [0])
        machine.pass(60)
        machine.synchronise()
        try append(1, to: file, machine)
        #expect(try file.recordCursors().map(\.correction) == [Self.day * 1_000_000])
        try finishUpkeep(file)
        #expect(try file.recordCursors().map(\.correction) == [Self.day * 1_000_000])
        #expect(try file.recordCursors().first?.time == machine.now.advanced(by: .seconds(-61)))
        try file.append(batch)
        #expect(try file.recordCursors().map(\.correction) == [0])
    }

    @Test(arguments: [false, true])
    func `records and their cursor are corrected again if the first synchronisation was wrong`(
        isRestarted: Bool
    ) throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine)
        try run(file, machine, minutes: 3)
        try file.close()
        machine.restart(error: -Self.day)
        file = try open(machine, after: file)
        let key = RecordCursor.Key(device: "meter", profile: "glucose", stream: "glucose")
        var batch = ReadingBatch.plain([.integer(machine.truth)], at: machine.now)
        batch.cursors[key] = RecordCursor(key: key, address: "A", number: 1, time: machine.now, state: "s")
        try file.append(batch)
        try appendRecords(400, 40, 3, to: file, machine)
        machine.pass(60)
        machine.synchronise(toError: 400 * Self.day)
        try append(1, to: file, machine)
        #expect(try file.recordCursors().map(\.correction) == [401 * Self.day * 1_000_000])
        try finishUpkeep(file)
        #expect(try file.recordCursors().map(\.correction) == [401 * Self.day * 1_000_000])
        let corrected = machine.truth
        if isRestarted {
            try file.close()
            file = try open(machine, after: file)
            try append(1, to: file, machine)
        }
        machine.synchronise()
        try append(1, to: file, machine)
        #expect(try file.recordCursors().map(\.correction) == [Self.day * 1_000_000])
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        try expectSummaries()
        #expect(try file.recordCursors().map(\.correction) == [Self.day * 1_000_000])
        #expect(try file.recordCursors().first?.time?.microseconds == corrected - 61_000_000)
    }

    @Test func `a cursor is corrected that was written after a step to a wrong time`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine)
        try run(file, machine, minutes: 3)
        try file.close()
        machine.restart(error: 200 * Self.day)
        file = try open(machine, after: file)
        try append(1, to: file, machine)
        machine.step(toError: 400 * Self.day)
        try append(1, to: file, machine)
        let key = RecordCursor.Key(device: "meter", profile: "glucose", stream: "glucose")
        var batch = ReadingBatch.plain([.integer(machine.truth)], at: machine.now)
        batch.cursors[key] = RecordCursor(key: key, address: "A", number: 1, time: machine.now, state: "s")
        try file.append(batch)
        machine.synchronise(toError: 400 * Self.day)
        try append(1, to: file, machine)
        #expect(try file.recordCursors().map(\.correction) == [0])
        machine.synchronise()
        try append(1, to: file, machine)
        #expect(try file.recordCursors().map(\.correction) == [-400 * Self.day * 1_000_000])
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        #expect(try file.recordCursors().map(\.correction) == [-400 * Self.day * 1_000_000])
    }

    @Test(arguments: [-20_000 * day, -day, 2, 100 * day])
    func `records from before the machine's start are corrected, and delivered from the file`(error: Int64) throws {
        let machine = Machine(error: error)
        let file = try open(machine)
        machine.pass(3600)
        try appendRecords(400, 40, 3, 1, to: file, machine)
        try append(25, to: file, machine)
        machine.synchronise()
        try append(25, to: file, machine)
        try finishUpkeep(file)
        try appendRecords(900, to: file, machine)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        try expectSummaries()
        #expect(try count("SELECT 1 FROM series WHERE first_ts = (SELECT min(value) FROM history)") == 1)
        // Another process has nothing in memory.
        let readings = try open(machine, after: file).entries(after: 0, limit: 100, for: "mqtt").readings
        #expect(readings.count == 55)
        #expect(readings.allSatisfy { [.integer($0.time.microseconds)] == $0.samples.map(\.value) })
    }

    @Test(arguments: [-1000, 1000])
    func `the correction of old records passes over the time between them`(error: Int64) throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine)
        var batch = ReadingBatch()
        for _ in 0..<(3 * 24 * 60) {
            batch.add(Fixture.plain(), at: machine.now, (0, .integer(machine.truth)))
            machine.pass(60)
        }
        try file.append(batch)
        try finishUpkeep(file)
        try file.close()
        machine.restart(error: error)
        file = try open(machine, after: file)
        try appendRecords(3, 2, 1, to: file, machine)
        machine.pass(60)
        machine.synchronise()
        try append(1, to: file, machine)
        var steps = 0
        while file.clock.currentShift != nil {
            try file.upkeep()
            steps += 1
        }
        #expect(steps < 120)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        try expectSummaries()
    }

    @Test func `a corrected record behind many samples of its hour is found`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine)
        let start = machine.now
        for part in 0..<66 {
            var batch = ReadingBatch()
            for number in 0..<1000 {
                let time = start.advanced(by: .milliseconds(part * 1000 + number))
                batch.add(Fixture.plain(), at: time, (0, .integer(time.microseconds)))
            }
            try file.append(batch)
        }
        machine.pass(1800 + Self.day)
        try append(1, to: file, machine)
        try finishUpkeep(file)
        try file.close()
        machine.restart(error: 5000)
        file = try open(machine, after: file)
        try appendRecords(1, to: file, machine)
        machine.pass(60)
        machine.synchronise()
        try append(1, to: file, machine)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        try expectSummaries()
    }

    /// The search of the whole hour would take 2.6 million instructions.
    @Test func `the search for corrected records in an hour of many samples is limited`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine)
        try append(1, to: file, machine)
        machine.pass(1800 + Self.day)
        try append(1, to: file, machine)
        try finishUpkeep(file)
        try file.connection.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
            INSERT INTO sample SELECT ts / 3600000000 * 3600000000 + 1800000000 + i, seq, 0, series, 0
            FROM n, (SELECT * FROM sample ORDER BY ts LIMIT 1)
            """
        )
        try file.close()
        machine.restart(error: 5000)
        file = try open(machine, after: file)
        try appendRecords(1, to: file, machine)
        machine.pass(60)
        machine.synchronise()
        try append(1, to: file, machine)
        while let shift = file.clock.currentShift, shift.phase != .newMinutes { try file.upkeep() }
        #expect(file.clock.currentShift != nil)
        let thousands = try thousandsOfInstructions(of: file.connection) { try file.upkeep() }
        #expect(thousands > 500 && thousands < 2000)
    }

    /// Returns the number of SQLite's instructions that `body` executes, in thousands.
    private func thousandsOfInstructions(of connection: SQLiteConnection, _ body: () throws -> Void) throws -> Int {
        var count = 0
        try unsafe withUnsafeMutablePointer(to: &count) { pointer in
            unsafe sqlite3_progress_handler(
                connection.raw,
                1000,
                { context in
                    unsafe context?.assumingMemoryBound(to: Int.self).pointee += 1
                    return 0
                },
                pointer
            )
            defer { unsafe sqlite3_progress_handler(connection.raw, 0, nil, nil) }
            try body()
        }
        return count
    }

    @Test(
        arguments: [-20_000 * day, -day, -90, -2, 2, 90, day, 20_000 * day]
    )
    func `readings from before the first synchronisation are corrected`(error: Int64) throws {
        let machine = Machine(error: error)
        let file = try open(machine)
        try append(200, to: file, machine)
        try finishUpkeep(file)
        machine.synchronise()
        try append(200, to: file, machine)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        try expectOrder()
        #expect(try count("SELECT 1 FROM latest WHERE seq = 400 AND ts = value") == 1)
        #expect(file.clock.drainCompleted().map(\.shift) == [.seconds(-error)])
        #expect(!file.clock.isTrusted && file.clock.doubt == nil)
        try run(file, machine, minutes: 63)
        #expect(file.clock.isTrusted && file.clock.isSet)
        #expect(try wrong() == 0)
        #expect(try count("SELECT 1 FROM clock") == 0)
    }

    @Test func `readings in memory are not delivered with the time that is being corrected`() throws {
        let machine = Machine(error: -Self.day)
        let (tail, lock) = (JournalTail(consumers: ["mqtt"]), try FileLock(database: folder.database))
        let file = try HistoryFile(
            path: folder.database,
            consumers: .one,
            carriedOver: HistoryFile.CarriedOver(lock: lock, tail: tail),
            clock: machine.clock,
            log: .silent
        )
        try append(20, to: file, machine)
        machine.synchronise()
        try append(20, to: file, machine)
        let consumer = JournalConsumerOptions(name: "mqtt")
        #expect(tail.entries(after: 0, limit: 40, for: consumer) == nil)
        try finishUpkeep(file)
        #expect(tail.entries(after: 0, limit: 40, for: consumer) == nil)
        let readings = try file.entries(after: 0, limit: 100, for: "mqtt").readings
        #expect(readings.count == 40)
        #expect(readings.allSatisfy { [.integer($0.time.microseconds)] == $0.samples.map(\.value) })
    }

    @Test func `undelivered readings, events and rejects are corrected too`() async throws {
        let machine = Machine(error: -Self.day)
        let file = try open(machine)
        let reject = { Reject(time: machine.now, device: "box", characteristic: "2a37", payload: [1], reason: "short") }
        let event = { LifecycleEvent(time: machine.now, device: "box", kind: "link", detail: "{}") }
        var batch = ReadingBatch.plain([.integer(1)], at: machine.now)
        batch.rejects = [reject()]
        try file.record([event()])
        try file.append(batch)
        try file.record(DeviceRecord(device: "box", address: "a"), seenAt: machine.now)
        machine.synchronise()
        batch = .plain([.integer(2)], at: machine.now)
        batch.rejects = [reject()]
        try file.append(batch)
        try file.record([event()])
        try finishUpkeep(file)
        let time = Fixture.epoch.rfc3339
        for view in ["history", "events", "rejects"] {
            #expect(try await folder.shell.rows("SELECT time FROM \(view)") == [[time], [time]], "\(view)")
        }
        #expect(try await folder.shell.rows("SELECT first_seen FROM devices") == [[time]])
        let payloads = try file.readings(after: 0, limit: 9).map(\.json)
        let expected = [(3, 1), (5, 2)].map { #"{"seq":\#($0),"ts":"\#(time)","source":"notify","value":\#($1)}"# }
        #expect(payloads == expected)
        #expect(
            try await folder.shell.rows("SELECT DISTINCT ts, ts_last FROM outbox")
                == [["\(Fixture.epoch.microseconds)", "\(Fixture.epoch.microseconds)"]]
        )
    }

    @Test func `a consumer of everything gets the times as they were recorded, then the correction`() throws {
        let machine = Machine(error: -Self.day)
        let copy = JournalConsumerOptions(name: "copy", content: .everything)
        let file = try HistoryFile(
            path: folder.database,
            consumers: [JournalConsumerOptions(name: "mqtt"), copy],
            clock: machine.clock,
            log: .silent
        )
        let event = LifecycleEvent(time: machine.now, device: "box", kind: "link", detail: "{}")
        let reject = Reject(time: machine.now, device: "box", characteristic: "2a37", payload: [1], reason: "short")
        try file.record([event])
        var batch = ReadingBatch.plain([.integer(1)], at: machine.now)
        batch.rejects = [reject]
        try file.append(batch)
        let before = try file.entries(after: 0, limit: 9, for: "copy").entries
        machine.synchronise()
        try file.append(.plain([.integer(2)], at: machine.now))
        #expect(throws: StoreFault.self) { try file.entries(after: 0, limit: 9, for: "copy") }
        try finishUpkeep(file)
        let after = try file.entries(after: 0, limit: 9, for: "copy").entries
        #expect(Array(after.prefix(3)) == before)
        let correction = ClockCorrection(after: 0, through: 3, shift: .seconds(Self.day))
        #expect(after.last == .correction(correction, seq: 5))
        #expect(after.count == 5)
        let times = try file.entries(after: 0, limit: 9, for: "mqtt").readings.map(\.time)
        #expect(times == [Fixture.epoch, Fixture.epoch])
    }

    @Test func `a correction among skipped entries is delivered, as it concerns entries from before`() throws {
        let machine = Machine(error: -Self.day)
        let copy = JournalConsumerOptions(name: "copy", content: .everything, longestBacklog: 10)
        let file = try HistoryFile(path: folder.database, consumers: [copy], clock: machine.clock, log: .silent)
        try file.append(.plain([.integer(1)], at: machine.now))
        machine.synchronise()
        try file.append(.plain([.integer(2)], at: machine.now))
        try finishUpkeep(file)
        try file.append(.plain(integers: 3...100))
        try finishUpkeep(file)
        let reason = "more than the longest backlog"
        let first = try file.entries(after: 0, limit: 9, for: "copy")
        #expect(first == JournalBatch(missing: JournalGap(after: 0, through: 2, reason: reason)))
        let correction = ClockCorrection(after: 0, through: 1, shift: .seconds(Self.day))
        let second = try file.entries(after: 2, limit: 9, for: "copy")
        #expect(second == JournalBatch([.correction(correction, seq: 3)], through: 3))
        let third = try file.entries(after: 3, limit: 9, for: "copy")
        #expect(third == JournalBatch(missing: JournalGap(after: 3, through: 91, reason: reason)))
    }

    @Test func `a correction does not move samples of another boot`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine)
        try append(300, to: file, machine)
        try file.close()
        machine.restart(error: -400)
        file = try open(machine, after: file)
        try append(200, to: file, machine)
        try finishUpkeep(file)
        machine.synchronise()
        try append(1, to: file, machine)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        try expectOrder()
    }

    @Test(arguments: [-20_000 * day, -1000, 1000])
    func `a correction resumes after a crash at any step`(error: Int64) throws {
        let machine = Machine(error: error)
        var file = try open(machine)
        try file.append(.plain((0..<3000).map { .integer(machine.truth + $0) }, at: machine.now))
        machine.pass(1)
        try append(200, to: file, machine)
        machine.synchronise()
        try append(1, to: file, machine)
        var steps = 0
        let waiting = try file.readings(after: 0, limit: 4000).count
        while file.clock.currentShift != nil {
            try file.upkeep()
            steps += 1
            #expect(try file.readings(after: 0, limit: 4000).map(\.seq) == Array(1...Int64(waiting)), "step \(steps)")
            file.connection.keepsWALOnClose(true)
            file = try open(machine, after: file)
        }
        #expect(steps > 5)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        try expectOrder()
        #expect(try file.readings(after: 0, limit: 4000).count == waiting)
    }

    @Test func `a restart before the first synchronisation keeps the clock span`() throws {
        let machine = Machine(error: -Self.day)
        var old: HistoryFile?
        for isSetWhileDown in [false, true] {
            var file = try open(machine, after: old)
            try append(100, to: file, machine)
            try file.close()
            machine.pass(500)
            file = try open(machine, after: file)
            try append(100, to: file, machine)
            try file.close()
            if isSetWhileDown { machine.synchronise() }
            file = try open(machine, after: file)
            if !isSetWhileDown { machine.synchronise() }
            try append(100, to: file, machine)
            try finishUpkeep(file)
            try file.close()
            #expect(try wrong() == 0)
            try expectOrder()
            old = file
            machine.pass(3600)
            machine.restart(error: -2 * Self.day)
        }
    }

    @Test func `a reboot before the synchronisation leaves the readings before it uncorrected`() throws {
        let machine = Machine(error: -Self.day)
        var file = try open(machine)
        try append(100, to: file, machine)
        try finishUpkeep(file)
        try file.close()
        machine.restart(error: -Self.day)
        file = try open(machine, after: file)
        machine.synchronise()
        try append(100, to: file, machine)
        try finishUpkeep(file)
        #expect(try wrong() == 100)
        try run(file, machine, minutes: 63)
        #expect(try wrong() == 100)
        #expect(try count("SELECT 1 FROM clock") == 0)
        try expectOrder()
    }

    @Test func `each clock span is corrected by its own error`() throws {
        let machine = Machine(error: -20_000 * Self.day)
        let file = try open(machine)
        for error in [-20_000 * Self.day, -3600, 7200, 0, -5] {
            machine.step(toError: error)
            try append(50, to: file, machine)
            try finishUpkeep(file)
        }
        #expect(!file.clock.isSet)
        machine.synchronise()
        try append(50, to: file, machine)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
        try expectOrder()
        #expect(file.clock.drainCompleted().count == 4)
    }

    @Test func `a step from before to after the newest sample counts as setting the clock`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine)
        try append(1, to: file, machine)
        try file.close()
        machine.pass(10)
        machine.restart(error: -Self.day)
        file = try open(machine, after: file)
        try append(100, to: file, machine)
        machine.step(toError: 0)
        try append(1, to: file, machine)
        #expect(file.clock.isSet)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
    }

    @Test(
        arguments: [-90, 90]
    )
    func `a reading stamped before a step and stored after it is corrected`(error: Int64) throws {
        let machine = Machine(error: error)
        let file = try open(machine)
        try append(5, to: file, machine)
        var batch = ReadingBatch.plain([.integer(machine.truth)], at: machine.now)
        machine.synchronise()
        batch.add(Fixture.plain(), at: machine.now, (0, .integer(machine.truth)))
        try file.append(batch)
        try finishUpkeep(file)
        #expect(try wrong() == 0)
    }

    @Test(
        arguments: [
            -day, -60, 60, day,
        ]
    )
    func `steps of a synchronised clock move no reading, and seq keeps its order`(step: Int64) throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        let file = try open(machine)
        try append(100, to: file, machine)
        machine.step(toError: step)
        try append(100, to: file, machine)
        try finishUpkeep(file)
        #expect(try wrong() == 100)
        try expectOrder()
        #expect(try HistoryReader(path: folder.database).allRows().map(\.seq).sorted() == Array(1...200))
        #expect(try count("SELECT 1 FROM clock") == (abs(step) > 60 ? 1 : 0))
    }

    @Test func `an unsynchronised clock far ahead deletes nothing by age`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine)
        try append(100, to: file, machine)
        try file.close()
        machine.restart(error: 20_000 * Self.day)
        var limits = HistoryLimits()
        limits.samples = .seconds(30 * Self.day)
        file = try HistoryFile(
            path: folder.database,
            consumers: [],
            limits: limits,
            carriedOver: HistoryFile.CarriedOver(lock: file.lock),
            clock: machine.clock,
            log: .silent
        )
        try file.startPass()
        try finishUpkeep(file)
        try append(100, to: file, machine)
        machine.pass(80_000)
        try file.startPass()
        try finishUpkeep(file)
        machine.synchronise()
        try append(100, to: file, machine)
        try file.startPass()
        try finishUpkeep(file)
        #expect(try count("SELECT 1 FROM history") == 300)
        #expect(try wrong() == 0)
    }

    /// Opens the file with a limit of samples, as after `kill -9`: the open file is not written any more.
    private func open(
        _ machine: Machine,
        keep: Duration?,
        keepsMinutes: Bool = false,
        maxSize: Int64? = nil,
        after old: HistoryFile? = nil
    ) throws(StoreFault) -> HistoryFile {
        old?.connection.keepsWALOnClose(true)
        return try HistoryFile(
            path: folder.database,
            consumers: [],
            limits: HistoryLimits(samples: keep, minutes: keepsMinutes ? nil : keep, maxSize: maxSize),
            carriedOver: old.map { HistoryFile.CarriedOver(lock: $0.lock) },
            clock: machine.clock,
            log: .silent
        )
    }

    /// Stores a reading a second, and has a pass once a minute.
    private func run(_ file: HistoryFile, _ machine: Machine, minutes: Int) throws(StoreFault) {
        for _ in 0..<minutes {
            try append(60, to: file, machine)
            try file.startPass()
            try finishUpkeep(file)
        }
    }

    @Test(
        arguments: [true, false],
        [true, false]
    )
    func `a clock that is 400 days ahead deletes nothing, however often the daemon is killed and started`(
        isSynchronised: Bool,
        isSynchronisedBefore: Bool
    ) throws {
        let machine = Machine(error: 0)
        if isSynchronisedBefore { machine.synchronise() }
        var file = try open(machine, keep: .seconds(30 * Self.day))
        try run(file, machine, minutes: 3)
        if isSynchronised {
            machine.synchronise(toError: 400 * Self.day)
        } else {
            machine.step(toError: 400 * Self.day)
        }
        for start in 1...5 {
            if start > 1 { file = try open(machine, keep: .seconds(30 * Self.day), after: file) }
            try run(file, machine, minutes: 3)
            #expect(try count("SELECT 1 FROM sample") == 180 + Int64(start) * 180)
        }
        machine.synchronise()
        try run(file, machine, minutes: 3)
        #expect(try wrong() == 0)
        #expect(try count("SELECT 1 FROM sample") == 1260)
        try expectOrder()
    }

    @Test func `the first synchronisation after a restart deletes no rows of the previous run`() throws {
        let machine = Machine(error: 0)
        var file = try open(machine, keep: .seconds(30 * Self.day))
        try run(file, machine, minutes: 3)
        machine.restart(error: 0)
        file = try open(machine, keep: .seconds(30 * Self.day), after: file)
        machine.synchronise(toError: 400 * Self.day)
        try run(file, machine, minutes: 3)
        #expect(try count("SELECT 1 FROM sample WHERE seq <= 180") == 180)
        #expect(file.clock.doubt != nil)
    }

    @Test func `a gateway that was off for 400 days deletes rows that are too old, but slowly`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine, keep: .seconds(30 * Self.day))
        try run(file, machine, minutes: 50)
        try file.close()
        machine.pass(400 * Self.day)
        machine.restart(error: 0)
        machine.synchronise()
        file = try open(machine, keep: .seconds(30 * Self.day), after: file)
        try run(file, machine, minutes: 59)
        let old = "SELECT 1 FROM sample WHERE ts < \(Fixture.epoch.microseconds + Self.day * 1_000_000)"
        #expect(try count(old) == 3000)
        try run(file, machine, minutes: 120)
        let left = try count(old)
        #expect(left < 3000 && left > 2800)
        #expect(file.clock.doubt?.isLimited == true)
        for _ in 0..<(60 * 600) where !file.clock.isTrusted {
            machine.pass(60)
            try file.startPass()
            try finishUpkeep(file)
        }
        #expect(try count(old) == 0)
        #expect(file.clock.isTrusted && file.clock.doubt == nil)
        #expect(try wrong() == 0)
    }

    @Test func `the age of samples stamped during a step back counts by the uptime`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        let file = try open(machine, keep: .seconds(7200))
        try run(file, machine, minutes: 3)
        machine.step(toError: -Self.day)
        try run(file, machine, minutes: 3)
        #expect(try count("SELECT 1 FROM sample") == 360)
        machine.step(toError: 0)
        try run(file, machine, minutes: 3)
        #expect(try count("SELECT 1 FROM sample") == 540)
        #expect(try wrong() == 0)
        try expectOrder()
        try run(file, machine, minutes: 130)
        #expect(try count("SELECT 1 FROM sample") <= 7260)
    }

    @Test func `after a clock that was far ahead samples are not late for years`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        let file = try open(machine, keep: nil)
        try run(file, machine, minutes: 3)
        machine.step(toError: 4000 * Self.day)
        try run(file, machine, minutes: 3)
        machine.step(toError: 0)
        try run(file, machine, minutes: 64)
        #expect(try wrong() == 0)
        try expectOrder()
        #expect(file.rollups.minuteMark <= machine.now.microseconds)
        #expect(file.rollups.hourMark <= machine.now.microseconds)
    }

    @Test func `rows of a boot in 1970 are kept and corrected at the next boot`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine, keep: .seconds(30 * Self.day))
        try run(file, machine, minutes: 3)
        machine.restart(error: -20_000 * Self.day)
        file = try open(machine, keep: .seconds(30 * Self.day), after: file)
        try run(file, machine, minutes: 30)
        machine.restart(error: 0)
        machine.synchronise()
        file = try open(machine, keep: .seconds(30 * Self.day), after: file)
        try run(file, machine, minutes: 90)
        #expect(try count("SELECT 1 FROM sample") == 123 * 60)
        #expect(try count("SELECT 1 FROM history WHERE abs(ts - value) > 700000000") == 0)
        try expectOrder()
    }

    @Test(arguments: [true, false])
    func `after rows were deleted, a boot in 1970 leaves no summaries of that time`(keepsMinutes: Bool) throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        let keep = Duration.seconds(30 * Self.day)
        var file = try open(machine, keep: keep, keepsMinutes: keepsMinutes)
        try run(file, machine, minutes: 3)
        machine.pass(40 * Self.day)
        try run(file, machine, minutes: 3)
        #expect(try count("SELECT 1 FROM sample") == 180)
        machine.restart(error: -20_000 * Self.day)
        file = try open(machine, keep: keep, keepsMinutes: keepsMinutes, after: file)
        try run(file, machine, minutes: 30)
        try appendRecords(3, to: file, machine)
        #expect(try count("SELECT 1 FROM hour WHERE ts < 94694400000000") > 0)
        machine.restart(error: 0)
        machine.synchronise()
        file = try open(machine, keep: keep, keepsMinutes: keepsMinutes, after: file)
        try run(file, machine, minutes: 90)
        for table in ["sample", "minute", "hour"] {
            #expect(try count("SELECT 1 FROM \(table) WHERE ts < 94694400000000") == 0, "\(table)")
        }
        #expect(try readings(in: "history_hours") == 126 * 60 + 1)
        #expect(try readings(in: "history_minutes") == (keepsMinutes ? 126 : 123) * 60 + 1)
    }

    /// The number of readings in a view of summaries.
    private func readings(in view: String) throws(StoreFault) -> Int64 {
        let connection = try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READONLY)
        return try connection.integer("SELECT sum(n) FROM \(view)")
    }

    @Test(arguments: [true, false])
    func `records that were downloaded by a clock in 1969 are kept until their times are right`(isOn: Bool) throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        let keep = Duration.seconds(30 * Self.day)
        var file = try open(machine, keep: keep)
        try run(file, machine, minutes: 3)
        machine.restart(error: -20_000 * Self.day)
        file = try open(machine, keep: keep, after: file)
        try run(file, machine, minutes: 5)
        try appendRecords(400, 3, to: file, machine)
        // The time that the machine was off makes the right clock doubtful for an hour.
        machine.pass(7200)
        machine.restart(error: 0)
        if isOn { machine.synchronise() }
        file = try open(machine, keep: keep, after: file)
        try run(file, machine, minutes: 50)
        #expect(try count("SELECT 1 FROM sample") == 58 * 60 + 1)
        try run(file, machine, minutes: 50)
        #expect(try count("SELECT 1 FROM sample") == 108 * 60 + 1)
        #expect(try count("SELECT 1 FROM history WHERE abs(ts - value) > 700000000") == (isOn ? 0 : 301))
    }

    @Test(
        arguments: [-20_000 * day, 400 * day]
    )
    func `the size limit deletes rows in the order of arrival, not of their times`(error: Int64) throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine, keep: nil, maxSize: 1 << 20)
        try append(5000, to: file, machine)
        machine.restart(error: error)
        file = try open(machine, keep: nil, maxSize: 1 << 20, after: file)
        for _ in 0..<40 {
            try append(1000, to: file, machine)
            try file.startPass()
            try finishUpkeep(file)
        }
        let samples = try count("SELECT 1 FROM sample")
        #expect(samples < 40_000)
        #expect(try count("SELECT 1 FROM sample WHERE seq > \(file.head - samples)") == samples)
    }

    @Test func `wrong summaries are found and repaired`() throws {
        let machine = Machine(error: 0)
        machine.synchronise()
        var file = try open(machine, keep: nil)
        try run(file, machine, minutes: 200)
        try expectOrder()
        for damage in [
            "UPDATE minute SET n = n - 1 WHERE ts = (SELECT max(ts) - 1800000000 FROM minute)",
            "DELETE FROM hour WHERE ts = (SELECT min(ts) FROM hour)",
            "UPDATE minute SET sum = sum * 1.001 WHERE ts = (SELECT min(ts) FROM minute)",
            "UPDATE hour SET max = max + 1",
        ] {
            try file.connection.execute(damage)
            #expect(try HistoryReader(path: folder.database).check().count >= 1, "\(damage)")
            let connection = try HistoryDatabase.openForMaintenance(folder.database)
            let check = try SummaryCheck(connection)
            try check.repair(check.differences())
            try expectOrder()
            file = try open(machine, keep: nil, after: file)
            try finishUpkeep(file)
            try expectOrder()
        }
    }

    @Test func `rows that a clock in the future deleted do not hide rows of the present from the check`() throws {
        let machine = Machine(error: 400 * Self.day)
        var file = try open(machine, keep: .seconds(7200))
        try run(file, machine, minutes: 180)
        #expect(try count("SELECT 1 FROM sample") < 7400)
        machine.restart(error: 0)
        file = try open(machine, keep: .seconds(7200), after: file)
        try run(file, machine, minutes: 5)
        #expect(try HistoryReader(path: folder.database).check().isEmpty)
        let present = "ts < \(machine.truth + 3_600_000_000)"
        #expect(try count("SELECT 1 FROM minute WHERE \(present)") >= 5)
        try file.connection.execute(
            "UPDATE minute SET n = n + 1 WHERE ts = (SELECT min(ts) FROM minute WHERE \(present))"
        )
        let findings = try HistoryReader(path: folder.database).check()
        #expect(findings.first?.contains("summaries of minutes differ") == true, "\(findings)")
    }

    @Test func `the daemon corrects timestamps between commits and sends a notice`() async throws {
        let machine = Machine(error: -Self.day)
        let options = HistoryOptions(path: folder.database, consumers: .one, clock: machine.clock)
        let recorder = LogRecorder()
        let history = try await ReadingHistory.open(options, log: recorder.log)
        #expect(recorder.messages.contains { $0.hasPrefix("the clock is not synchronised yet") })
        try await history.append(.plain([.integer(machine.truth)], at: machine.now))
        machine.synchronise()
        try await history.append(.plain([.integer(machine.truth)], at: machine.now))
        let notice = await history.notices.first { _ in true }
        #expect(notice == .restamped(after: 0, through: 1, by: .seconds(Self.day)))
        #expect(try wrong() == 0)
        try await history.close()
    }
}
