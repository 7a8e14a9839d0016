import GattherdModel

/// The acknowledged entries of a ``DeliveryWindow`` that a new session or another run publishes again.
struct ReplayTrail: Sendable {
    /// The maximum number of acknowledged readings in memory.
    static let memory = 1000

    /// The `seq` after which a new session begins; later readings may be published again.
    private var replayPoint: Int64
    /// The `seq` after which another run begins, were no reading delayed; at or after the replay point.
    private(set) var passedPoint: Int64
    /// The index of the first entry after the replay point.
    private(set) var kept = 0
    /// The index of the first entry after the resume point.
    private(set) var resumable = 0

    init(cursor: Int64) {
        (replayPoint, passedPoint) = (cursor, cursor)
    }

    /// Moves the resume point over entries passed by the cursor up to `time`, and over all but the last `limit`.
    mutating func moveResumePoint(
        over entries: [DeliveryWindow.Entry],
        to end: Int,
        before time: Duration,
        limit: Int
    ) {
        while resumable < end, entries[resumable].passedAt <= time || end - resumable > limit {
            passedPoint = max(passedPoint, entries[resumable].reading.seq)
            resumable += 1
        }
    }

    /// Moves the replay point over entries passed by the cursor up to `time`.
    mutating func moveReplayPoint(over entries: [DeliveryWindow.Entry], to limit: Int, before time: Duration) {
        var end = kept
        while end < limit, entries[end].passedAt <= time { end += 1 }
        moveReplayPoint(over: entries, toIndex: end)
    }

    /// Moves the replay point forward to the entry before `end`.
    mutating func moveReplayPoint(over entries: [DeliveryWindow.Entry], toIndex end: Int) {
        guard end > kept else { return }
        replayPoint = max(replayPoint, entries[end - 1].reading.seq)
        kept = end
        resumable = max(resumable, end)
        passedPoint = max(passedPoint, replayPoint)
    }

    /// Moves the resume point back to an entry that is unsent again; the number of another run stays.
    mutating func rewind(to index: Int) { resumable = min(resumable, index) }

    /// Returns the number of entries before the replay point to be removed, once there are enough to justify it.
    mutating func removeKept() -> Int {
        guard kept >= Self.memory else { return 0 }
        defer { (kept, resumable) = (0, resumable - kept) }
        return kept
    }
}

/// The lost sessions, as far as they determine which readings are published again.
///
/// A network that cuts each connection soon makes every session carry the readings of the one before it, and no others.
/// So after several short sessions, acknowledged readings are excluded if the broker has not stopped meanwhile.
struct SessionLosses: Sendable {
    /// The number of short sessions in a row that suggest such a network.
    private static let patience = 3

    private var last: Int?
    /// The number of short sessions since the last long one, or since the broker was last down.
    private var short = 0
    /// True once the broker has sent the last will of a lost session to the next one.
    private var sendsWills = false

    mutating func record(_ session: Int, isShort: Bool) {
        last = session
        short = isShort ? short + 1 : 0
    }

    /// Records that the broker was down, which explains the last losses better than such a network.
    mutating func brokerWasDown() { short = 0 }

    /// True if the losses suggest such a network, and the last wills would confirm it.
    var suggestNetwork: Bool { short >= Self.patience && sendsWills }

    /// Records that the broker has published the last will of a session.
    ///
    /// - Returns: True if the broker keeps what it acknowledged in the last session, whose acknowledged readings are
    /// then excluded.
    mutating func excludesReplay(afterLastWillOf session: Int) -> Bool {
        guard session == last else { return false }
        sendsWills = true
        return short >= Self.patience
    }
}
