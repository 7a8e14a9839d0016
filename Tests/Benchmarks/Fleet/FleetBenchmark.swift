import FoundationEssentials
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit

extension Benchmark {
    static let fleet = Benchmark(
        name: "fleet",
        summary: "readings a second that one PostgreSQL takes from several gateways, and CPU on both sides",
        run: { try await FleetBenchmark($0).run() }
    )
}

/// Measures the way of readings to the central history, beside one INSERT for each message.
struct FleetBenchmark {
    private static let columns: [RatioTable.Column] = [
        .init(name: "readings", unit: "1/s"), .init(name: "CPU at the gateway", unit: "µs/reading"),
        .init(name: "CPU at the centre", unit: "µs/reading"), .init(name: "duration", unit: "s"),
    ]
    /// The readings of the file in the last row.
    private static let backlog = 10_000_000

    private let options: BenchmarkOptions
    private let workload: Workload

    init(_ options: BenchmarkOptions) {
        self.options = options
        let now = Timestamp(microseconds: Int64(Date.now.timeIntervalSince1970 * 1_000_000))
        workload = Workload(count: 400_000, now: now)
    }

    func run() async throws {
        var table = RatioTable(Self.columns)
        for count in [1, 4, 16] {
            let name = count == 1 ? "1 gateway" : "\(count) gateways"
            table.add(name, try await measure(gateways: count, source: .notify))
        }
        table.add("16 gateways, the same advertisements", try await measure(gateways: 16, source: .advert))
        let size = options.count ?? Self.backlog
        table.add("1 gateway, \(size / 1_000_000) million from its file", try await drain(size))
        for count in [1, 16] {
            let name = count == 1 ? "INSERT, 1 connection" : "INSERT, \(count) connections"
            if let values = try await insert(connections: count) { table.add(name, values) }
        }
        table.print(title: "fleet: readings of one value of \(Workload.series) devices; ratios to one gateway")
        try options.write(table, to: "fleet", corner: "sender")
    }

    /// Measures gateways whose journals are in memory.
    private func measure(gateways count: Int, source: ReadingSource) async throws -> [Double?] {
        let centre = try await BenchmarkCentre()
        let entries = MemoryJournal.entries(of: workload, count: workload.count / count, source: source)
        var outputs: [BenchmarkGateway] = []
        for number in 0..<count {
            outputs.append(try await centre.gateway("gateway-\(number)", MemoryJournal(entries, number)))
        }
        let values = try await centre.measure(readings: entries.count * count) {
            await withDiscardingTaskGroup { group in
                for output in outputs { group.addTask { await output.deliver() } }
            }
        }
        try await centre.stop(expecting: entries.count * count)
        return values
    }

    /// Measures a gateway whose file has a backlog.
    private func drain(_ size: Int) async throws -> [Double?] {
        let folder = options.folder + "/gattherd-fleet-\(ProcessInfo.processInfo.processIdentifier)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let stored = Workload(count: size, now: workload.end)
        let history = try await ReadingHistory.open(
            HistoryOptions(
                path: folder + "/gattherd.db",
                consumers: [JournalConsumerOptions(name: "postgres", content: .everything)],
                clock: GatewayClock(now: { stored.end })
            ),
            log: .silent
        )
        let streams = BenchmarkStream.all
        for start in stride(from: 0, to: size, by: stored.commit) {
            try await history.append(.benchmark(start, stored, streams))
        }
        let centre = try await BenchmarkCentre()
        let gateway = try await centre.gateway("gateway", history.consumer("postgres"))
        let values = try await centre.measure(readings: size) { await gateway.deliver() }
        try await centre.stop(expecting: size)
        try await history.close()
        return values
    }

    /// Measures a program that inserts each message for itself; `nil` if it was not built.
    private func insert(connections count: Int) async throws -> [Double?]? {
        guard let peer = options.peer else { return nil }
        let centre = try await BenchmarkCentre()
        let (readings, url) = (40_000 / count, centre.url)
        try await centre.prepareForInserts()
        let own = Locked<Double>(0)
        var values = try await centre.measure(readings: readings * count) {
            await withDiscardingTaskGroup { group in
                for number in 0..<count {
                    group.addTask {
                        let answer = try? await Programs.run(peer, [url, "\(readings)", "\(number)"])
                        own.withLock { $0 += answer.flatMap { Double($0.1.split(separator: "\n").first ?? "") } ?? 0 }
                    }
                }
            }
        }
        values[1] = own.withLock { $0 } * 1e6 / Double(readings * count)
        try await centre.stop()
        return values
    }
}
