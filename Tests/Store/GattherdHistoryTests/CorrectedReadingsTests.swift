import CSQLite
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// Readings that wait for delivery while their times are being corrected.
@Suite(.timeLimit(.minutes(2)))
struct CorrectedReadingsTests {
    private static let day: Int64 = 86_400

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ machine: Machine) throws(StoreFault) -> HistoryFile {
        try HistoryFile(path: folder.database, consumers: .one, clock: machine.clock, log: .silent)
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

    /// Expects `count` readings with right times before each step of the corrections; returns the number of steps.
    private func correct(_ file: HistoryFile, expecting count: Int) throws -> Int {
        var steps = 0
        while file.clock.currentShift != nil {
            let readings = try file.readings(after: 0, limit: count + 1)
            let wrong = readings.filter { [.integer($0.time.microseconds)] != $0.samples.map(\.value) }
            #expect(readings.count == count && wrong.isEmpty, "\(wrong.count) wrong times at step \(steps)")
            try file.upkeep()
            steps += 1
        }
        return steps
    }

    @Test(arguments: [-20_000 * day, -1000, 1000, day])
    func `waiting readings have their right times while the file is being corrected`(error: Int64) throws {
        let machine = Machine(error: error)
        let file = try open(machine)
        try append(3000, to: file, machine)
        machine.synchronise()
        try append(1, to: file, machine)
        #expect(try correct(file, expecting: 3001) > 5)
    }

    @Test func `consumers of readings learn that they may hold readings with wrong times`() async throws {
        let machine = Machine(error: -Self.day)
        let consumers = [JournalConsumerOptions(name: "mqtt"), .init(name: "copy", content: .everything)]
        let options = HistoryOptions(path: folder.database, consumers: consumers, clock: machine.clock)
        let history = try await ReadingHistory.open(options, log: .silent)
        let counts = { consumers.map { history.consumer($0.name).correctionCount } }
        try await history.append(.plain([.integer(1)], at: machine.now))
        #expect(counts() == [0, 0])
        machine.synchronise()
        try await history.append(.plain([.integer(2)], at: machine.now))
        #expect(counts() == [1, 0])
        try await history.close()
    }

    @Test func `the end of a correction does not hide readings that could not be stored`() throws {
        let machine = Machine(error: -Self.day)
        let (tail, lock) = (JournalTail(consumers: ["mqtt"]), try FileLock(database: folder.database))
        let file = try HistoryFile(
            path: folder.database,
            consumers: .one,
            carriedOver: HistoryFile.CarriedOver(lock: lock, tail: tail),
            clock: machine.clock,
            log: .silent
        )
        try append(100, to: file, machine)
        machine.synchronise()
        try file.startPass()
        // As while the disk is full.
        let unstored = try ReadingBatch.plain(integers: 1...100).numberedUnstored(by: file.sequence, path: "")
        #expect(unstored.map(\.seq) == Array(101...200))
        tail.removeAll()
        while file.isUpkeepDue { try file.upkeep() }
        #expect(file.clock.drainCompleted().count == 1 && file.head == 201)
        let mqtt = JournalConsumerOptions(name: "mqtt")
        for seq in [100, 150, 199] as [Int64] { #expect(tail.entries(after: seq, limit: 10, for: mqtt) == nil) }
        #expect(tail.entries(after: 200, limit: 10, for: mqtt)?.through == 201)
    }

    @Test func `a correction that becomes known meanwhile waits for the one in progress`() throws {
        try open(Machine(error: 0)).close()
        let connection = try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READWRITE)
        try connection.execute(
            """
            INSERT INTO clock (id, boot, offset, time_end, seq, seq_end, shift, phase, place)
            VALUES (11, 'a', 0, 1, 0, 10, 7, 0, 0), (12, 'a', 0, 1, 10, 20, 7, 2, 5), (13, 'a', 0, 1, 20, 30, 7, 0, 0)
            """
        )
        let table = try ClockTable(connection, boot: "a")
        #expect(try table.pendingShifts().map(\.id) == [12, 11, 13])
    }

    @Test func `readings that wait for the second of two corrections have their right times`() throws {
        let machine = Machine(error: -20_000 * Self.day)
        let file = try open(machine)
        try append(50, to: file, machine)
        machine.step(toError: -3600)
        try append(50, to: file, machine)
        machine.synchronise()
        try append(1, to: file, machine)
        #expect(file.clock.pendingShifts.count == 2)
        #expect(try correct(file, expecting: 101) > 5)
    }
}
