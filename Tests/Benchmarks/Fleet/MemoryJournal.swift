import GattherdModel

/// A journal in memory, all of whose entries are there at the start.
struct MemoryJournal: JournalConsumer {
    private let readings: [JournalEntry]
    private let number: Int

    /// - Parameters:
    ///   - entries: The entries, numbered from 1.
    ///   - number: The number of the gateway; each has an epoch of its own.
    init(_ entries: [JournalEntry], _ number: Int) {
        (readings, self.number) = (entries, number)
    }

    static func entries(of workload: Workload, count: Int, source: ReadingSource) -> [JournalEntry] {
        let streams = BenchmarkStream.all
        return (0..<count).map { index in
            let samples = [Sample(metric: 0, value: .real(workload.value(of: index)))]
            return .reading(
                JournalReading(
                    seq: Int64(index) + 1,
                    stream: streams[workload.series(of: index)],
                    time: workload.time(of: index),
                    source: source,
                    samples: samples[...]
                )
            )
        }
    }

    func heads() -> AsyncStream<Int64> {
        let (heads, head) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        head.yield(Int64(readings.count))
        return heads
    }

    func entries(after seq: Int64, limit: Int) async throws(StoreFault) -> JournalBatch {
        let entries = Array(readings.dropFirst(Int(seq)).prefix(limit))
        return JournalBatch(entries, through: entries.last?.seq ?? seq)
    }

    func recent(after seq: Int64, limit: Int) -> JournalBatch? {
        let entries = Array(readings.dropFirst(Int(seq)).prefix(limit))
        return JournalBatch(entries, through: entries.last?.seq ?? seq)
    }

    func acknowledged() async throws(StoreFault) -> Int64 { 0 }
    func acknowledge(through seq: Int64) async throws(StoreFault) {}

    func epoch() async throws(StoreFault) -> JournalEpoch {
        let digits = String(number, radix: 16)
        return JournalEpoch(String(repeating: "0", count: 32 - digits.count) + digits)
    }

    func rewind(to seq: Int64) async throws(StoreFault) {}
}
