import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(3)))
struct ImportTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let value = HistorySeries(
        device: "box",
        profile: "test",
        stream: "plain",
        metric: "value",
        unit: nil,
        source: "notify"
    )

    private static let interval = HistorySeries(
        device: "strap",
        profile: "heart-rate",
        stream: "heart_rate",
        metric: "rr_interval",
        unit: "s",
        source: "notify",
        isRepeated: true
    )

    private func row(_ second: Int, _ value: Int, _ series: HistorySeries = Self.value, seq: Int64 = 0) -> HistoryRow {
        let time = Fixture.epoch.advanced(by: .seconds(second))
        return HistoryRow(seq: seq, time: time, series: series, value: .integer(Int64(value)))
    }

    @discardableResult
    private func importing(_ rows: [HistoryRow]) throws(StoreFault) -> (stored: Int, known: Int) {
        let target = try HistoryImport(path: folder.database)
        try target.add(rows)
        try target.finish()
        return (target.stored, target.known)
    }

    private func values() async throws -> [String] {
        try await folder.shell.rows("SELECT value FROM history ORDER BY ts, seq").map { $0[0] }
    }

    @Test func `imported samples have numbers below zero, in a new file too`() async throws {
        #expect(try importing([row(0, 1), row(1, 2), row(2, 3)]) == (3, 0))
        let rows = try await folder.shell.rows(
            "SELECT seq, device, profile, stream, metric, value, source FROM history"
        )
        #expect(
            rows
                == [[-3, 1], [-2, 2], [-1, 3]].map {
                    ["\($0[0])", "box", "test", "plain", "value", "\($0[1])", "notify"]
                }
        )
        #expect(try await folder.shell.rows("SELECT value FROM latest") == [["3"]])
    }

    @Test func `a repeated import stores only new samples`() async throws {
        let rows = (0..<10_000).map { row($0 / 3, $0) }
        #expect(try importing(Array(rows[..<5000])) == (5000, 0))
        #expect(try importing(rows) == (5000, 5000))
        #expect(try importing(rows.reversed()) == (0, 10_000))
        #expect(try await values().count == 10_000)
        #expect(try await folder.shell.value("SELECT count(DISTINCT seq) FROM history") == "10000")
    }

    @Test func `an import recognises samples that a daemon has stored`() async throws {
        let history = try await ReadingHistory.open(folder)
        var batch = ReadingBatch()
        batch.add(Fixture.heartRate(), (0, .integer(72)), (1, .boolean(true)), (2, .real(0.5)), (2, .real(0.5)))
        try await history.append(batch)
        try await history.close()
        let exported = try HistoryReader(path: folder.database).allRows()
        #expect(try importing(exported) == (0, 4))
        let told = exported.map { row in
            let series = row.series
            let other = HistorySeries(
                device: series.device,
                profile: series.profile,
                stream: series.stream,
                metric: series.metric,
                unit: series.unit,
                source: series.source
            )
            return HistoryRow(
                seq: 0,
                time: row.time,
                series: other,
                value: row.value == .integer(72) ? .real(72) : row.value
            )
        }
        #expect(try importing(told) == (0, 4))
        #expect(try await folder.shell.value("SELECT count(*) FROM metric_series") == "3")
    }

    @Test func `equal elements of one reading are kept, and repeated lines are not`() async throws {
        let reading = [
            row(0, 1, Self.interval, seq: 5), row(0, 1, Self.interval, seq: 5), row(0, 2, Self.interval, seq: 5),
        ]
        let file = reading + [row(1, 1, Self.interval, seq: 6)]
        #expect(try importing(file + file) == (4, 4))
        #expect(try importing(file) == (0, 4))
        #expect(try await folder.shell.value("SELECT count(DISTINCT seq) FROM history") == "2")
    }

    @Test func `a repeated line is stored once unless it is of another reading or a repeated metric`() async throws {
        #expect(try importing([row(0, 1), row(0, 1), row(0, 2), row(0, 1), row(1, 1)]) == (3, 2))
        #expect(try importing([row(2, 1, seq: 5), row(2, 1, seq: 6), row(2, 1, seq: 5)]) == (2, 1))
        #expect(try importing([row(2, 1, seq: 5), row(2, 1, seq: 6), row(2, 1, seq: 7)]) == (1, 2))
        #expect(try importing([row(3, 1, Self.interval), row(3, 1, Self.interval)]) == (2, 0))
    }

    @Test func `readings of one instant stay separate and ordered`() async throws {
        try importing([row(0, 1, seq: 5), row(0, 2, seq: 6), row(0, 3), row(0, 4)])
        #expect(
            try await folder.shell.rows("SELECT seq, value FROM history ORDER BY seq") == [
                ["-4", "1"], ["-3", "2"], ["-2", "3"], ["-1", "4"],
            ]
        )
    }

    @Test func `a daemon continues its own numbers, and latest includes imports`() async throws {
        var history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<5))
        try await history.close()
        try importing([row(-100, 70)])
        #expect(try await folder.shell.rows("SELECT seq, value FROM latest") == [["5", "4"]])
        try importing([row(100, 71)])
        #expect(try await folder.shell.rows("SELECT seq, value FROM latest") == [["-2", "71"]])
        let other = HistorySeries(
            device: "box",
            profile: "import",
            stream: "plain",
            metric: "value",
            unit: nil,
            source: "read"
        )
        try importing([row(99, 72, other)])
        #expect(try await folder.shell.rows("SELECT seq, value FROM latest") == [["-2", "71"]])
        try importing([row(101, 73, other)])
        #expect(try await folder.shell.rows("SELECT seq, value FROM latest") == [["-4", "73"]])
        history = try await ReadingHistory.open(folder)
        #expect(try await history.acknowledged() == 0)
        #expect(try await history.readings(after: 0, limit: 100).map(\.seq) == [1, 2, 3, 4, 5])
        try await history.append(.plain(integers: 0..<1))
        #expect(history.newestSeq == 6)
        try await history.close()
        #expect(try await folder.shell.rows("SELECT seq FROM latest") == [["-4"]])
        #expect(try HistoryReader(path: folder.database).check().isEmpty)
    }

    @Test func `an import alone delivers nothing`() async throws {
        try importing([row(0, 1), row(1, 2)])
        let history = try await ReadingHistory.open(folder)
        #expect(history.newestSeq == 0)
        #expect(try await history.acknowledged() == 0)
        #expect(try await history.readings(after: 0, limit: 10).isEmpty)
        try await history.append(.plain(integers: 0..<1))
        #expect(try await history.readings(after: 0, limit: 10).map(\.seq) == [1])
        try await history.close()
    }

    @Test func `summaries of imported samples equal those of live ones`() async throws {
        var random = SplitMix(state: 7)
        let rows = (0..<9000).map { _ in row(random.next(below: 20_000), random.next(below: 100)) }
        try importing(Array(rows[..<3000]))
        try importing(Array(rows[2000..<6000]).shuffled(using: &random))
        try importing(rows)
        for (view, step) in [("history_minutes", 60_000_000), ("history_hours", 3_600_000_000)] {
            let summed = try await folder.shell.rows("SELECT ts, n, min, max, round(mean, 9) FROM \(view) ORDER BY ts")
            let counted = try await folder.shell.rows(
                """
                SELECT ts / \(step) * \(step), count(*), min(value), max(value), round(avg(value), 9) FROM history
                GROUP BY 1 ORDER BY 1
                """
            )
            #expect(summed == counted)
        }
        #expect(try await folder.shell.value("SELECT value > 0 FROM state WHERE key = 'hours'") == "1")
    }

    @Test func `imported samples beyond the retention time are purged, and their minutes stay`() async throws {
        let end = Fixture.epoch.advanced(by: .seconds(40 * 86_400))
        var options = HistoryOptions(path: folder.database, consumers: [], clock: GatewayClock(now: { end }))
        options.limits.samples = .seconds(30 * 86_400)
        // A file that is begun by a clock that is right trusts it.
        try await ReadingHistory.open(options, log: .silent).close()
        try importing((0..<600).map { row($0, 1) })
        let history = try await ReadingHistory.open(options, log: .silent)
        try await eventually { try await folder.shell.value("SELECT count(*) FROM history") == "0" }
        #expect(try await folder.shell.value("SELECT sum(n) FROM history_minutes") == "600")
        try await history.close()
        #expect(try importing((0..<660).map { row($0, 1) }) == (60, 600), "deleted samples count as stored")
        let other = HistorySeries(device: "box", profile: "", stream: "", metric: "other", unit: nil, source: "read")
        #expect(try importing((0..<60).map { row($0, 1, other) }) == (60, 0), "others of the same time do not")
        for view in ["history_minutes", "history_hours"] {
            let counts = try await folder.shell.rows("SELECT metric, sum(n) FROM \(view) GROUP BY 1 ORDER BY 1")
            #expect(counts == [["other", "60"], ["value", "660"]])
        }
    }

    @Test func `samples of a minute that is deleted in part are not counted again`() async throws {
        let end = Fixture.epoch.advanced(by: .seconds(30 * 86_400 + 30))
        var options = HistoryOptions(path: folder.database, consumers: [], clock: GatewayClock(now: { end }))
        options.limits.samples = .seconds(30 * 86_400)
        try await ReadingHistory.open(options, log: .silent).close()
        try importing((0..<60).map { row($0, 1) })
        let history = try await ReadingHistory.open(options, log: .silent)
        try await eventually { try await folder.shell.value("SELECT count(*) FROM history") == "30" }
        try await history.close()
        #expect(try importing((0..<60).map { row($0, 1) }) == (0, 60))
        #expect(try await folder.shell.value("SELECT sum(n) FROM history_minutes") == "60")
    }

    @Test func `an import and a daemon exclude each other`() async throws {
        let history = try await ReadingHistory.open(folder)
        #expect(throws: StoreFault.self) { try importing([row(0, 1)]) }
        try await history.close()
        let target = try HistoryImport(path: folder.database)
        try target.add([row(0, 1)])
        await #expect(throws: StoreFault.self) { try await ReadingHistory.open(folder) }
        try target.finish()
        #expect(target.stored == 1)
    }
}
