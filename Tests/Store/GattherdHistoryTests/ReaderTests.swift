import FoundationEssentials
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(3)))
struct ReaderTests {
    private let folder: TemporaryFolder
    private let history: ReadingHistory
    private let reader: HistoryReader

    init() async throws {
        folder = try TemporaryFolder()
        history = try await .open(folder)
        reader = try HistoryReader(path: folder.database)
    }

    /// Two devices with two metrics each, one reading a second.
    private func fill(seconds: Int) async throws {
        var batch = ReadingBatch()
        for second in 0..<seconds {
            let time = Fixture.epoch.advanced(by: .seconds(second))
            for device in ["a", "b"] {
                batch.add(Fixture.heartRate(device), at: time, (0, .integer(Int64(second))), (2, .real(0.5)))
            }
        }
        try await history.append(batch)
    }

    @Test func `a query returns rows ordered by time, from since to before until`() async throws {
        try await fill(seconds: 10)
        let second = { Fixture.epoch.advanced(by: .seconds($0)) }
        #expect(try reader.allRows().count == 40)
        #expect(try reader.allRows(HistoryQuery(device: "a")).count == 20)
        #expect(try reader.allRows(HistoryQuery(metric: "rr_interval")).count == 20)
        #expect(try reader.allRows(HistoryQuery(device: "c")).isEmpty)
        let some = HistoryQuery(device: "b", metric: "heart_rate", since: second(3), until: second(6))
        let rows = try reader.allRows(some)
        #expect(rows.map(\.value) == [.integer(3), .integer(4), .integer(5)])
        #expect(rows.map(\.time) == [second(3), second(4), second(5)])
        let row = try #require(rows.first)
        #expect(row.seq == 8)
        #expect(row.series.device == "b" && row.series.metric == "heart_rate" && row.series.unit == "bpm")
        #expect(
            row.series.profile == "heart-rate" && row.series.stream == "heart_rate" && row.series.source == "notify"
        )
    }

    @Test func `a query ends early, with an error, when its rows are not wanted any more`() async throws {
        try await fill(seconds: 3000)
        var isWanted = true
        let reader = try HistoryReader(path: folder.database) { isWanted }
        var count = 0
        #expect(throws: StoreFault.self) {
            try reader.rows(HistoryQuery()) { _ in
                isWanted = false
                count += 1
                return true
            }
        }
        #expect((1..<12_000).contains(count))
        #expect(throws: StoreFault.self) { try reader.buckets(HistoryQuery(), every: .seconds(60)) { _ in true } }
        isWanted = true
        #expect(try reader.allRows().count == 12_000)
    }

    @Test func `the WAL stays with its writer after a reader in the same process has closed`() async throws {
        try await fill(seconds: 1)
        do { #expect(try HistoryReader(path: folder.database).allRows().count == 4) }
        #expect(try await folder.shell.value("SELECT count(*) FROM sample") == "4")
        try await fill(seconds: 1)
        #expect(FileManager.default.fileExists(atPath: folder.database + "-wal"))
        #expect(try await folder.shell.value("SELECT count(*) FROM sample") == "8")
    }

    @Test func `the time range of numeric samples is exact and within the query`() async throws {
        #expect(try reader.extent(withSummaries: true) == nil)
        #expect(try reader.extent(ofNumbers: HistoryQuery()) == nil)
        try await fill(seconds: 7300)
        let second = { Fixture.epoch.advanced(by: .seconds($0)) }
        let strap = HistoryQuery(device: "a", metric: "heart_rate")
        #expect(try reader.extent(withSummaries: false) == second(0)...second(7299))
        let extent = try #require(try reader.extent(withSummaries: true))
        #expect(extent.upperBound == second(7299))
        #expect((second(-3600)...second(0)).contains(extent.lowerBound))
        #expect(try reader.extent(ofNumbers: strap) == second(0)...second(7299))
        #expect(try reader.extent(ofNumbers: HistoryQuery(device: "c")) == nil)
        let part = HistoryQuery(device: "a", since: second(100).advanced(by: .microseconds(1)), until: second(110))
        #expect(try reader.extent(ofNumbers: part) == second(101)...second(109))
        #expect(try reader.devices() == ["a", "b"])
        #expect(try reader.metrics(device: "b") == ["heart_rate", "rr_interval"])
        #expect(try reader.metrics(device: "c").isEmpty)
    }

    @Test(arguments: [0, 1, 4095, 4096, 4097, 20_000])
    func `many rows are complete and in order, and the caller can stop`(count: Int) async throws {
        try await history.append(.plain(integers: 0..<count))
        #expect(try reader.allRows().map(\.value) == (0..<count).map { .integer(Int64($0)) })
        var seen = 0
        try reader.rows(HistoryQuery()) { _ in
            seen += 1
            return seen < 10
        }
        #expect(seen == min(count, 10))
    }

    @Test func `elements of one reading are never lost between two slices`() async throws {
        var batch = ReadingBatch()
        for _ in 0..<3000 { batch.add(Fixture.heartRate(), (2, .real(1)), (2, .real(2)), (2, .real(3))) }
        try await history.append(batch)
        let values = try reader.allRows().map(\.value)
        #expect(values == Array(repeating: [.real(1), .real(2), .real(3)], count: 3000).flatMap { $0 })
    }

    @Test func `concurrent writes do not disturb a query, new devices included`() throws {
        let path = folder.file("other.db")
        let writer = try HistoryFile(path: path, consumers: .one, log: .silent)
        try writer.append(.plain(integers: 0..<5000))
        var later = ReadingBatch.plain(
            [.text("new")],
            of: Fixture.plain("fresh", device: "fresh"),
            at: Fixture.epoch.advanced(by: .seconds(100))
        )
        later.add(Fixture.plain(), at: Fixture.epoch.advanced(by: .seconds(101)), (0, .integer(5000)))
        var devices: Set<String> = []
        var count = 0
        try HistoryReader(path: path).rows(HistoryQuery()) { row in
            if count == 0 { #expect(throws: Never.self) { try writer.append(later) } }
            count += 1
            devices.insert(row.series.device)
            return true
        }
        #expect(count == 5002)
        #expect(devices == ["box", "fresh"])
    }

    @Test func `buckets are aligned to UTC and count numbers only`() async throws {
        let minute = Timestamp(microseconds: 1_795_231_200_000_000)
        try await history.append(.plain([.integer(4), .null, .real(1.5), .text("x"), .boolean(true)], at: minute))
        try await history.append(.plain([.integer(9)], at: minute.advanced(by: .microseconds(-1))))
        try await history.append(.plain([.integer(.max), .integer(.max - 1)], at: minute.advanced(by: .seconds(600))))
        var read = ReadingBatch()
        read.add(Fixture.plain(), at: minute.advanced(by: .seconds(59)), by: .read, (0, .integer(5)))
        try await history.append(read)

        let buckets = try allBuckets(every: .seconds(60))
        #expect(buckets.map(\.time) == [-60, 0, 600].map { minute.advanced(by: .seconds($0)) })
        #expect(buckets.map(\.n) == [1, 4, 2])
        #expect(buckets.map(\.min) == [.integer(9), .integer(1), .integer(.max - 1)])
        #expect(buckets.map(\.max) == [.integer(9), .integer(5), .integer(.max)])
        #expect(buckets.map(\.mean) == [9, 2.875, 9.223372036854775807e18])
        #expect(buckets.allSatisfy { $0.device == "box" && $0.metric == "value" && $0.unit == nil })
    }

    @Test func `buckets of all devices and metrics agree with the view`() async throws {
        try await fill(seconds: 400)
        let view = try await folder.shell.rows(
            "SELECT ts, device, metric, n, min, mean, max FROM history_minutes ORDER BY ts, device, metric"
        )
        let ours = try allBuckets(every: .seconds(60)).map { bucket in
            [
                "\(bucket.time.microseconds)", bucket.device, bucket.metric, "\(bucket.n)", text(bucket.min),
                "\(bucket.mean)", text(bucket.max),
            ]
        }
        #expect(ours == view)
        #expect(ours.count == 7 * 4 || ours.count == 8 * 4)
    }

    private func text(_ value: SampleValue) -> String {
        switch value {
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        default: "?"
        }
    }

    @Test(
        arguments: [Duration.zero, .nanoseconds(1), .seconds(Int64.max)]
    )
    func `a bucket may have any length, and the caller can stop`(step: Duration) async throws {
        try await fill(seconds: 3)
        #expect(try allBuckets(every: step).reduce(0) { $0 + $1.n } == 12)
        var seen = 0
        try reader.buckets(HistoryQuery(), every: .seconds(1)) { _ in
            seen += 1
            return seen < 2
        }
        #expect(seen == 2)
    }

    @Test func `streams with one metric name have values of their own, and a query selects one`() async throws {
        var batch = ReadingBatch()
        for (second, streams) in [(0, ["vendor", "battery"]), (1, ["battery", "vendor"]), (7200, ["battery"])] {
            for stream in streams {
                let value: SampleValue = .integer(stream == "battery" ? 98 : 40)
                batch.add(Fixture.battery(stream), at: Fixture.epoch.advanced(by: .seconds(second)), (0, value))
            }
        }
        try await history.append(batch)
        #expect(try reader.latest(device: "strap").map(\.series.stream) == ["battery", "vendor"])
        #expect(try reader.latest(device: "strap").map(\.value) == [.integer(98), .integer(40)])
        #expect(try reader.streams(device: "strap") == ["battery", "vendor"])
        #expect(try reader.streams(device: "box").isEmpty)
        for step in [Duration.seconds(1), .seconds(60), .seconds(3600), .seconds(86_400)] {
            let buckets = try allBuckets(every: step)
            #expect(buckets.allSatisfy { $0.mean == ($0.stream == "battery" ? 98 : 40) }, "\(buckets)")
            #expect(buckets.prefix(2).map(\.stream) == ["battery", "vendor"])
        }
        let query = HistoryQuery(device: "strap", stream: "vendor", metric: "battery_level")
        #expect(try reader.allRows(query).map(\.value) == [.integer(40), .integer(40)])
        let spans = try allBuckets(query, every: .seconds(3600))
        #expect(spans.map(\.stream) == ["vendor"] && spans.map(\.n) == [2])
        #expect(try reader.extent(ofNumbers: query)?.upperBound == Fixture.epoch.advanced(by: .seconds(1)))
    }

    private func allBuckets(
        _ query: HistoryQuery = HistoryQuery(),
        every step: Duration
    ) throws(StoreFault) -> [HistoryBucket] {
        var buckets: [HistoryBucket] = []
        try reader.buckets(query, every: step) { bucket in
            buckets.append(bucket)
            return true
        }
        return buckets
    }

    @Test func `a reader returns the latest values and the newest events and rejects of a device`() async throws {
        try await fill(seconds: 3)
        #expect(try reader.latest(device: "b").map(\.value) == [.integer(2), .real(0.5)])
        #expect(try reader.latest().map(\.series.device) == ["a", "a", "b", "b"])

        let events = (0..<5).map { number in
            LifecycleEvent(
                time: Fixture.epoch.advanced(by: .seconds(number / 2)),
                device: number == 3 ? nil : "a",
                kind: "link",
                ["n": .integer(Int64(number))]
            )
        }
        try await history.record(events)
        #expect(try reader.events(newest: 2) == Array(events.suffix(2)))
        #expect(try reader.events(device: "a", newest: 2) == [events[2], events[4]])
        #expect(try reader.events(device: "b", newest: 2).isEmpty)
        #expect(try reader.gatewayEvents(kinds: [events[3].kind], newest: 2) == [events[3]])
        #expect(try reader.events(kinds: ["output", "link"], newest: 2) == Array(events.suffix(2)))
        #expect(try reader.events(kinds: ["output"], newest: 2).isEmpty)

        var batch = ReadingBatch()
        batch.rejects = (0..<5).map { number in
            Reject(
                time: Fixture.epoch.advanced(by: .seconds(number)),
                device: number % 2 == 0 ? "a" : "b",
                characteristic: "2a37",
                payload: [UInt8(number)],
                reason: "too short"
            )
        }
        try await history.append(batch)
        var rejects: [Reject] = []
        try reader.rejects(HistoryQuery(device: "a", since: Fixture.epoch.advanced(by: .seconds(1)))) { reject in
            rejects.append(reject)
            return true
        }
        #expect(rejects == [batch.rejects[2], batch.rejects[4]])
    }

    @Test func `a closed history can be read, and a missing one is an error with a remedy`() async throws {
        try await fill(seconds: 1)
        try await history.close()
        #expect(try HistoryReader(path: folder.database).allRows().count == 4)
        let fault = #expect(throws: StoreFault.self) { try HistoryReader(path: folder.file("no.db")) }
        #expect(fault?.detail.contains("there is no history here yet") == true)
    }

    @Test(
        arguments: [
            ("", "the file is empty; the daemon creates the history when it starts"),
            (
                "devices:\n  - name: strap\n",
                "this is text, not a history; choose the file of the daemon's history.path"
            ),
            ("PK\u{3}\u{4}\u{0}\u{0}", "this is a file of another kind, not a history; choose the file"),
        ]
    )
    func `readers name the content of a file that is not a history`(text: String, message: String) throws {
        let path = try folder.write(text, to: "other.db")
        let faults = [
            #expect(throws: StoreFault.self) { try HistoryReader(path: path) },
            #expect(throws: StoreFault.self) { try Compaction(path: path) },
            #expect(throws: StoreFault.self) { try SummaryRepair.run(path: path) },
        ]
        for fault in faults { #expect(fault?.detail.hasPrefix("\(path): \(message)") == true) }
        #expect(try String(contentsOf: URL(filePath: path), encoding: .utf8) == text)
        #expect(!FileManager.default.fileExists(atPath: path + "-lock"))
    }

    @Test func `readers name a directory, another program's database and one without tables`() async throws {
        let directory = #expect(throws: StoreFault.self) { try HistoryReader(path: folder.path) }
        #expect(directory?.detail.contains("this is a directory, not a history; choose the file of") == true)
        let path = folder.file("other.db")
        let shell = SQLiteShell(path)
        _ = try await shell.rows("PRAGMA application_id = \(Schema.applicationID)")
        let empty = #expect(throws: StoreFault.self) { try HistoryReader(path: path) }
        #expect(empty?.detail.contains("the database is empty; the daemon creates its tables") == true)
        _ = try await shell.rows("PRAGMA application_id = 7; CREATE TABLE theirs (x)")
        let other = #expect(throws: StoreFault.self) { try HistoryReader(path: path) }
        let message = "this is another program's database (application_id 7), not a history; choose the file of"
        #expect(other?.detail.contains(message) == true)
    }

    @Test(arguments: [0..<100, 16..<100])
    func `readers report a history with a damaged header`(damage: Range<Int>) async throws {
        try await fill(seconds: 1)
        try await history.close()
        var bytes = try Data(contentsOf: URL(filePath: folder.database))
        for index in damage { bytes[index] = 0xAA }
        try bytes.write(to: URL(filePath: folder.database))
        let fault = #expect(throws: StoreFault.self) { try HistoryReader(path: folder.database) }
        #expect(fault?.kind == .damaged)
        #expect(fault?.detail.contains("the beginning of the file is damaged") == true)
        #expect(fault?.detail.contains("'gattherd db restore FILE' replaces it by a backup") == true)
    }

    @Test func `a reader cannot change anything`() async throws {
        try await fill(seconds: 1)
        let connection = try HistoryDatabase.openForReading(folder.database)
        for sql in ["DELETE FROM sample", "CREATE TABLE theirs (x)", "PRAGMA user_version = 7"] {
            #expect(throws: StoreFault.self) { try connection.execute(sql) }
        }
        #expect(try reader.allRows().count == 4)
    }
}
