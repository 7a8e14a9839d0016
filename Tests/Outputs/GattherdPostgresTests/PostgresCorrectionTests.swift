import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct PostgresCorrectionTests {
    /// 2026-11-23T23:59:00Z.
    private static let evening = Timestamp(microseconds: 1_795_478_340_000_000)

    private static func correction(_ seq: Int64, after: Int64, through: Int64, by shift: Duration) -> JournalEntry {
        .correction(ClockCorrection(after: after, through: through, shift: shift), seq: seq)
    }

    @Test(arguments: [Duration.seconds(150), .seconds(-30), .seconds(20 * 365 * 86_400), .milliseconds(1)])
    func `a correction moves rows to their own day, with their summaries`(shift: Duration) async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        var entries = Entries.numbered(1...200, from: Self.evening, step: .seconds(1))
        let event = LifecycleEvent(time: Self.evening, device: nil, kind: "daemon", detail: "{}")
        entries += [.event(event, seq: 201), Self.correction(202, after: 50, through: 201, by: shift)]
        entries += Entries.numbered(203...260, from: Self.evening, step: .seconds(1))
        try await sink.deliver(entries, batch: 120)
        let rows = try await centre.rows("SELECT seq, ts FROM gattherd.history ORDER BY seq")
        let expected = entries.compactMap(\.reading).map { reading in
            let time = (51...201).contains(reading.seq) ? reading.time.advanced(by: shift) : reading.time
            return ["\(reading.seq)", "\(time.microseconds)"]
        }
        #expect(rows == expected)
        #expect(
            try await centre.value("SELECT ts FROM gattherd.events")
                == "\(Self.evening.advanced(by: shift).microseconds)"
        )
        // By 150 s, some readings move past the last one.
        let latest = shift == .seconds(150) ? "200" : "260"
        #expect(try await centre.value("SELECT seq FROM gattherd.latest") == latest)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.correction") == "0")
        try await centre.expectSummaries()
    }

    @Test func `a correction keeps the summaries of samples that the retention has deleted`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let hour = try await centre.value("SELECT floor(extract(epoch FROM now()) / 3600) * 3600000000")
        let past = Timestamp(microseconds: try #require(Int64(hour)) - 40 * 86_400_000_000)
        _ = try await centre.rows("UPDATE gattherd.retention SET keep = '30 days' WHERE kind = 'samples'")
        try await sink.deliver(Entries.numbered(1...10, from: past, step: .seconds(5)))
        _ = try await centre.rows(
            "UPDATE gattherd.extent SET came = came - interval '40 days'; UPDATE gattherd.upkeep SET done = '-infinity'"
        )
        for _ in 0..<100 where try await centre.value("SELECT gattherd.maintain()") == "f" { break }
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "0")
        let correction = Self.correction(15, after: 10, through: 14, by: .seconds(40 * 86_400))
        try await sink.deliver(Entries.numbered(11...14, from: past, step: .seconds(1)) + [correction])
        for view in ["history_minutes", "history_hours"] {
            let rows = try await centre.rows("SELECT n, min, mean FROM gattherd.\(view) ORDER BY ts")
            #expect(rows == [["10", "1", "5.5"], ["4", "11", "12.5"]], "\(view)")
        }
    }

    @Test func `a correction that was not complete when history was replaced is completed`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10, from: Self.evening))
        _ = try await centre.rows("INSERT INTO gattherd.correction VALUES (1, 11, 0, 10, 10000000, 0)")
        try await sink.deliver(Entries.numbered(1...5, from: Self.evening), in: .other)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.correction") == "0")
        for (epoch, shift) in [(JournalEpoch.test, Duration.seconds(10)), (JournalEpoch.other, Duration.zero)] {
            let first = Self.evening.advanced(by: shift + .milliseconds(10)).microseconds
            let found = try await centre.value("SELECT min(ts) FROM gattherd.history WHERE epoch = '\(epoch.text)'")
            #expect(found == "\(first)")
        }
    }

    @Test func `steps of a correction that a promoted standby lacks are taken after the next report`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10, from: Self.evening))
        _ = try await centre.rows("INSERT INTO gattherd.correction VALUES (1, 11, 0, 10, 10000000, 0)")
        await sink.report()
        await sink.continueCorrections()
        #expect(try await centre.value("SELECT count(*) FROM gattherd.correction") == "0")
        let first = Self.evening.advanced(by: .milliseconds(10_010)).microseconds
        #expect(try await centre.value("SELECT min(ts) FROM gattherd.history") == "\(first)")
    }

    @Test func `the first time of a series moves once by a correction of many extents`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        var entries = Entries.numbered(1...30_000, from: Self.evening, step: .milliseconds(400))
        entries.append(Self.correction(30_001, after: 0, through: 30_000, by: .seconds(5000)))
        #expect(try await sink.deliver(entries, batch: 1000).isEmpty)
        #expect(try await centre.value("SELECT count(*) > 2 FROM gattherd.extent") == "t")
        let first = Self.evening.advanced(by: .milliseconds(5_000_400)).microseconds
        #expect(try await centre.value("SELECT first_ts FROM gattherd.series") == "\(first)")
        #expect(try await centre.value("SELECT min(ts) FROM gattherd.history") == "\(first)")
    }

    @Test func `corrections of corrected rows add up, over many batches and devices`() async throws {
        let centre = try await Centre()
        let (attic, cellar) = (try await centre.sink(of: "attic"), try await centre.sink(of: "cellar"))
        let start = Timestamp(microseconds: 1_000_000_000)
        var entries = Entries.numbered(1...30_000, from: start, step: .milliseconds(400))
        entries += [
            Self.correction(30_001, after: 0, through: 20_000, by: .seconds(1_795_000_000)),
            Self.correction(30_002, after: 10_000, through: 30_000, by: .seconds(100)),
        ]
        try await cellar.deliver(Entries.numbered(1...500, from: start, step: .seconds(1)))
        #expect(try await attic.deliver(entries, batch: 1000).isEmpty)
        let sums = """
            SELECT count(*), min(ts), max(ts) FROM gattherd.history WHERE gateway = 'attic' AND seq
            """
        let first = try await centre.rows("\(sums) <= 10000")
        let second = try await centre.rows("\(sums) BETWEEN 10001 AND 20000")
        let third = try await centre.rows("\(sums) > 20000")
        #expect(first == [["10000", "1795001000400000", "1795005000000000"]])
        #expect(second == [["10000", "1795005100400000", "1795009100000000"]])
        #expect(third == [["10000", "9100400000", "13100000000"]])
        try await centre.expectSummaries()
    }
}
