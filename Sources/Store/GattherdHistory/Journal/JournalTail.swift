import GattherdModel
import GattherdSync

/// The newest committed entries, held in memory once for all consumers, so that they need not read them back.
///
/// Each consumer has a position. Entries that all consumers have passed are removed. Beyond the capacity the oldest
/// entries are removed, so a slow or dead consumer costs no memory. Such a consumer reads older entries from the file.
/// Any thread may read.
final class JournalTail: Sendable {
    private struct State: Sendable {
        var entries = EntryQueue()
        /// The tail has all of the journal's entries between these two numbers.
        var floor = Int64.max
        var end = Int64.min
        /// The last number that each consumer has received.
        var positions: [String: Int64]
        /// The last number that each consumer has skipped, if any.
        var skipped: [String: Int64] = [:]
        /// The number of times that entries became outdated.
        var corrections = 0

        mutating func removeAll() {
            entries = EntryQueue()
            (floor, end) = (.max, .min)
        }

        mutating func trim(to capacity: Int) {
            let passed = positions.values.min() ?? end
            while let first = entries.firstSeq, first <= passed || entries.bytes > capacity {
                floor = first
                entries.removeFirst()
            }
        }
    }

    /// The maximum size of the entries in bytes: thousands of readings, for a second.
    private let capacity: Int
    private let state: Locked<State>

    /// - Parameters:
    ///   - consumers: The names of all consumers.
    ///   - capacity: The maximum size in bytes.
    init(consumers: [String], capacity: Int = 512 << 10) {
        self.capacity = capacity
        let positions = Dictionary(consumers.map { ($0, Int64.min) }) { first, _ in first }
        state = Locked(State(positions: positions))
    }

    /// The last number that a consumer has received from the tail.
    func position(of consumer: String) -> Int64 {
        state.withLock { $0.positions[consumer] ?? .min }
    }

    /// Adds committed entries in order.
    ///
    /// - Parameters:
    ///   - entries: All entries between the two numbers that a consumer may want.
    ///   - start: The last number before them; if it is not the tail's end, the tail is emptied first.
    ///   - end: The last number of them.
    func append(_ entries: [JournalEntry], after start: Int64, through end: Int64) {
        state.withLock { state in
            if state.end != start {
                state.entries = EntryQueue()
                state.floor = start
            }
            for entry in entries { state.entries.append(entry) }
            state.end = end
            state.trim(to: capacity)
        }
    }

    /// Empties the tail; consumers read the entries from the journal or other storage.
    func removeAll() {
        state.withLock { $0.removeAll() }
    }

    /// The number of times that entries became outdated, also those that consumers have received.
    var correctionCount: Int { state.withLock { $0.corrections } }

    /// Empties the tail, because the times of entries are being corrected in the file.
    func removeOutdated() {
        state.withLock { state in
            state.removeAll()
            state.corrections += 1
        }
    }

    /// Withholds entries up to `seq` from a consumer, which has skipped them.
    func skip(through seq: Int64, by consumer: String) {
        state.withLock { $0.skipped[consumer] = max($0.skipped[consumer] ?? seq, seq) }
    }

    /// Moves a consumer's position, and gives it the entries after it again.
    func move(_ consumer: String, to seq: Int64) {
        state.withLock { state in
            guard state.positions[consumer] != nil else { return }
            state.positions[consumer] = seq
            if let skipped = state.skipped[consumer] { state.skipped[consumer] = min(skipped, seq) }
        }
    }

    /// Returns the entries after `seq` for a consumer, at most `limit`, and moves its position.
    ///
    /// Returns `nil` if there are none, some are missing in the tail, or the consumer has skipped some.
    func entries(after seq: Int64, limit: Int, for consumer: JournalConsumerOptions) -> JournalBatch? {
        state.withLock { state in
            // The file has the gap of skipped entries.
            guard limit > 0, seq >= state.skipped[consumer.name] ?? seq else { return nil }
            guard seq >= state.floor, seq < state.end else { return nil }
            let batch = state.entries.batch(after: seq, limit: limit, consumer.content, end: state.end)
            if let position = state.positions[consumer.name] {
                state.positions[consumer.name] = max(position, batch.through)
            }
            state.trim(to: capacity)
            return batch
        }
    }
}

/// Entries in order, removed at the front.
private struct EntryQueue: Sendable {
    private var entries: [JournalEntry] = []
    private var start = 0
    private(set) var bytes = 0

    /// The number of the first entry; `nil` without any.
    var firstSeq: Int64? { start < entries.count ? entries[start].seq : nil }

    mutating func append(_ entry: JournalEntry) {
        entries.append(entry)
        bytes += entry.size
    }

    mutating func removeFirst() {
        bytes -= entries[start].size
        start += 1
        guard start > entries.count / 2 else { return }
        entries.removeFirst(start)
        start = 0
    }

    /// Returns up to `limit` wanted entries after `seq`; `end` is the last number that the queue covers.
    func batch(after seq: Int64, limit: Int, _ content: JournalConsumerOptions.Content, end: Int64) -> JournalBatch {
        var batch = JournalBatch([], through: end)
        for entry in entries[index(after: seq)...] where content == .everything || entry.reading != nil {
            guard batch.entries.count < limit else {
                batch.through = batch.entries.last?.seq ?? seq
                break
            }
            batch.entries.append(entry)
        }
        return batch
    }

    private func index(after seq: Int64) -> Int {
        var (low, high) = (start, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].seq <= seq { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
