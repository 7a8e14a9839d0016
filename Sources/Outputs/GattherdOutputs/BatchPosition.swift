import GattherdMachines
import GattherdModel

/// The position of a batch output in the journal: its cursor, and the fetched entries after it.
///
/// The cursor passes an entry when the receiver has stored it or refused it permanently. If the receiver keeps the
/// cursor itself, the output adopts the receiver's cursor, and the receiver moves it.
struct BatchPosition: Sendable {
    /// The fetched entries, those in the sink included; `nil` until the cursor is known, and while the journal goes to
    /// the receiver's.
    private(set) var queue: FetchedEntries?
    private(set) var cursor: Int64?
    /// The cursor of the last run, which counts the backlog until a receiver that keeps the cursor has answered.
    private var lastKnown: Int64?
    private var completion = DeliveryCompletion()
    /// True if the journal has corrected times since entries were fetched.
    private(set) var isOutdated = false
    /// The last gap that was returned; the same one is not returned again after entries were fetched again.
    private var lastGap: JournalGap?
    var receiverCursor: ReceiverCursor

    init(isKeptByReceiver: Bool) {
        receiverCursor = ReceiverCursor(isKept: isKeptByReceiver)
    }

    /// The time until which nothing waits; `nil` if there was none in this run.
    var completeUntil: Duration? { completion.until }

    /// Returns an upper bound of the entries up to `head` that are not delivered.
    func backlog(to head: Int64?) -> Int64 {
        guard let head, let cursor = cursor ?? lastKnown else { return 0 }
        guard let queue, queue.isEmpty else { return max(0, head - cursor) }
        return max(0, head - queue.through)
    }

    /// True if the cursor has passed everything up to `head`.
    func isComplete(to head: Int64) -> Bool {
        guard let queue, queue.isEmpty, receiverCursor.refused == nil else { return false }
        return head <= queue.through
    }

    /// Records until which time everything is delivered; `head` is the newest committed number.
    mutating func updateCompletion(to head: Int64?, at now: Duration) {
        guard let head, let queue, receiverCursor.refused == nil else { return }
        completion.update(to: head, at: now) { queue.hasPassed($0) }
    }

    // MARK: - The start

    /// Starts at the saved cursor, unless the receiver keeps another one; returns true if it does.
    mutating func loaded(_ seq: Int64, head: Int64?, at now: Duration) -> Bool {
        guard !receiverCursor.isKept else {
            lastKnown = seq
            return false
        }
        guard queue == nil else { return false }
        start(after: seq, head: head, at: now)
        return true
    }

    /// Records the receiver's cursor; unless it is this one, the journal must go there.
    mutating func receiverAnswered(_ seq: Int64) {
        let seq = max(0, seq)
        guard !receiverCursor.answered(seq, cursor: queue == nil ? nil : cursor) else { return }
        (cursor, queue, isOutdated) = (seq, nil, false)
    }

    /// Starts at the receiver's cursor, because the journal is there, and returns it; `nil` if it was not sent there.
    mutating func rewound(head: Int64?, at now: Duration) -> Int64? {
        guard let seq = receiverCursor.rewound() else { return nil }
        start(after: seq, head: head, at: now)
        return seq
    }

    private mutating func start(after seq: Int64, head: Int64?, at now: Duration) {
        var fetched = FetchedEntries(after: seq)
        fetched.startGathering(to: head, at: now)
        (cursor, queue, isOutdated) = (seq, fetched, false)
    }

    // MARK: - Entries

    /// Records the newest committed number, from which on entries gather.
    mutating func headMoved(to head: Int64?, at now: Duration) {
        queue?.startGathering(to: head, at: now)
    }

    /// Appends a batch of the journal; returns the entries that it has lost, if any and not known.
    mutating func append(_ batch: JournalBatch, head: Int64?, at now: Duration) -> JournalGap? {
        let found = queue?.append(batch, recordsGaps: receiverCursor.isKept)
        let gap = found == lastGap ? nil : found
        lastGap = found ?? lastGap
        guard let queue, queue.isEmpty else { return gap }
        // The cursor of a receiver that keeps it moves with the next entries.
        if !receiverCursor.isKept { cursor = queue.through }
        self.queue?.restartGathering(behind: 0, to: head, at: now)
        return gap
    }

    /// Records that the journal has corrected the times of readings.
    mutating func timesCorrected() { isOutdated = queue != nil }

    /// Removes all fetched entries, so that they are fetched again.
    mutating func removeOutdated(head: Int64?, at now: Duration) {
        if let cursor { start(after: cursor, head: head, at: now) }
    }

    /// The gap that the receiver must record now: it begins at the cursor, because all entries before it are delivered.
    var nextGap: JournalGap? {
        guard receiverCursor.refused == nil, let queue, queue.count == 0, let gap = queue.gap, let cursor else {
            return nil
        }
        return JournalGap(after: cursor, through: gap.through, reason: gap.reason)
    }

    /// Returns the next entries to write, and the number to which the cursor then moves.
    ///
    /// There are no entries if the receiver must move its cursor over refused ones first.
    func nextBatch(entries: Int, bytes: Int) -> (entries: [JournalEntry], through: Int64)? {
        guard let queue, let cursor else { return nil }
        if let refused = receiverCursor.refused { return ([], refused) }
        let batch = queue.prefix(entries: entries, bytes: bytes)
        return (batch, batch.count < queue.count ? batch.last?.seq ?? cursor : queue.end)
    }

    /// Records that the sink has the first `count` entries; later entries gather for the next batch.
    mutating func startedWrite(of count: Int, head: Int64?, at now: Duration) {
        queue?.restartGathering(behind: count, to: head, at: now)
    }

    // MARK: - Progress

    /// Passes the first `count` entries, because the receiver has them; its own cursor is at `through` now.
    mutating func accepted(_ count: Int, through: Int64) {
        let passed = queue?.removeFirst(count)
        cursor = receiverCursor.isKept ? through : passed
        receiverCursor.moved(through: through)
    }

    /// Passes the first entry, because the receiver refuses it; a cursor that the receiver keeps must follow.
    mutating func skipFirst() {
        guard let entry = queue?.first else { return }
        let passed = queue?.removeFirst(1)
        if receiverCursor.isKept {
            receiverCursor.refuse(through: entry.seq)
        } else {
            cursor = passed
        }
    }

    /// Passes a gap that the receiver has recorded.
    mutating func recorded(_ gap: JournalGap, head: Int64?, at now: Duration) {
        cursor = gap.through
        queue?.removeGap()
        queue?.restartGathering(behind: 0, to: head, at: now)
    }
}
