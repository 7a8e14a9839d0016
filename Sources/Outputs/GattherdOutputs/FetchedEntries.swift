public import GattherdModel

/// Fetched entries that are not delivered, in order, with their size.
struct FetchedEntries: Sendable {
    private var entries: [JournalEntry] = []
    private(set) var bytes = 0
    /// The journal has no other entries up to this number.
    private(set) var through: Int64
    /// Lost entries after all others; the receiver must record them before more are fetched.
    private(set) var gap: JournalGap?
    /// The mean size of the entries appended last.
    private(set) var entrySize = 0
    /// The time since which entries wait that are not in the sink, whether fetched or not; `nil` if none wait.
    private(set) var gatheringSince: Duration?

    init(after seq: Int64) {
        through = seq
    }

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty && gap == nil }
    /// The number up to which nothing is lost.
    var end: Int64 { gap?.after ?? through }
    var first: JournalEntry? { entries.first }
    /// True if no entry up to `seq` waits, fetched or not.
    func hasPassed(_ seq: Int64) -> Bool { entries.first.map { seq < $0.seq } ?? (gap == nil && seq <= through) }

    /// True if a batch has numbers that are not known yet.
    func isBehind(_ batch: JournalBatch) -> Bool { max(batch.through, batch.entries.last?.seq ?? through) > through }

    /// Appends a batch; entries that are known already are left out.
    ///
    /// - Parameters:
    ///   - batch: The batch.
    ///   - recordsGaps: True if the receiver records entries that are lost.
    /// - Returns: The entries that are lost, if any.
    mutating func append(_ batch: JournalBatch, recordsGaps: Bool) -> JournalGap? {
        let found = batch.missing.flatMap { missing in
            missing.through > through
                ? JournalGap(after: through, through: missing.through, reason: missing.reason) : nil
        }
        if recordsGaps, found != nil { gap = found }
        let before = (count: entries.count, bytes: bytes)
        for entry in batch.entries where entry.seq > through {
            entries.append(entry)
            bytes += entry.size
            through = entry.seq
        }
        through = max(through, batch.through)
        if entries.count > before.count { entrySize = (bytes - before.bytes) / (entries.count - before.count) }
        return found
    }

    /// Returns the first entries within these limits, at least one if there is one.
    func prefix(entries limit: Int, bytes most: Int) -> [JournalEntry] {
        var size = 0
        let end = entries.prefix(max(1, limit)).firstIndex { entry in
            defer { size += entry.size }
            return size >= most
        }
        return Array(end.map { entries[..<$0] } ?? entries.prefix(max(1, limit)))
    }

    /// Removes the first `count` entries.
    ///
    /// - Returns: The number up to which nothing is left.
    mutating func removeFirst(_ count: Int) -> Int64 {
        let removed = entries.prefix(count)
        bytes -= removed.reduce(0) { $0 + $1.size }
        let last = removed.last?.seq ?? 0
        entries.removeFirst(removed.count)
        return entries.isEmpty ? end : last
    }

    /// Removes the gap, because the receiver has recorded it.
    mutating func removeGap() { gap = nil }

    /// Starts the interval with the first entry that is not in the sink; `head` is the newest committed number.
    mutating func startGathering(to head: Int64?, at now: Duration) {
        guard gatheringSince == nil, let head, head > through else { return }
        gatheringSince = now
    }

    /// Starts the next interval, because the first `count` entries are in the sink.
    mutating func restartGathering(behind count: Int, to head: Int64?, at now: Duration) {
        gatheringSince = entries.count > count ? now : nil
        startGathering(to: head, at: now)
    }
}

extension JournalEntry {
    /// The entry's own time; a correction has none.
    public var time: Timestamp? {
        switch self {
        case .reading(let reading): reading.time
        case .event(let event, _): event.time
        case .reject(let reject, _): reject.time
        case .correction: nil
        }
    }
}
