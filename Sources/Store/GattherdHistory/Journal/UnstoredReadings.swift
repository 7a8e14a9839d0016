import GattherdModel

/// Readings that could not be stored, held in memory for delivery only.
///
/// Their size is bounded; beyond the bound the oldest are dropped.
struct UnstoredReadings {
    /// The maximum size of the payloads in bytes.
    private let capacity: Int
    /// The last number that each consumer has acknowledged.
    private var acknowledged: [String: Int64]
    private var readings: [JournalReading] = []
    /// The index of the first reading that is still needed.
    private var start = 0
    private var bytes = 0
    /// The last number that each consumer has received.
    private var handedOver: [String: Int64]
    /// The number of the last reading that arrived.
    private(set) var last: Int64 = 0
    /// The number of the last reading that was removed.
    private(set) var removed: Int64 = 0
    /// The number of readings that arrived.
    private(set) var count = 0
    /// The number of readings dropped before all consumers had received them.
    private(set) var dropped = 0

    init(consumers: [String], capacity: Int = 32 << 20) {
        acknowledged = Dictionary(consumers.map { ($0, 0) }) { first, _ in first }
        handedOver = acknowledged
        self.capacity = capacity
    }

    /// The number of readings held now.
    var left: Int { readings.count - start }
    var isEmpty: Bool { left == 0 }

    /// Adds readings that are newer than all earlier ones.
    mutating func append(_ more: [JournalReading]) {
        readings += more
        count += more.count
        last = more.last?.seq ?? last
        bytes += more.reduce(0) { $0 + $1.size }
        guard bytes > capacity else { return }
        let passed = handedOver.values.min() ?? .max
        while bytes > capacity, left > 1 {
            if readings[start].seq > passed { dropped += 1 }
            removeFirst()
        }
    }

    /// Returns the readings after `seq` merged with the journal's entries, in order, at most `limit`.
    ///
    /// - Parameters:
    ///   - stored: The journal's entries, or a gap of them.
    ///   - seq: The number after which entries are wanted.
    ///   - limit: The maximum number of entries.
    ///   - isComplete: True if the journal has no entries beyond the stored ones.
    ///   - consumer: The consumer that gets them.
    /// - Returns: The entries, or a gap.
    mutating func merged(
        with stored: JournalBatch,
        after seq: Int64,
        limit: Int,
        isComplete: Bool,
        for consumer: String
    ) -> JournalBatch {
        if let gap = stored.missing { return merged(with: gap, limit: limit, for: consumer) }
        let later = readings[index(after: seq)...]
        // Beyond the stored entries there may be more, unless these are complete.
        let through = max(stored.through, later.last?.seq ?? 0)
        let known = isComplete ? through : stored.through
        // One more than the limit shows that there are more.
        let next = later.prefix(min(max(0, limit), later.count) + 1).prefix { $0.seq <= known }
        let found = (stored.entries + next.map { .reading($0) }).sorted { $0.seq < $1.seq }
        let entries = Array(found.prefix(max(0, limit)))
        handOver(through: entries.last?.seq ?? 0, to: consumer)
        return JournalBatch(entries, through: entries.count < found.count ? entries.last?.seq ?? seq : known)
    }

    /// Returns the unstored readings at the gap's start, or the gap before the first of them.
    private mutating func merged(with gap: JournalGap, limit: Int, for consumer: String) -> JournalBatch {
        let inside = readings[index(after: gap.after)...].prefix { $0.seq <= gap.through }
        guard let first = inside.first else { return JournalBatch(missing: gap) }
        guard first.seq == gap.after + 1 else {
            return JournalBatch(missing: JournalGap(after: gap.after, through: first.seq - 1, reason: gap.reason))
        }
        let run = inside.prefix(max(1, limit)).enumerated().prefix { $1.seq == first.seq + Int64($0) }.map(\.element)
        handOver(through: run.last?.seq ?? 0, to: consumer)
        return JournalBatch(run.map { .reading($0) }, through: run.last?.seq ?? gap.after)
    }

    /// The index of the first reading after `seq`.
    ///
    /// A dead consumer holds all readings, so a linear search would cost the others much.
    private func index(after seq: Int64) -> Int {
        var (low, high) = (start, readings.count)
        while low < high {
            let middle = (low + high) / 2
            if readings[middle].seq <= seq { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private mutating func handOver(through seq: Int64, to consumer: String) {
        guard let before = handedOver[consumer] else { return }
        handedOver[consumer] = max(before, seq)
    }

    /// Removes the readings that all consumers have acknowledged.
    mutating func acknowledge(through seq: Int64, by consumer: String) {
        guard let before = acknowledged[consumer] else { return }
        acknowledged[consumer] = max(before, seq)
        let passed = acknowledged.values.min() ?? 0
        while start < readings.count, readings[start].seq <= passed { removeFirst() }
    }

    private mutating func removeFirst() {
        bytes -= readings[start].size
        removed = readings[start].seq
        start += 1
        guard start > readings.count / 2 else { return }
        readings.removeFirst(start)
        start = 0
    }
}
