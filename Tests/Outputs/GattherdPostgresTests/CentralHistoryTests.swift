import GattherdHistory
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdOutputs
import GattherdSync
import TestKit
import Testing

@testable import GattherdPostgres

/// A wall clock that is two hours slow until it is synchronised, a day before midnight.
final class SlowClock: Sendable {
    private struct State: Sendable {
        /// 2026-11-23T23:50:00Z.
        var truth = Timestamp(microseconds: 1_795_477_800_000_000)
        var uptime = Duration.zero
        var isSynchronised = false
    }

    private let state = Locked(State())

    var clock: GatewayClock {
        GatewayClock(
            now: { [state] in
                state.withLock { $0.isSynchronised ? $0.truth : $0.truth.advanced(by: .seconds(-7200)) }
            },
            uptime: { [state] in state.withLock(\.uptime) },
            isSynchronised: { [state] in state.withLock(\.isSynchronised) },
            boot: "boot"
        )
    }

    func pass(_ time: Duration) {
        state.withLock { ($0.truth, $0.uptime) = ($0.truth.advanced(by: time), $0.uptime + time) }
    }

    func synchronise() { state.withLock { $0.isSynchronised = true } }
}

/// A gateway's own history, the output and the centre together.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct CentralHistoryTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    func open(_ clock: GatewayClock, longestBacklog: Int64? = nil) async throws -> ReadingHistory {
        let options = HistoryOptions(
            path: folder.file("gattherd.db"),
            consumers: [.init(name: "postgres", content: .everything, longestBacklog: longestBacklog)],
            clock: clock
        )
        return try await ReadingHistory.open(options, log: Log(threshold: .error) { _ in })
    }

    static func output(_ history: ReadingHistory, _ sink: PostgresSink) -> BatchOutput {
        var options = BatchOptions()
        (options.entries, options.interval) = (150, .milliseconds(10))
        options.backoff = .init(minimum: .milliseconds(10), maximum: .milliseconds(50))
        let context = OutputContext(
            name: "postgres",
            kind: "postgres",
            gateway: "attic",
            journal: history.consumer("postgres"),
            log: Log(threshold: .error) { _ in },
            record: { _ in },
            readSecret: { (path, _) throws(OutputError) in throw OutputError(path) }
        )
        return BatchOutput(context, target: "centre", sink: sink, options: options)
    }

    /// Stores readings of three devices, a reject and an event.
    func store(_ round: Int, _ history: ReadingHistory, at time: Timestamp) async throws {
        var batch = ReadingBatch()
        for device in ["strap", "belt", "box"] {
            let stream = StreamDefinition(
                device: device,
                profile: "test",
                stream: "plain",
                metrics: [
                    MetricDescriptor(name: "value", unit: "V"), MetricDescriptor(name: "list", isRepeated: true),
                    MetricDescriptor(name: "mode", kind: .state),
                ]
            )
            for number in 0..<20 {
                let values: [(Int, SampleValue)] = [
                    (0, number == 3 ? .real(.nan) : .real(Double(round) + Double(number) / 8)),
                    (1, .integer(Int64(number))), (1, .integer(Int64(round))), (2, .text("mode \(number % 3)")),
                ]
                let start = batch.samples.count
                batch.samples += values.map { Sample(metric: $0.0, value: $0.1) }
                let at = time.advanced(by: .milliseconds(number * 37))
                let samples = start..<batch.samples.count
                batch.readings.append(Reading(stream: stream, time: at, source: .notify, samples: samples))
            }
        }
        let octets = [UInt8(truncatingIfNeeded: round), 0]
        batch.rejects = [Reject(time: time, device: "strap", characteristic: "2a37", payload: octets, reason: "short")]
        try await history.append(batch)
        try await history.record([LifecycleEvent(time: time, kind: "daemon", ["round": .integer(Int64(round))])])
    }

    /// Compares the centre's views with those of the file.
    func expectEqual(_ centre: Centre) async throws {
        let shell = SQLiteShell(folder.file("gattherd.db"))
        let head = "seq, ts, time, device, profile, stream, metric"
        let text = "coalesce(value::text, label)"
        let summary = "SELECT ts, time, device, metric, unit, stream, n, min, max"
        let means = "SELECT device, metric, unit, sum(round(mean * 1000))"
        let queries = [
            ("SELECT \(head), VALUE, unit, source, element, kind FROM VIEW(history) ORDER BY 1, 7, 11", text),
            ("SELECT \(head), VALUE, unit, source, element, kind FROM VIEW(latest) ORDER BY 4, 7", text),
            ("\(summary) FROM VIEW(history_minutes) ORDER BY 1, 3, 4", ""),
            ("\(summary) FROM VIEW(history_hours) ORDER BY 1, 3, 4", ""),
            ("\(means) FROM VIEW(history_hours) GROUP BY 1, 2, 3 ORDER BY 1, 2", ""),
            ("SELECT ts, time, device, kind, detail FROM VIEW(events) ORDER BY 1, 4, 5", ""),
            ("SELECT ts, time, device, characteristic, bytes, reason FROM VIEW(rejects) ORDER BY 1, 5", ""),
            ("SELECT device, profile, stream, metric, unit, kind, last, last_ts FROM VIEW(series) ORDER BY 1, 4", ""),
        ]
        for (query, value) in queries {
            let names = query.split(separator: "VIEW(")[1].prefix { $0 != ")" }
            let local = query.replacing("VIEW(\(names))", with: String(names)).replacing("VALUE", with: "value")
            let central = query.replacing("VIEW(\(names))", with: "gattherd.\(names)").replacing("VALUE", with: value)
            let expected = try await shell.rows(local).map { $0.map(Self.plain) }
            let found = try await centre.rows(central).map { $0.map(Self.plain) }
            #expect(found.count == expected.count, "\(names)")
            for (left, right) in zip(found, expected) where left != right {
                Issue.record("\(names): \(left) is not \(right)")
                break
            }
        }
    }

    /// A number without a fraction of zero, which SQLite prints.
    private static func plain(_ text: String) -> String { text.hasSuffix(".0") ? String(text.dropLast(2)) : text }

    @Test func `the centre has the rows of the file, after faults and a clock correction`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let clock = SlowClock()
        let history = try await open(clock.clock)
        let output = Self.output(history, sink)
        let running = Task { await output.run() }
        for round in 0..<20 {
            clock.pass(.seconds(11))
            try await store(round, history, at: clock.clock.now())
            if round % 5 == 3 {
                _ = try await centre.rows(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gattherd_attic'"
                )
            }
        }
        clock.synchronise()
        let shell = SQLiteShell(folder.file("gattherd.db"))
        try await eventually {
            clock.pass(.seconds(1))
            return try await shell.value("SELECT count(*) > 0 FROM correction") == "1"
        }
        for round in 20..<25 {
            clock.pass(.seconds(400))
            try await store(round, history, at: clock.clock.now())
        }
        try await eventually {
            let state = """
                SELECT (SELECT max(cursor) FROM gattherd.journal), (SELECT count(*) FROM gattherd.correction),
                    (SELECT count(*) FROM gattherd.rejects)
                """
            let found = try await centre.rows(state)
            let status = output.status
            return status.backlog == 0 && found == [["\(status.cursor ?? 0)", "0", "25"]]
        }
        try await expectEqual(centre)
        await output.stop(within: .seconds(5))
        await running.value
        try await history.close()
    }

    @Test func `a centre restored from a backup receives the missing entries again`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let clock = SlowClock()
        clock.synchronise()
        let history = try await open(clock.clock)
        let output = Self.output(history, sink)
        let running = Task { await output.run() }
        for round in 0..<10 {
            clock.pass(.seconds(1))
            try await store(round, history, at: clock.clock.now())
        }
        try await eventually { try await centre.value("SELECT count(*) FROM gattherd.rejects") == "10" }
        // A backup that is older than the last rounds.
        _ = try await centre.rows(
            """
            BEGIN; UPDATE gattherd.journal SET cursor = 200; DELETE FROM gattherd.sample WHERE seq > 200;
            DELETE FROM gattherd.event WHERE seq > 200; DELETE FROM gattherd.reject WHERE seq > 200;
            TRUNCATE gattherd.minute, gattherd.hour, gattherd.extent; COMMIT
            """
        )
        clock.pass(.seconds(1))
        try await store(10, history, at: clock.clock.now())
        try await eventually { try await centre.value("SELECT count(*) FROM gattherd.rejects") == "11" }
        let count = try await SQLiteShell(folder.file("gattherd.db")).value("SELECT count(*) FROM history")
        try await eventually { try await centre.value("SELECT count(*) FROM gattherd.history") == count }
        let twice = "SELECT count(*) FROM (SELECT seq, metric, element FROM gattherd.history GROUP BY 1, 2, 3 "
        #expect(try await centre.value(twice + "HAVING count(*) > 1) AS d") == "0")
        await output.stop(within: .seconds(5))
        await running.value
        try await history.close()
    }

    @Test func `losses while the centre is away are a gap there, and all else arrives once`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let clock = SlowClock()
        clock.synchronise()
        let history = try await open(clock.clock, longestBacklog: 200)
        let output = Self.output(history, sink)
        let running = Task { await output.run() }
        try await store(0, history, at: clock.clock.now())
        try await eventually { try await centre.value("SELECT count(*) FROM gattherd.rejects") == "1" }
        await centre.server.stop()
        for round in 1..<20 {
            clock.pass(.seconds(1))
            try await store(round, history, at: clock.clock.now())
        }
        try await eventually { history.status.skipped["postgres"] != nil }
        try await centre.server.start()
        let head = history.newestSeq
        try await eventually { try await centre.value("SELECT max(cursor) FROM gattherd.gateways") == "\(head)" }
        // Each number is one entry, or in one gap.
        let numbers = """
            SELECT DISTINCT seq FROM gattherd.sample UNION ALL SELECT seq FROM gattherd.event
            UNION ALL SELECT seq FROM gattherd.reject UNION ALL
            SELECT n FROM gattherd.gaps g, generate_series(g.after + 1, g.through) AS n
            """
        let facts = try await centre.rows("SELECT count(*), count(DISTINCT seq), max(seq) FROM (\(numbers)) AS all_of")
        #expect(facts == [["\(head)", "\(head)", "\(head)"]])
        #expect(try await centre.value("SELECT reason FROM gattherd.gaps LIMIT 1") == "more than the longest backlog")
        await output.stop(within: .seconds(5))
        await running.value
        try await history.close()
    }
}
