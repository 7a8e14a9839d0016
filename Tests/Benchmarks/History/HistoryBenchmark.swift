import FoundationEssentials
import GattherdHistory
import GattherdLog
import GattherdModel

extension Benchmark {
    static let history = Benchmark(
        name: "history",
        summary: "bytes, rows a second and queries against other layouts in SQLite; commits while others read",
        run: { try await HistoryBenchmark($0).run() }
    )
}

/// Compares history with other layouts: the same samples and the same queries.
struct HistoryBenchmark {
    private let workload: Workload
    private let folder: String
    private let options: BenchmarkOptions

    init(_ options: BenchmarkOptions) {
        self.options = options
        let now = Timestamp(microseconds: Int64(Date.now.timeIntervalSince1970 * 1_000_000))
        workload = Workload(count: options.count ?? 10_000_000, now: now)
        folder = options.folder + "/gattherd-bench-\(ProcessInfo.processInfo.processIdentifier)"
    }

    func run() async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var table = RatioTable([
            .init(name: "size", unit: "B/sample"), .init(name: "written", unit: "B/sample"),
            .init(name: "inserts/s", unit: "krows/s"), .init(name: "1 h", unit: "ms"), .init(name: "24 h", unit: "ms"),
            .init(name: "24 h by 1 m", unit: "ms"), .init(name: "newest", unit: "ms"),
        ])
        let ours = OurHistory(path: folder + "/ours.db", workload)
        table.add("gattherd", try await ours.measure(isDelivering: false))
        let commits = try await CommitLatency(path: folder + "/ours.db", workload).measure()
        try remove("ours.db")
        table.add("gattherd, with MQTT", try await ours.measure(isDelivering: true))
        try remove("ours.db")
        for candidate in Candidate.all {
            let database = CandidateHistory(candidate, path: folder + "/other.db", workload)
            table.add(candidate.name, try await database.measure())
            try remove("other.db")
        }
        let samples = "\(workload.count) samples of \(Workload.series) series at 1 Hz, \(workload.commit) in a commit"
        table.print(title: "history: \(samples); compared with gattherd's own layout")
        try options.write(table, to: "history", corner: "layout")
        commits.print()
        try options.write(commits.table, to: "commits", corner: "readers")
    }

    private func remove(_ name: String) throws {
        for file in try FileManager.default.contentsOfDirectory(atPath: folder) where file.hasPrefix(name) {
            try FileManager.default.removeItem(atPath: folder + "/" + file)
        }
    }
}

/// The stored samples: one value per second, from one series after the other.
struct Workload: Sendable {
    static let series = 50

    let count: Int
    /// Samples of a commit.
    let commit = 200
    /// The first sample's time; the last one's is about now.
    let start: Timestamp

    init(count: Int, now: Timestamp) {
        self.count = count
        start = now.advanced(by: .seconds(-Int64(count / Self.series)))
    }

    var end: Timestamp { time(of: count) }

    func time(of index: Int) -> Timestamp {
        start.advanced(by: .microseconds(Int64(index) * 1_000_000 / Int64(Self.series)))
    }

    func series(of index: Int) -> Int { index % Self.series }

    /// Two reproducible pseudo-random decimals.
    func value(of index: Int) -> Double {
        var mixed = UInt64(index) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        return Double((mixed >> 40) % 10_000) / 100
    }
}

/// gattherd's layout, filled as by the daemon.
struct OurHistory {
    private let path: String
    private let workload: Workload

    init(path: String, _ workload: Workload) {
        self.path = path
        self.workload = workload
    }

    /// Measures the file.
    ///
    /// When `isDelivering`, the journal keeps readings until they are acknowledged, which is at once.
    func measure(isDelivering: Bool) async throws -> [Double?] {
        let before = octetsWritten()
        let time = try await seconds { try await fill(isDelivering) }
        let count = Double(workload.count)
        let written = Double(octetsWritten() - before) / count
        return [Double(octets(of: path)) / count, written, count / time / 1000] + (try queries())
    }

    private func fill(_ isDelivering: Bool) async throws {
        let clock = GatewayClock(now: { workload.end })
        let consumers = isDelivering ? [JournalConsumerOptions(name: "consumer")] : []
        let options = HistoryOptions(path: path, consumers: consumers, clock: clock)
        let history = try await ReadingHistory.open(options, log: .silent)
        let streams = BenchmarkStream.all
        for start in stride(from: 0, to: workload.count, by: workload.commit) {
            try await history.append(.benchmark(start, workload, streams))
            if isDelivering { try await history.consumer("consumer").acknowledge(through: history.newestSeq) }
        }
        try await history.close()
    }

    private func queries() throws -> [Double?] {
        let reader = try HistoryReader(path: path)
        let device = BenchmarkStream.device(7)
        func query(hours: Int64) -> HistoryQuery {
            HistoryQuery(device: device, metric: "value", since: workload.end.advanced(by: .seconds(-3600 * hours)))
        }
        return try [
            shortestMilliseconds { try reader.rows(query(hours: 1)) { _ in true } },
            shortestMilliseconds { try reader.rows(query(hours: 24)) { _ in true } },
            shortestMilliseconds { try reader.buckets(query(hours: 24), every: .seconds(60)) { _ in true } },
            shortestMilliseconds { _ = try reader.latest(device: device) },
        ]
    }
}

/// Streams as profiles make them.
enum BenchmarkStream {
    static func device(_ series: Int) -> String { "device-\(series)" }

    static var all: [StreamDefinition] {
        (0..<Workload.series).map { series in
            StreamDefinition(
                device: device(series),
                profile: "benchmark",
                stream: "stream",
                metrics: [MetricDescriptor(name: "value", unit: "K")]
            )
        }
    }
}

extension ReadingBatch {
    /// The samples of one commit.
    static func benchmark(_ start: Int, _ workload: Workload, _ streams: [StreamDefinition]) -> ReadingBatch {
        var batch = ReadingBatch()
        for index in start..<start + workload.commit {
            let place = batch.samples.count
            batch.samples.append(Sample(metric: 0, value: .real(workload.value(of: index))))
            batch.readings.append(
                Reading(
                    stream: streams[workload.series(of: index)],
                    time: workload.time(of: index),
                    source: .notify,
                    samples: place..<place + 1
                )
            )
        }
        return batch
    }
}
