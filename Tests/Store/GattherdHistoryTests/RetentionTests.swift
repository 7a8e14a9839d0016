import FoundationEssentials
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(3)))
struct RetentionTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(
        _ limits: HistoryLimits,
        consumers: [JournalConsumerOptions] = .one
    ) throws(StoreFault) -> HistoryFile {
        try HistoryFile(
            path: folder.database,
            consumers: consumers,
            limits: limits,
            clock: GatewayClock(now: { Fixture.epoch }),
            log: .silent
        )
    }

    private func count(_ table: String, in file: HistoryFile) throws(StoreFault) -> Int {
        Int(try file.connection.integer("SELECT count(*) FROM \(table)"))
    }

    /// Readings that wait for delivery.
    private func waiting(in file: HistoryFile) throws(StoreFault) -> Int {
        Int(try file.connection.integer("SELECT sum(last - first + 1) FROM outbox"))
    }

    /// Runs all work that is due at `now`, and checks that each step is short.
    private func upkeep(_ file: HistoryFile, at now: Timestamp? = nil) throws {
        if let now { try file.startPass(at: now) }
        file.checkpointIfDue()
        while file.isUpkeepDue {
            let before = try file.connection.integer("SELECT total_changes()")
            try file.upkeep()
            #expect(try file.connection.integer("SELECT total_changes()") - before < 40_000)
        }
    }

    /// One reading a second of each device, from ``Fixture/epoch`` on.
    private func fill(_ file: HistoryFile, seconds: Range<Int>, devices: Int = 1) throws(StoreFault) {
        var batch = ReadingBatch()
        for second in seconds {
            for device in 0..<devices {
                let time = Fixture.epoch.advanced(by: .seconds(second))
                batch.add(Fixture.plain(device: "d\(device)"), at: time, (0, .integer(Int64(second))))
            }
        }
        try file.append(batch)
    }

    @Test func `each table is purged by its own retention time, and summaries stay exact`() async throws {
        let file = try open(HistoryLimits(samples: .seconds(3600), minutes: .seconds(36_000), hours: .seconds(72_000)))
        try fill(file, seconds: 0..<50_000)
        file.journal?.acknowledge(through: file.head)
        let sums = "SELECT ts, n, min, mean, max FROM"
        let minutes = try await folder.shell.rows("\(sums) history_minutes")
        let hours = try await folder.shell.rows("\(sums) history_hours")

        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(50_000)))
        #expect(try count("sample", in: file) == 3600)
        #expect(try await folder.shell.rows("\(sums) history_minutes") == Array(minutes.suffix(600)))
        #expect(try await folder.shell.rows("\(sums) history_hours") == hours)

        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(100_000)))
        #expect(try count("sample", in: file) == 0)
        #expect(try count("history_hours", in: file) < hours.count)
        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(1_000_000)))
        #expect(try count("history_hours", in: file) == 0)
    }

    @Test func `without limits nothing is deleted`() throws {
        let file = try open(HistoryLimits())
        try fill(file, seconds: 0..<10_000)
        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(1_000_000_000)))
        #expect(try count("sample", in: file) == 10_000)
        #expect(try count("history_minutes", in: file) == 167)
    }

    @Test(arguments: [true, false])
    func `undelivered samples are deleted by age only after delivery`(isOn: Bool) throws {
        let limits = HistoryLimits(samples: .seconds(60))
        do {
            let file = try open(limits)
            try fill(file, seconds: 0..<10_000)
            file.journal?.acknowledge(through: 4000)
            try file.close()
        }
        let later = Fixture.epoch.advanced(by: .seconds(100_000))
        var file = try open(limits, consumers: isOn ? .one : [])
        try upkeep(file, at: later)
        #expect(try file.connection.integer("SELECT min(seq) FROM sample") == 4001)
        #expect(try count("sample", in: file) == 6000)
        #expect(file.undelivered == 0)
        guard isOn else { return }
        file.journal?.acknowledge(through: file.head)
        try upkeep(file, at: later.advanced(by: .seconds(1)))
        #expect(try count("sample", in: file) == 0)
        file = try open(path: folder.file("other.db"))
    }

    private func open(path: String) throws(StoreFault) -> HistoryFile {
        try HistoryFile(path: path, consumers: .one, log: .silent)
    }

    @Test func `deleted space is returned to the file system`() throws {
        let file = try open(HistoryLimits(samples: .seconds(3600)), consumers: [])
        try fill(file, seconds: 0..<100_000)
        try file.flushPendingState()
        let before = try size("gattherd.db")
        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(200_000)))
        try file.flushPendingState()
        #expect(before > 2_500_000)
        #expect(try size("gattherd.db") < 500_000)
        #expect(try size("gattherd.db-wal") == 0)
        #expect(try file.connection.integer("SELECT n FROM history_hours LIMIT 1 OFFSET 3") == 3600)
    }

    /// The octets of the database and its WAL.
    private func footprint() throws -> Int {
        try size("gattherd.db") + size("gattherd.db-wal")
    }

    private func size(_ name: String) throws -> Int {
        let path = folder.file(name)
        guard FileManager.default.fileExists(atPath: path) else { return 0 }
        return try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
    }

    @Test(
        arguments: [1, 3]
    )
    func `the database and its WAL stay within the size limit, and the oldest samples are deleted first`(
        mebibytes: Int
    ) async throws {
        let limit = mebibytes << 20
        let file = try open(HistoryLimits(maxSize: Int64(limit)))
        let seconds = 20_000 * mebibytes
        for start in stride(from: 0, to: seconds, by: 500 * mebibytes) {
            try fill(file, seconds: start..<(start + 500 * mebibytes), devices: 2)
            file.journal?.acknowledge(through: file.head)
            try upkeep(file)
            #expect(try footprint() <= limit)
        }
        #expect(file.undelivered == 0)
        #expect(try file.connection.integer("SELECT sum(n) FROM history_hours") == Int64(seconds * 2))
        let kept = try count("sample", in: file)
        #expect(kept > 10_000 * mebibytes && kept < seconds * 2)
        let newest = try file.connection.integer("SELECT max(seq) - min(seq) + 1 FROM sample")
        #expect(newest == Int64(kept))
        #expect(try await folder.shell.value("PRAGMA integrity_check") == "ok")
    }

    @Test func `without delivery the oldest backlog is dropped and counted`() throws {
        let file = try open(HistoryLimits(maxSize: 1 << 20))
        for start in stride(from: 0, to: 40_000, by: 1000) {
            try fill(file, seconds: start..<(start + 1000))
            try upkeep(file)
            #expect(try footprint() <= 1 << 20)
        }
        let waiting = try waiting(in: file)
        #expect(waiting > 1000 && waiting < 40_000)
        #expect(file.undelivered == 40_000 - waiting)
        #expect(try file.connection.integer("SELECT max(last) - min(first) + 1 FROM outbox") == Int64(waiting))
        let dropped = Int64(file.undelivered)
        let gap = try file.entries(after: 0, limit: 50_000, for: "mqtt").missing
        #expect(gap?.through == dropped)
        #expect(try file.readings(after: dropped, limit: 50_000).map(\.seq) == Array(dropped + 1...40_000))
    }

    @Test func `readings in delivery are not dropped or counted`() throws {
        let file = try open(HistoryLimits(maxSize: 1 << 20))
        try fill(file, seconds: 0..<300)
        let taken = try file.readings(after: 0, limit: 250)
        for start in stride(from: 300, to: 20_300, by: 1000) {
            try fill(file, seconds: start..<(start + 1000))
            try upkeep(file)
        }
        #expect(try file.readings(after: 0, limit: 250) == taken)
        #expect(file.undelivered == 20_300 - (try waiting(in: file)))
        let end = Int64(file.undelivered + 256)
        #expect(try file.entries(after: 256, limit: 1, for: "mqtt").missing?.through == end)
        #expect(try file.readings(after: end, limit: 1).map(\.seq) == [end + 1])
    }

    @Test func `samples of dropped readings are deleted, also behind many that are in delivery`() throws {
        let metrics = (0..<5).map { MetricDescriptor(name: "m\($0)") }
        let stream = StreamDefinition(device: "d", profile: "p", stream: "s", metrics: metrics)
        let file = try open(HistoryLimits(maxSize: 1 << 20))
        let count = 20_000
        for start in stride(from: 0, to: count, by: 1000) {
            var batch = ReadingBatch()
            for second in start..<(start + 1000) {
                let value = SampleValue.integer(Int64(second))
                let time = Fixture.epoch.advanced(by: .seconds(second))
                batch.add(stream, at: time, (0, value), (1, value), (2, value), (3, value), (4, value))
            }
            try file.append(batch)
            if start == 0 { #expect(try file.readings(after: 0, limit: 1000).count == 1000) }
            try upkeep(file)
        }
        let deleted = 5 * count - (try self.count("sample", in: file))
        #expect(file.undelivered > 1000)
        #expect(5 * file.undelivered - deleted <= 5 * 1152, "a step's readings at most are dropped and not deleted")
    }

    @Test func `a minute that is larger than the file is summed up before it is over`() throws {
        let file = try open(HistoryLimits(maxSize: 1 << 20), consumers: [])
        for start in 0..<40 {
            let time = Fixture.epoch.advanced(by: .milliseconds(start))
            try file.append(.plain((0..<1000).map { .integer($0) }, at: time))
            try upkeep(file)
            #expect(try footprint() <= 1 << 20)
        }
        #expect(try count("sample", in: file) < 40_000)
        #expect(try file.connection.integer("SELECT sum(n) FROM history_minutes") == 40_000)
        #expect(try file.connection.integer("SELECT sum(n) FROM history_hours") == 40_000)
    }

    @Test func `a batch that is larger than the whole file is stored, and makes room afterwards`() throws {
        let file = try open(HistoryLimits(maxSize: 1 << 20), consumers: [])
        try fill(file, seconds: 0..<60_000)
        try upkeep(file)
        try file.flushPendingState()
        #expect(try size("gattherd.db") <= 1 << 20)
        #expect(try file.connection.integer("SELECT sum(n) FROM history_hours") == 60_000)
    }

    @Test func `a late sample does not recreate a purged minute`() throws {
        let file = try open(HistoryLimits(samples: .seconds(60), minutes: .seconds(3600)), consumers: [])
        try fill(file, seconds: 0..<20_000)
        let now = Fixture.epoch.advanced(by: .seconds(20_000))
        try upkeep(file, at: now)
        let minutes = try count("history_minutes", in: file)
        try fill(file, seconds: 0..<1)
        #expect(try count("history_minutes", in: file) == minutes)
        #expect(try file.connection.integer("SELECT sum(n) FROM history_hours") == 20_001)
        try upkeep(file, at: now.advanced(by: .seconds(1)))
        #expect(try file.connection.integer("SELECT count(*) FROM sample WHERE seq = \(file.head)") == 0)
    }

    @Test func `rejects and events are purged by age and number`() throws {
        let file = try open(HistoryLimits(samples: .seconds(100), minutes: .seconds(1000)))
        for start in 0..<11 {
            var batch = ReadingBatch()
            batch.rejects = (0..<10_000).map { number in
                let time = Fixture.epoch.advanced(by: .microseconds(start * 10_000 + number))
                return Reject(time: time, device: "d", characteristic: "2a37", payload: [1], reason: "short")
            }
            try file.append(batch)
        }
        try file.record([LifecycleEvent(time: Fixture.epoch, kind: "daemon", [:])])
        try upkeep(file, at: Fixture.epoch)
        #expect(try count("reject", in: file) == 100_000)
        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(101)))
        #expect(try count("reject", in: file) == 0)
        #expect(try count("event", in: file) == 1)
        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(1001)))
        #expect(try count("event", in: file) == 0)
    }

    private func event(_ second: Int, _ device: String?, _ kind: String, bytes: Int) -> LifecycleEvent {
        let detail = SampleValue.text(String(repeating: "x", count: bytes))
        let time = Fixture.epoch.advanced(by: .seconds(second))
        return LifecycleEvent(time: time, device: device, kind: kind, ["d": detail])
    }

    @Test func `events and rejects never evict samples, even in a full file`() async throws {
        let file = try open(HistoryLimits(maxSize: 8 << 20))
        for start in stride(from: 0, to: 200_000, by: 2000) {
            try fill(file, seconds: start..<(start + 2000), devices: 2)
            file.journal?.acknowledge(through: file.head)
            try upkeep(file)
        }
        try upkeep(file)
        let samples = try count("sample", in: file)
        #expect(samples < 400_000)
        for start in stride(from: 200_000, to: 230_000, by: 500) {
            try file.record((start..<(start + 500)).map { event($0, "lamp", "control", bytes: $0 % 3 * 250) })
            var batch = ReadingBatch()
            batch.rejects = (start..<(start + 500)).map { second in
                let time = Fixture.epoch.advanced(by: .seconds(second))
                let octets = [UInt8](repeating: 1, count: second % 400)
                return Reject(time: time, device: "lamp", characteristic: "2a37", payload: octets, reason: "short")
            }
            try file.append(batch)
            try upkeep(file)
            #expect(try footprint() <= 8 << 20)
        }
        #expect(try count("sample", in: file) == samples)
        #expect(try file.connection.integer("SELECT sum(length(detail)) FROM event") < 8 << 20 / 64)
        #expect(try file.connection.integer("SELECT sum(length(octets)) FROM reject") < 8 << 20 / 64)
        #expect(try count("event", in: file) > 100 && (try count("reject", in: file)) > 100)
        let newest = try file.connection.integer("SELECT max(ts) FROM event")
        #expect(newest == Fixture.epoch.advanced(by: .seconds(229_999)).microseconds)
    }

    @Test func `one device with many events does not evict the events of others`() throws {
        let file = try open(HistoryLimits(maxSize: 8 << 20))
        try file.record((0..<20).map { event($0, $0 % 2 == 0 ? "strap" : nil, "link", bytes: 20) })
        for start in stride(from: 100, to: 20_100, by: 1000) {
            try file.record((start..<(start + 1000)).map { event($0, "lamp", "control", bytes: 300) })
            try file.record([event(start, "lamp", "link", bytes: 20)])
            try upkeep(file)
        }
        #expect(try file.connection.integer("SELECT count(*) FROM event WHERE device IS NOT 'lamp'") == 20)
        #expect(try file.connection.integer("SELECT count(*) FROM event WHERE device = 'lamp' AND kind = 'link'") == 20)
        let counted = """
            SELECT coalesce(device, ''), kind, count(*) FROM event GROUP BY 1, 2
            EXCEPT SELECT device, kind, n FROM source WHERE list = 'event'
            """
        #expect(try file.connection.integer("SELECT count(*) FROM (\(counted))") == 0)
        #expect(try file.connection.integer("SELECT count(*) FROM source") == 4)
        try file.connection.execute("DELETE FROM event")
        #expect(try file.connection.integer("SELECT count(*) FROM source") == 0)
    }

    @Test func `a file filled by events drops events, not samples`() throws {
        do {
            let file = try open(HistoryLimits(maxSize: 64 << 20))
            try fill(file, seconds: 0..<1000)
            try file.record((0..<8000).map { event($0, nil, "broker", bytes: 500) })
            try file.close()
        }
        let file = try open(HistoryLimits(maxSize: 1 << 20))
        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(8000)))
        try file.flushPendingState()
        #expect(try count("sample", in: file) == 1000)
        #expect(try size("gattherd.db") <= 1 << 20)
        #expect(try count("event", in: file) > 50)
    }

    @Test func `a page of events or rejects is bounded in bytes`() throws {
        let file = try open(HistoryLimits())
        try file.record((0..<6000).map { event($0, "lamp", "control", bytes: 500) })
        var batch = ReadingBatch()
        batch.rejects = (0..<600).map { _ in
            let octets = [UInt8](repeating: 1, count: 100_000)
            return Reject(time: Fixture.epoch, device: "lamp", characteristic: "2a37", payload: octets, reason: "long")
        }
        try file.append(batch)
        let reader = try HistoryReader(path: folder.database)
        let events = try reader.events(newest: 10_000)
        #expect(events.count < 2100 && events.count > 1500)
        #expect(events.last?.time == Fixture.epoch.advanced(by: .seconds(5999)))
        let rejects = try reader.rejects(device: "lamp", newest: 10_000)
        #expect(rejects.count < 129 && rejects.count > 100)
        #expect(rejects.allSatisfy { $0.payload.count == 4096 })
    }

    @Test func `buckets with deleted samples are read from their summaries`() throws {
        let file = try open(HistoryLimits(samples: .seconds(3600), minutes: .seconds(36_000)), consumers: [])
        let minute = Timestamp(microseconds: 1_795_231_200_000_000)
        let skew = minute.microseconds - Fixture.epoch.microseconds
        try fill(file, seconds: Int(skew / 1_000_000)..<86_400)
        let now = Fixture.epoch.advanced(by: .seconds(86_400))
        try upkeep(file, at: now)
        let query = HistoryQuery(since: now.advanced(by: .seconds(-7210)), until: now.advanced(by: .seconds(-7010)))
        var spans: [Int] = []
        try HistoryReader(path: folder.database).buckets(query, every: .seconds(60)) { bucket in
            spans.append(bucket.n)
            return true
        }
        #expect(spans == [60, 60, 60, 60, 60])
    }

    @Test(
        arguments: [
            HistoryLimits(minutes: .seconds(3600)), HistoryLimits(hours: .seconds(10_000)),
            HistoryLimits(minutes: .seconds(30_000), hours: .seconds(10_000)),
            HistoryLimits(minutes: .seconds(10_000), hours: .seconds(30_000)),
            HistoryLimits(samples: .seconds(50_000), minutes: .seconds(20_000)),
            HistoryLimits(samples: .seconds(10_000), minutes: .seconds(70_000), hours: .seconds(5000)),
        ]
    )
    func `rows that are kept longer than their summaries are read exactly`(limits: HistoryLimits) throws {
        let file = try open(limits, consumers: [])
        try fill(file, seconds: 0..<86_400)
        try upkeep(file, at: Fixture.epoch.advanced(by: .seconds(86_400)))
        let reader = try HistoryReader(path: folder.database)
        // The oldest of what is whole: minutes may begin where samples are gone.
        let kept = [limits.samples, limits.minutes].map { $0?.components.seconds ?? 86_400 }.max() ?? 0
        var random = SplitMix(state: 5)
        for step in [30, 60, 90, 300, 3600, 7200, 86_400] {
            for _ in 0..<8 {
                let first = limits.samples == nil ? random.next(below: 80_000) : 86_400 - Int(kept) + 3600
                let last = first + 3600 + random.next(below: 20_000)
                let range = limits.samples == nil ? first..<last : wholeMinutes(first..<last)
                if limits.samples != nil && step % 60 != 0 { continue }
                let query = HistoryQuery(
                    since: Fixture.epoch.advanced(by: .seconds(range.lowerBound)).rounded(downTo: 1_000_000),
                    until: Fixture.epoch.advanced(by: .seconds(range.upperBound)).rounded(downTo: 1_000_000)
                )
                var found: [Int64: [Int]] = [:]
                try reader.buckets(query, every: .seconds(step)) { bucket in
                    guard case .integer(let low) = bucket.min, case .integer(let high) = bucket.max else {
                        return false
                    }
                    found[bucket.time.microseconds] = [
                        bucket.n, Int(low), Int(high), Int(bucket.mean * Double(bucket.n)),
                    ]
                    return true
                }
                let isExact = found == truth(range, step: Int64(step))
                #expect(isExact, "\(step) \(range)")
            }
        }
    }

    /// A range whose ends are ends of minutes: Fixture/epoch is 5.123456 s after one.
    private func wholeMinutes(_ range: Range<Int>) -> Range<Int> {
        func rounded(_ second: Int) -> Int { (second + 5) / 60 * 60 - 5 }
        return rounded(range.lowerBound)..<rounded(range.upperBound)
    }

    /// The n, min, max and sum of the samples of ``fill(_:seconds:devices:)``, per span.
    private func truth(_ seconds: Range<Int>, step: Int64) -> [Int64: [Int]] {
        let groups = Dictionary(grouping: seconds.prefix { $0 < 86_400 }) { second in
            Fixture.epoch.advanced(by: .seconds(second)).rounded(downTo: step * 1_000_000).microseconds
        }
        return groups.mapValues { [$0.count, $0.min() ?? 0, $0.max() ?? 0, $0.reduce(0, +)] }
    }

    @Test func `a history in use purges by itself and reports dropped readings`() async throws {
        var options = HistoryOptions(
            path: folder.database,
            consumers: .one,
            clock: GatewayClock(now: { Fixture.epoch })
        )
        options.limits = HistoryLimits(maxSize: 1 << 20)
        let recorder = LogRecorder()
        let history = try await ReadingHistory.open(options, log: recorder.log)
        var given = 0
        while history.status.undelivered == 0 {
            let time = Fixture.epoch.advanced(by: .milliseconds(given / 1000))
            try await history.append(.plain((0..<1000).map { .integer($0) }, at: time))
            given += 1000
        }
        for await notice in history.notices {
            guard case .backlogDropped(let readings) = notice else { continue }
            #expect(readings > 0)
            break
        }
        #expect(recorder.messages.contains { $0.contains("readings were dropped") })
        #expect(history.status.size > 100_000)
        #expect(given < 80_000)
        try await history.close()
    }
}
