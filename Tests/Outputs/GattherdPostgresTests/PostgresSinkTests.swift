import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct PostgresSinkTests {
    @Test func `an entry arrives once, however often its batch is repeated`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        #expect(try await sink.cursor(in: .test) == 0)
        let entries = Entries.numbered(1...300)
        try await sink.write(Array(entries[..<200]), after: 0, through: 200)
        try await sink.write(Array(entries[..<200]), after: 0, through: 200)
        try await sink.write(Array(entries[100...]), after: 100, through: 300)
        #expect(try await sink.cursor(in: .test) == 300)
        let rows = try await centre.rows("SELECT seq, value FROM gattherd.history ORDER BY seq")
        #expect(rows == (1...300).map { ["\($0)", "\($0)"] })
        #expect(try await centre.value("SELECT sum(n) FROM gattherd.history_minutes") == "300")
        #expect(try await centre.value("SELECT sum(n) FROM gattherd.history_hours") == "300")
        let gateways = try await centre.rows("SELECT gateway, version, cursor, lag, devices FROM gattherd.gateways")
        #expect(gateways == [["attic", "1.2.3", "300", "0", "1"]])
    }

    @Test func `entries after the centre's cursor are refused`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        _ = try await sink.cursor(in: .test)
        let error = await #expect(throws: OutputFault.self) {
            try await sink.write(Entries.numbered(11...20), after: 10, through: 20)
        }
        #expect(error?.kind == .unavailable)
        #expect(try await sink.cursor(in: .test) == 0)
        #expect(try await centre.rows("SELECT * FROM gattherd.history").isEmpty)
    }

    @Test func `a gap moves the cursor and is recorded with its reason`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        _ = try await sink.cursor(in: .test)
        try await sink.record(JournalGap(after: 0, through: 41, reason: "deleted for its age"))
        try await sink.record(JournalGap(after: 0, through: 41, reason: "deleted for its age"))
        try await sink.write([Entries.reading(42, (0, .integer(85)))], after: 41, through: 42)
        let gaps = try await centre.rows("SELECT gateway, after, through, reason FROM gattherd.gaps")
        #expect(gaps == [["attic", "0", "41", "deleted for its age"]])
        #expect(try await sink.cursor(in: .test) == 42)
    }

    @Test func `a gap that begins after the centre's cursor is refused`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        let error = await #expect(throws: OutputFault.self) {
            try await sink.record(JournalGap(after: 20, through: 41, reason: "deleted for its age"))
        }
        #expect(error?.kind == .unavailable)
        #expect(try await sink.cursor(in: .test) == 10)
        #expect(try await centre.rows("SELECT * FROM gattherd.gaps").isEmpty)
        try await sink.record(JournalGap(after: 5, through: 41, reason: "deleted for its age"))
        #expect(try await centre.rows("SELECT after, through FROM gattherd.gaps") == [["10", "41"]])
    }

    @Test func `a request for the cursor takes no lock that a late batch or a lease needs`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        _ = try await sink.cursor(in: .test)
        // A batch whose gateway has lost the connection.
        let late = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await late.run("BEGIN")
        _ = try await late.run("SELECT id FROM gattherd.journal FOR UPDATE")
        async let cursor = sink.cursor(in: .test)
        while try await centre.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {}
        _ = try await late.run("SELECT id FROM gattherd.gateway FOR NO KEY UPDATE NOWAIT")
        _ = try await late.run("COMMIT")
        #expect(try await cursor == 0)
        late.close()
    }

    @Test func `a new epoch starts at 0, and one that continues another goes on from its cursor`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        #expect(try await sink.cursor(in: .other) == 0)
        let next = JournalEpoch("11111111111111111111111111111111", earlier: [JournalEpoch.test.text], after: 10)
        #expect(try await sink.cursor(in: next) == 10)
        try await sink.deliver(Entries.numbered(1...20), in: next)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "20")
        #expect(try await sink.cursor(in: .test) == 20)
    }

    @Test func `the epoch of an older copy begins after the entries that the centre has in its origin`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        let origin = JournalEpoch.test.text
        // A correction of many rows was not complete yet.
        _ = try await centre.rows("INSERT INTO gattherd.correction VALUES (1, 100, 0, 10, 10000000, 0)")
        let copy = JournalEpoch(JournalEpoch.other.text, origin: JournalEpoch.Origin(origin, through: 7))
        for _ in 0..<2 { #expect(try await sink.cursor(in: copy) == 7) }
        await sink.continueCorrections()
        let times = "SELECT min(ts), max(ts) FROM gattherd.history WHERE epoch = '\(origin)'"
        let expected = [10, 100].map { Entries.time.advanced(by: .milliseconds(10_000 + $0)).microseconds.description }
        #expect(try await centre.rows(times) == [expected])
        #expect(try await centre.rows("SELECT epoch, cursor FROM gattherd.gateways") == [[copy.text, "7"]])
        let gaps = try await centre.rows("SELECT epoch, after, through, reason FROM gattherd.gaps")
        #expect(gaps.map { Array($0.dropLast()) } == [[copy.text, "0", "7"]])
        #expect(gaps.first?.last?.contains("in the epoch \(origin)") == true)
        try await sink.deliver(Entries.numbered(8...9), in: copy)
        // A centre that lacks some of the common entries, or all of them, gets these.
        let texts = ["1", "2", "3"].map { String(repeating: $0, count: 32) }
        let longer = JournalEpoch(texts[0], origin: JournalEpoch.Origin(origin, through: 50))
        #expect(try await sink.cursor(in: longer) == 10)
        let unknown = JournalEpoch(texts[1], origin: JournalEpoch.Origin(texts[2], through: 50))
        #expect(try await sink.cursor(in: unknown) == 0)
        #expect(try await centre.rows("SELECT epoch, cursor FROM gattherd.gateways") == [[unknown.text, "0"]])
    }

    @Test func `a file that was restored twice while the centre was away repeats nothing`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        let (unknown, newest) = (String(repeating: "1", count: 32), String(repeating: "2", count: 32))
        let epoch = JournalEpoch(newest, earlier: [unknown, JournalEpoch.test.text], after: 20)
        #expect(try await sink.cursor(in: epoch) == 10)
    }

    @Test func `a gateway that returns to an older journal has the backlog and the cursor of that one`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let state = "SELECT epoch, cursor, lag FROM gattherd.gateways"
        try await sink.deliver(Entries.numbered(1...10))
        try await sink.deliver(Entries.numbered(1...3), in: .other)
        #expect(try await centre.rows(state) == [[JournalEpoch.other.text, "3", "0"]])
        for (epoch, end) in [(JournalEpoch.test, 20), (JournalEpoch.other, 30), (JournalEpoch.test, 40)] {
            try await sink.deliver(Entries.numbered(1...Int64(end)), in: epoch)
            #expect(try await centre.rows(state) == [[epoch.text, "\(end)", "0"]])
        }
        // The clock of the database has been ahead.
        _ = try await centre.rows("UPDATE gattherd.journal SET since = since + interval '1 year' WHERE cursor = 40")
        #expect(try await sink.cursor(in: .other) == 30)
        #expect(try await centre.value("SELECT cursor FROM gattherd.gateways") == "30")
    }

    @Test func `all kinds of entries arrive with the columns of the file`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let (device, time) = ("strap", Entries.time)
        let reject = Reject(time: time, device: device, characteristic: "2a37", payload: [0, 255], reason: "short")
        try await sink.deliver([
            Entries.reading(
                1,
                (0, .real(61.5)),
                (1, .boolean(true)),
                (2, .integer(800)),
                (2, .integer(810)),
                (3, .text("on")),
                (0, .null)
            ),
            .event(LifecycleEvent(time: time, device: nil, kind: "daemon", detail: #"{"state":"started"}"#), seq: 2),
            .reject(reject, seq: 3),
        ])
        let history = try await centre.rows(
            """
            SELECT gateway, seq, ts, time, device, profile, stream, metric, value, unit, source, element, kind,
                label
            FROM gattherd.history ORDER BY metric, element, value
            """
        )
        let head = [
            "attic", "1", "1795231205123456", "2026-11-21T03:20:05.123456Z", "strap", "heart-rate", "heart_rate",
        ]
        #expect(
            history == [
                head + ["bpm", "61.5", "bpm", "notify", "NULL", "gauge", "NULL"],
                head + ["bpm", "NULL", "bpm", "notify", "NULL", "gauge", "NULL"],
                head + ["contact", "1", "NULL", "notify", "NULL", "state", "NULL"],
                head + ["mode", "NULL", "NULL", "notify", "NULL", "state", "on"],
                head + ["rr_interval", "800", "ms", "notify", "0", "gauge", "NULL"],
                head + ["rr_interval", "810", "ms", "notify", "1", "gauge", "NULL"],
            ]
        )
        #expect(
            try await centre.rows("SELECT gateway, ts, time, device, kind, detail FROM gattherd.events")
                == [["attic", head[2], head[3], "NULL", "daemon", #"{"state":"started"}"#]]
        )
        #expect(
            try await centre.rows("SELECT * FROM gattherd.rejects")
                == [["attic", head[2], head[3], "strap", "2a37", "00ff", "short"]]
        )
    }

    @Test func `values and times at the limits arrive, and never block the entries after them`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let times = [Int64.min, -62_135_596_800_000_001, -1, 253_402_300_800_000_000, .max]
        let values: [SampleValue] = [
            .integer(.min), .integer(.max), .real(.nan), .real(-.infinity), .real(.greatestFiniteMagnitude),
            .real(.leastNonzeroMagnitude), .text("a\0b"), .text(""), .text(String(repeating: "ä", count: 100_000)),
        ]
        var entries: [JournalEntry] = []
        for time in times {
            for value in values {
                let seq = Int64(entries.count) + 1
                entries.append(Entries.reading(seq, at: Timestamp(microseconds: time), (0, value), (0, value)))
            }
        }
        let event = LifecycleEvent(time: Timestamp(microseconds: .min), device: "\0", kind: "x", detail: "\0")
        entries.append(.event(event, seq: 100))
        #expect(try await sink.deliver(entries, batch: 7).isEmpty)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "\(times.count * values.count * 2)")
        let whole = try await centre.rows(
            "SELECT DISTINCT whole FROM gattherd.history WHERE whole IS NOT NULL ORDER BY 1"
        )
        #expect(whole == [["9223372036854775807"]], "-2^63 is a real, too")
        #expect(
            try await centre.value("SELECT DISTINCT label FROM gattherd.history WHERE label LIKE 'a%b'") == "a\u{FFFD}b"
        )
        let dates = try await centre.rows("SELECT DISTINCT time FROM gattherd.history ORDER BY 1")
        #expect(dates == [["1969-12-31T23:59:59.999999Z"], ["NULL"]])
        let sums = try await centre.value(
            "SELECT count(*) FROM gattherd.history_minutes WHERE n = 8 AND max > 1e308 AND mean > 1e296"
        )
        #expect(sums == "\(times.count)", "sums are limited, not refused")
    }

    @Test func `means of the smallest numbers are 0, and do not fail the query`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver([
            Entries.reading(1, (0, .real(.leastNonzeroMagnitude))), Entries.reading(2, (0, .integer(0))),
            Entries.reading(3, (0, .real(-.leastNonzeroMagnitude))),
            Entries.reading(4, (0, .real(.leastNormalMagnitude))),
        ])
        for view in ["history_minutes", "history_hours"] {
            #expect(try await centre.rows("SELECT n, mean FROM gattherd.\(view)") == [["4", "0"]])
        }
    }

    @Test func `an entry that the centre can never store is refused, and becomes a gap`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        _ = try await sink.cursor(in: .test)
        var random = SystemRandomNumberGenerator()
        let name = String((0..<20_000).map { _ in "abcdefghijklmnop".randomElement(using: &random) ?? "a" })
        let stream = StreamDefinition(
            device: name,
            profile: "p",
            stream: "s",
            metrics: [MetricDescriptor(name: "m")]
        )
        let error = await #expect(throws: OutputFault.self) {
            try await sink.write([Entries.reading(1, (0, .integer(1)), of: stream)], after: 0, through: 1)
        }
        #expect(error?.kind == .refused)
        // The framework then writes a batch without entries, which moves the cursor.
        try await sink.write([], after: 0, through: 1)
        try await sink.write([Entries.reading(2, (0, .integer(1)))], after: 1, through: 2)
        #expect(try await centre.value("SELECT seq FROM gattherd.history") == "2")
        #expect(try await centre.rows("SELECT after, through FROM gattherd.gaps") == [["0", "1"]])
    }

    @Test func `gateways cannot write or read each other's rows, nor use each other's names`() async throws {
        let centre = try await Centre()
        let attic = try await centre.sink(of: "attic")
        let cellar = try await centre.fleet.add(gateway: "cellar")
        try await attic.deliver(Entries.numbered(1...10))
        let same = try centre.sink(of: "cellar", cellar)
        #expect(try await same.cursor(in: .test) == 0, "the same epoch is another journal")
        try await same.deliver(Entries.numbered(1...5))
        let counts = try await centre.rows("SELECT gateway, count(*) FROM gattherd.history GROUP BY 1 ORDER BY 1")
        #expect(counts == [["attic", "10"], ["cellar", "5"]])
        let liar = try centre.sink(of: "cellar", cellar, named: "attic")
        let error = await #expect(throws: OutputFault.self) { _ = try await liar.cursor(in: .test) }
        #expect(error?.kind == .misconfigured)
        let url = try Centre.url(centre.server.port)
        let client = PostgresClient(url, user: cellar.role) { cellar.password }
        for statement in [
            "SELECT * FROM gattherd.history", "SELECT * FROM gattherd.sample", "DELETE FROM gattherd.journal",
            "SELECT gattherd.lock_journal('x')", "SELECT gattherd.move_extent(1, 1, 0, 9, 9, 0, 9)",
            "CREATE TABLE gattherd.mine (x int)", "SELECT gattherd.admit('gattherd_cellar')",
        ] {
            let error = await #expect(throws: PostgresError.self) { _ = try await client.run(statement) }
            #expect(error?.sqlState == "42501", "\(statement)")
        }
    }
}
