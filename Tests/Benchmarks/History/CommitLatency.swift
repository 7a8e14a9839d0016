import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdSync

/// The duration of commits without readers, and with readers that never pause.
struct CommitLatency {
    struct Result {
        /// In milliseconds, the shortest first.
        let alone: [Double]
        let withReaders: [Double]
        /// The number of queries that the readers completed.
        let reads: Int
        /// The size of the WAL in bytes after the last query.
        let logSize: Int

        /// The median, the 99th percentile and the maximum.
        var table: RatioTable {
            var table = RatioTable([
                .init(name: "p50", unit: "ms"), .init(name: "p99", unit: "ms"), .init(name: "maximum", unit: "ms"),
            ])
            table.add("none", Self.percentiles(alone))
            table.add("two that never pause", Self.percentiles(withReaders))
            return table
        }

        func print() {
            table.print(title: "commits: their duration without and with readers")
            Swift.print("\n\(reads) queries ended meanwhile; then the write-ahead log had \(logSize / 1024) KiB")
        }

        private static func percentiles(_ times: [Double]) -> [Double?] {
            [times[times.count / 2], times[times.count * 99 / 100], times[times.count - 1]]
        }
    }

    private let path: String
    private let workload: Workload
    private let commits = 2000

    /// Prepares a measurement of the history at `path`, which has the workload's samples already.
    init(path: String, _ workload: Workload) {
        self.path = path
        self.workload = workload
    }

    func measure() async throws -> Result {
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock(now: { workload.end }))
        let history = try await ReadingHistory.open(options, log: .silent)
        let alone = try await times(history, from: workload.count)
        let isOver = Locked(false)
        let reads = Locked(0)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        for number in 0..<2 {
            _ = NamedThread(name: "reader") { [path, workload] in
                while !isOver.withLock({ $0 }) {
                    try? Self.read(path, workload, isAll: number == 0) { !isOver.withLock { $0 } }
                    reads.withLock { $0 += 1 }
                }
                end.yield()
            }
        }
        let busy = try await times(history, from: workload.count + commits * workload.commit)
        isOver.withLock { $0 = true }
        var iterator = ends.makeAsyncIterator()
        for _ in 0..<2 { await iterator.next() }
        let logSize = octets(of: path + "-wal")
        try await history.close()
        return Result(alone: alone, withReaders: busy, reads: reads.withLock { $0 }, logSize: logSize)
    }

    private func times(_ history: ReadingHistory, from start: Int) async throws -> [Double] {
        let streams = BenchmarkStream.all
        var times: [Double] = []
        for commit in 0..<commits {
            let batch = ReadingBatch.benchmark(start + commit * workload.commit, workload, streams)
            times.append(try await seconds { try await history.append(batch) } * 1000)
        }
        return times.sorted()
    }

    /// Reads every row, or the last day by minutes, as `gattherd history` does.
    private static func read(
        _ path: String,
        _ workload: Workload,
        isAll: Bool,
        isContinuing: () -> Bool
    ) throws {
        let reader = try HistoryReader(path: path)
        if isAll { return try reader.rows(HistoryQuery()) { _ in isContinuing() } }
        let query = HistoryQuery(since: workload.end.advanced(by: .seconds(-86_400)))
        try reader.buckets(query, every: .seconds(60)) { _ in isContinuing() }
    }
}
