import GattherdHistory
import GattherdModel
import TestKit
import Testing

/// The views are a contract: read here with the `sqlite3` program, while the writer has the file open.
@Suite(.timeLimit(.minutes(3)))
struct ViewTests {
    private let folder: TemporaryFolder
    private let history: ReadingHistory

    init() async throws {
        folder = try TemporaryFolder()
        history = try await .open(folder)
    }

    @Test(
        arguments: [
            ("history", "seq,ts,time,device,profile,stream,metric,value,unit,source,element,kind"),
            ("latest", "seq,ts,time,device,profile,stream,metric,value,unit,source,element,kind"),
            ("series", "device,profile,stream,metric,unit,kind,first,last,first_ts,last_ts"),
            ("history_minutes", "ts,time,device,metric,unit,n,min,mean,max,stream"),
            ("history_hours", "ts,time,device,metric,unit,n,min,mean,max,stream"),
            ("devices", "device,address,name,profiles,first_seen,last_seen"),
            ("events", "ts,time,device,kind,detail"),
            ("rejects", "ts,time,device,characteristic,bytes,reason"),
        ]
    )
    func `each view has the columns of its contract, in order`(view: String, expected: String) async throws {
        let names = try await folder.shell.value("SELECT group_concat(name) FROM pragma_table_info('\(view)')")
        #expect(names == expected)
    }

    @Test func `a reading is a row per sample, a repeated metric a row per element`() async throws {
        var batch = ReadingBatch()
        batch.add(
            Fixture.heartRate(),
            (0, .integer(72)),
            (1, .boolean(true)),
            (2, .real(0.8125)),
            (2, .real(0.8134765625))
        )
        batch.add(Fixture.heartRate(), by: .read, (0, .null))
        try await history.append(batch)
        let start = ["1", "1795231205123456", "2026-11-21T03:20:05.123456Z", "strap", "heart-rate", "heart_rate"]
        #expect(
            try await folder.shell.rows("SELECT * FROM history") == [
                start + ["heart_rate", "72", "bpm", "notify", "NULL", "gauge"],
                start + ["sensor_contact", "1", "NULL", "notify", "NULL", "state"],
                start + ["rr_interval", "0.8125", "s", "notify", "0", "gauge"],
                start + ["rr_interval", "0.8134765625", "s", "notify", "1", "gauge"],
                ["2"] + start.dropFirst() + ["heart_rate", "NULL", "bpm", "read", "NULL", "gauge"],
            ]
        )
        let latest = "SELECT metric, value, element, kind FROM latest WHERE metric = 'rr_interval'"
        #expect(try await folder.shell.rows(latest) == [["rr_interval", "0.8134765625", "1", "gauge"]])
    }

    @Test func `elements of two lists match by their index in any order`() async throws {
        let stream = StreamDefinition(
            device: "radar",
            profile: "test",
            stream: "targets",
            metrics: ["range", "speed"].map { MetricDescriptor(name: $0, isRepeated: true) }
        )
        var batch = ReadingBatch()
        batch.add(stream, (0, .integer(10)), (1, .integer(1)), (0, .integer(20)), (1, .integer(2)))
        batch.add(stream, (0, .integer(30)), (0, .integer(40)), (1, .integer(3)), (1, .integer(4)))
        try await history.append(batch)
        let pairs = """
            SELECT range.value, speed.value FROM history AS range JOIN history AS speed USING (ts, seq, element)
            WHERE range.metric = 'range' AND speed.metric = 'speed' ORDER BY 1
            """
        #expect(try await folder.shell.rows(pairs) == [["10", "1"], ["20", "2"], ["30", "3"], ["40", "4"]])
    }

    @Test func `a series begins at its first sample, late, imported or purged`() async throws {
        for (second, source) in [(10, ReadingSource.notify), (20, .read), (5, .read)] {
            var batch = ReadingBatch()
            let time = Fixture.epoch.advanced(by: .seconds(second))
            batch.add(Fixture.heartRate(), at: time, by: source, (0, .integer(60)), (1, .boolean(true)))
            try await history.append(batch)
        }
        let rows = try await folder.shell.rows("SELECT * FROM series ORDER BY metric")
        let start = ["strap", "heart-rate", "heart_rate"]
        let times = [5, 10].map { Fixture.epoch.advanced(by: .seconds($0)) }
        let end = times.map(\.rfc3339) + times.map { "\($0.microseconds)" }
        #expect(
            rows == [
                start + ["heart_rate", "bpm", "gauge"] + end, start + ["sensor_contact", "NULL", "state"] + end,
            ]
        )
    }

    /// The queries of the README, `profile show` and `simulate`, on whose plan their speed depends.
    static let recommended = [
        "SELECT * FROM history ORDER BY ts DESC LIMIT 10",
        """
        SELECT time, value FROM history WHERE device = 'strap' AND metric = 'heart_rate' ORDER BY ts DESC LIMIT 5
        """,
        "SELECT time, value FROM history WHERE ts >= (unixepoch('now') - 3600) * 1000000",
        "SELECT * FROM history WHERE device = 'strap' AND stream = 'heart_rate' ORDER BY ts DESC LIMIT 20",
    ]

    @Test(arguments: recommended)
    func `recommended queries scan samples by time without sorting`(query: String) async throws {
        try await history.append(.plain(integers: 0..<1000))
        let plan = try await folder.shell.text("EXPLAIN QUERY PLAN \(query)")
        #expect(plan.contains("sample USING PRIMARY KEY") || plan.contains("SCAN sample\n"), "\(plan)")
        #expect(!plan.contains("TEMP B-TREE") && !plan.contains("AUTOMATIC"), "\(plan)")
    }

    @Test func `latest has the newest row per stream and metric of all sources, also with wrong clocks`() async throws {
        var batch = ReadingBatch()
        batch.add(Fixture.heartRate("a"), (0, .integer(1)), (2, .real(0.5)), (2, .real(0.75)))
        batch.add(Fixture.heartRate("b"), (0, .integer(2)))
        try await history.append(batch)
        batch.removeAll()
        batch.add(
            Fixture.heartRate("a"),
            at: Fixture.epoch.advanced(by: .seconds(-86_400)),
            by: .read,
            (0, .integer(3))
        )
        try await history.append(batch)
        let rows = try await folder.shell.rows("SELECT seq, device, metric, value FROM latest ORDER BY device, metric")
        #expect(
            rows == [
                ["3", "a", "heart_rate", "3"], ["1", "a", "rr_interval", "0.75"], ["2", "b", "heart_rate", "2"],
            ]
        )
    }

    @Test func `streams with one metric name have rows of their own in latest, minutes and hours`() async throws {
        let streams = ["battery", "vendor"].map { Fixture.battery($0) }
        for minute in 0..<3 {
            var batch = ReadingBatch()
            let time = Fixture.epoch.advanced(by: .seconds(minute * 60))
            batch.add(streams[0], at: time, (0, .integer(98)))
            batch.add(streams[1], at: time, (0, .integer(Int64(10 + minute))))
            try await history.append(batch)
        }
        let latest = try await folder.shell.rows("SELECT stream, metric, value FROM latest ORDER BY stream")
        #expect(latest == [["battery", "battery_level", "98"], ["vendor", "battery_level", "12"]])
        let minutes = "SELECT stream, n, min, mean, max FROM history_minutes ORDER BY stream, ts"
        #expect(
            try await folder.shell.rows(minutes) == Array(repeating: ["battery", "1", "98", "98.0", "98"], count: 3)
                + (10...12).map { ["vendor", "1", "\($0)", "\($0).0", "\($0)"] }
        )
        let hours = "SELECT stream, n, min, mean, max FROM history_hours ORDER BY stream"
        #expect(
            try await folder.shell.rows(hours) == [
                ["battery", "3", "98", "98.0", "98"], ["vendor", "3", "10", "11.0", "12"],
            ]
        )
    }

    @Test func `minutes and hours count numbers only and are aligned to UTC`() async throws {
        let minute = Timestamp(microseconds: 1_795_231_200_000_000)
        try await history.append(.plain([.integer(1), .real(2.5), .null, .text("x")], at: minute))
        try await history.append(.plain([.boolean(true)], at: minute.advanced(by: .microseconds(59_999_999))))
        try await history.append(.plain([.integer(7)], at: minute.advanced(by: .seconds(60))))
        try await history.append(.plain([.integer(9)], at: minute.advanced(by: .microseconds(-1))))
        try await history.append(.plain([.text("only text")], at: minute.advanced(by: .seconds(7200))))
        let columns = "time, device, metric, unit, n, min, mean, max"
        #expect(
            try await folder.shell.rows("SELECT \(columns) FROM history_minutes") == [
                ["2026-11-21T03:19:00.000000Z", "box", "value", "NULL", "1", "9", "9.0", "9"],
                ["2026-11-21T03:20:00.000000Z", "box", "value", "NULL", "3", "1", "1.5", "2.5"],
                ["2026-11-21T03:21:00.000000Z", "box", "value", "NULL", "1", "7", "7.0", "7"],
            ]
        )
        #expect(
            try await folder.shell.rows("SELECT \(columns) FROM history_hours") == [
                ["2026-11-21T03:00:00.000000Z", "box", "value", "NULL", "5", "1", "4.1", "9"]
            ]
        )
    }

    @Test(
        arguments: [
            -62_167_219_200_000_000, -62_135_596_800_000_001, -1, 0, 951_782_400_000_000, 4_107_542_399_999_999,
            253_402_300_799_999_999,
        ]
    )
    func `the time column is right for the years 0 to 9999`(microseconds: Int64) async throws {
        let time = Timestamp(microseconds: microseconds)
        try await history.append(.plain([.integer(1)], at: time))
        #expect(try await folder.shell.rows("SELECT ts, time FROM history") == [["\(microseconds)", time.rfc3339]])
    }

    @Test func `a device has the times of its first and last sighting`() async throws {
        let later = Fixture.epoch.advanced(by: .seconds(10))
        try await history.record(
            DeviceRecord(
                device: "strap",
                address: "C0:FF:EE:00:00:01",
                name: "H10",
                profiles: ["heart-rate", "battery"]
            ),
            seenAt: Fixture.epoch
        )
        try await history.record(DeviceRecord(device: "strap", address: "C0:FF:EE:00:00:02"), seenAt: later)
        let columns = "device, address, name, profiles, first_seen, last_seen"
        let known = ["strap", "C0:FF:EE:00:00:02", "H10", "heart-rate,battery", Fixture.epoch.rfc3339]
        #expect(try await folder.shell.rows("SELECT \(columns) FROM devices") == [known + [later.rfc3339]])

        let reading = later.advanced(by: .seconds(1))
        var batch = ReadingBatch()
        batch.add(Fixture.heartRate(), at: reading, (0, .integer(60)))
        try await history.append(batch)
        #expect(try await folder.shell.rows("SELECT \(columns) FROM devices") == [known + [reading.rfc3339]])
    }

    @Test func `readers also see the enrolled devices that were saved last`() async throws {
        let reader = try HistoryReader(path: folder.database)
        #expect(try reader.enrolledDevices().isEmpty)
        let first = EnrolledDevice(device: "b", address: "B", rule: "{address} x", silence: .milliseconds(2500))
        let second = EnrolledDevice(device: "a", address: "A", rule: "r")
        try await history.setEnrolled([first])
        try await history.setEnrolled([first, second])
        var kept = first
        kept.silence = .seconds(2)
        #expect(try await history.enrolledDevices() == [second, kept])
        try await history.setEnrolled([second])
        #expect(try reader.enrolledDevices() == [second])
    }

    @Test func `events and rejects keep their time, device and text`() async throws {
        try await history.record([
            LifecycleEvent(
                time: Fixture.epoch,
                device: "strap",
                kind: "link",
                ["to": .text("ready"), "attempt": .integer(1)]
            ),
            LifecycleEvent(time: Fixture.epoch, kind: "adapter", [:]),
        ])
        var batch = ReadingBatch()
        batch.rejects = [
            Reject(
                time: Fixture.epoch,
                device: "strap",
                characteristic: "2a37",
                payload: [0x01, 0xFE],
                reason: "too short"
            ),
            Reject(time: Fixture.epoch, device: "strap", characteristic: "2a37", payload: [], reason: "empty"),
        ]
        try await history.append(batch)
        let (ts, time) = ("\(Fixture.epoch.microseconds)", Fixture.epoch.rfc3339)
        #expect(
            try await folder.shell.rows("SELECT * FROM events") == [
                [ts, time, "strap", "link", #"{"to":"ready","attempt":1}"#], [ts, time, "NULL", "adapter", "{}"],
            ]
        )
        #expect(
            try await folder.shell.rows("SELECT * FROM rejects") == [
                [ts, time, "strap", "2a37", "01fe", "too short"], [ts, time, "strap", "2a37", "", "empty"],
            ]
        )
    }

    @Test func `a query by time uses the primary key and does not scan the table`() async throws {
        let plan = try await folder.shell.rows(
            "EXPLAIN QUERY PLAN SELECT * FROM history WHERE ts >= 5 AND device = 'strap' ORDER BY ts"
        )
        #expect(plan.joined().joined().contains("SEARCH sample USING PRIMARY KEY (ts>?)"))
    }
}
