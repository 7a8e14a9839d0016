import GattherdModel

/// Readings that could not be stored, in memory for delivery alone.
///
/// There is a bound: beyond it the oldest are given up.
struct UnstoredReadings {
    /// Octets of payloads.
    private let capacity: Int
    private var readings: [JournalReading] = []
    /// The first one that is still needed.
    private var start = 0
    private var octets = 0
    private var taken: Int64 = 0
    /// Readings that came.
    private(set) var count = 0
    /// Readings that were given up before anybody took them.
    private(set) var dropped = 0

    init(capacity: Int = 32 << 20) {
        self.capacity = capacity
    }

    /// Readings that are there now.
    var left: Int { readings.count - start }
    var isEmpty: Bool { left == 0 }

    /// Takes readings that are newer than all before them.
    mutating func append(_ more: [JournalReading]) {
        readings += more
        count += more.count
        octets += more.reduce(0) { $0 + $1.payload.count }
        while octets > capacity, left > 1 {
            if readings[start].seq > taken { dropped += 1 }
            removeFirst()
        }
    }

    /// The readings after `seq` together with those of the log, in order, at most `limit`.
    mutating func take(with stored: [JournalReading], after seq: Int64, limit: Int) -> [JournalReading] {
        let limit = max(0, limit)
        let later = readings[start...].drop { $0.seq <= seq }.prefix(limit)
        let found = (stored + later).sorted { $0.seq < $1.seq }.prefix(limit)
        taken = max(taken, found.last?.seq ?? 0)
        return Array(found)
    }

    mutating func acknowledge(through seq: Int64) {
        while start < readings.count, readings[start].seq <= seq { removeFirst() }
    }

    private mutating func removeFirst() {
        octets -= readings[start].payload.count
        start += 1
        guard start > readings.count / 2 else { return }
        readings.removeFirst(start)
        start = 0
    }
}
