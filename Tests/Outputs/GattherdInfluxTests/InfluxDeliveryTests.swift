import GattherdInflux
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdOutputs
import GattherdSync
import TestKit
import Testing

/// The whole output against InfluxDB 1 that is killed, restarted, misconfigured or spoilt by others.
@Suite(.timeLimit(.minutes(3))) struct InfluxDeliveryTests {
    private func output(_ server: InfluxServer, _ journal: MemoryJournal) throws -> BatchOutput {
        var options = BatchOptions()
        (options.entries, options.interval) = (50, .milliseconds(1))
        options.backoff = Backoff(minimum: .milliseconds(1), maximum: .milliseconds(20))
        options.misconfiguredBackoff = options.backoff
        let context = OutputContext(
            name: "influx",
            kind: "influx",
            gateway: "g",
            journal: journal,
            log: Log(threshold: .error) { _ in },
            record: { _ in },
            readSecret: { (path, _) throws(OutputError) in throw OutputError(path) }
        )
        let sink = InfluxSink(try InfluxOptions(server.url))
        return BatchOutput(context, target: server.url, sink: sink, options: options)
    }

    /// Runs an output while `body` runs.
    private func run(_ output: BatchOutput, _ body: () async throws -> Void) async throws {
        let running = Task { await output.run() }
        try await body()
        await output.stop(within: .seconds(10))
        await running.value
    }

    private func numbers(_ server: InfluxServer) -> [Int] {
        server.rows("SELECT bpm FROM heart_rate", database: "home").compactMap {
            $0.split(separator: ",").last.flatMap { Int($0) }
        }
    }

    @Test func `every reading arrives once, however often the server is killed`() async throws {
        let (server, journal) = (try InfluxServer(), MemoryJournal())
        try await server.start()
        try server.run("CREATE DATABASE home")
        try await run(try output(server, journal)) {
            for round in Int64(0)..<6 {
                let first = round * 1000 + 1
                journal.commit(Readings.numbered(first...(first + 499)))
                await journal.waitForCursor(first + 49)
                await server.kill()
                journal.commit(Readings.numbered((first + 500)...(first + 999)))
                try await server.start()
            }
            await journal.waitForCursor(6000)
        }
        #expect(numbers(server) == Array(1...6000))
    }

    @Test func `a new output repeats what was not acknowledged, which adds nothing`() async throws {
        let (server, journal) = (try InfluxServer(), MemoryJournal())
        try await server.start()
        try server.run("CREATE DATABASE home")
        journal.commit(Readings.numbered(1...1000))
        try await run(try output(server, journal)) { await journal.waitForCursor(1000) }
        // As after a crash that lost the last saved cursor.
        journal.loseCursor(after: 300)
        journal.commit(Readings.numbered(1001...1200))
        try await run(try output(server, journal)) { await journal.waitForCursor(1200) }
        #expect(numbers(server) == Array(1...1200))
    }

    @Test func `readings wait for a database that is created later`() async throws {
        let (server, journal) = (try InfluxServer(), MemoryJournal())
        try await server.start()
        journal.commit(Readings.numbered(1...500))
        let output = try output(server, journal)
        try await run(output) {
            try await eventually { output.status.problem?.contains("create the database 'home'") == true }
            try server.run("CREATE DATABASE home")
            await journal.waitForCursor(500)
        }
        #expect(numbers(server) == Array(1...500))
        #expect(output.status.skipped == 0)
    }

    @Test func `only the readings that the database refuses are skipped`() async throws {
        let (server, journal) = (try InfluxServer(), MemoryJournal())
        try await server.start()
        try server.run("CREATE DATABASE home")
        // Somebody else has written a text into the field of a measurement.
        _ = HTTPQuery.answer(server.port, to: "broken,x=y v=\"text\" 1795231205123456001", database: "home")
        let stream = StreamDefinition(
            device: "d",
            profile: "p",
            stream: "broken",
            metrics: [MetricDescriptor(name: "v")]
        )
        journal.commit(Readings.numbered(1...333))
        journal.commit([.reading(Readings.reading((0, .integer(1)), seq: 334, of: stream))])
        journal.commit(Readings.numbered(335...1000))
        let output = try output(server, journal)
        try await run(output) { await journal.waitForCursor(1000) }
        #expect(numbers(server) == Array(1...333) + Array(335...1000))
        #expect(output.status.skipped == 1)
        #expect(output.status.delivered == 999)
    }
}

/// A journal in memory, whose cursor outlives its output.
final class MemoryJournal: JournalConsumer {
    private let committed = Locked<[JournalEntry]>([])
    private let head = LatestValue<Int64>(-1)
    private let cursor = LatestValue<Int64>(0)

    func commit(_ entries: [JournalEntry]) {
        committed.withLock { $0 += entries }
        head.set(entries.last?.seq ?? 0)
    }

    func loseCursor(after seq: Int64) {
        cursor.set(seq)
    }

    func epoch() async throws(StoreFault) -> JournalEpoch { throw StoreFault("this journal has no epoch") }

    func rewind(to seq: Int64) async throws(StoreFault) { throw StoreFault("this journal cannot go back") }

    func waitForCursor(_ seq: Int64) async {
        for await cursor in cursor.watch() where cursor >= seq { return }
    }

    func heads() -> AsyncStream<Int64> { head.watch() }

    func entries(after seq: Int64, limit: Int) async throws(StoreFault) -> JournalBatch {
        committed.withLock { committed in
            let found = Array(committed.drop { $0.seq <= seq }.prefix(limit))
            return JournalBatch(found, through: (found.count < limit ? committed : found).last?.seq ?? 0)
        }
    }

    func acknowledged() async throws(StoreFault) -> Int64 { cursor.state }

    func acknowledge(through seq: Int64) async throws(StoreFault) {
        cursor.set(seq)
    }
}
