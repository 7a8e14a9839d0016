import GattherdModel

/// Readings that could not be stored, held in memory for delivery only.
///
/// Their size is bounded; beyond the bound the oldest are dropped.
struct UnstoredReadings {
    /// The maximum size of the payloads in bytes.
    private let capacity: Int
    private var readings: [JournalReading] = []
    /// The index of the first reading that is still needed.
    private var start = 0
    private var bytes = 0
    private var handedOver: Int64 = 0
    /// The number of readings that arrived.
    private(set) var count = 0
    /// The number of readings dropped before they were handed over.
    private(set) var dropped = 0

    init(capacity: Int = 32 << 20) {
        self.capacity = capacity
    }

    /// The number of readings held now.
    var left: Int { readings.count - start }
    var isEmpty: Bool { left == 0 }

    /// Adds readings that are newer than all earlier ones.
    mutating func append(_ more: [JournalReading]) {
        readings += more
        count += more.count
        bytes += more.reduce(0) { $0 + $1.payload.count }
        while bytes > capacity, left > 1 {
            if readings[start].seq > handedOver { dropped += 1 }
            removeFirst()
        }
    }

    /// Returns the readings after `seq` merged with those of the journal, in order, at most `limit`.
    mutating func merged(with stored: [JournalReading], after seq: Int64, limit: Int) -> [JournalReading] {
        let limit = max(0, limit)
        let later = readings[start...].drop { $0.seq <= seq }.prefix(limit)
        let found = (stored + later).sorted { $0.seq < $1.seq }.prefix(limit)
        handedOver = max(handedOver, found.last?.seq ?? 0)
        return Array(found)
    }

    mutating func acknowledge(through seq: Int64) {
        while start < readings.count, readings[start].seq <= seq { removeFirst() }
    }

    private mutating func removeFirst() {
        bytes -= readings[start].payload.count
        start += 1
        guard start > readings.count / 2 else { return }
        readings.removeFirst(start)
        start = 0
    }
}
