import GattherdMachines

/// The position in the journal: the last fetched, sent and confirmed entries.
///
/// Values travel with QoS 0, without acknowledgements. But a broker processes packets in order, so its answer to a ping
/// confirms all values that were sent before the ping.
struct JournalProgress: Hashable, Sendable {
    /// The maximum number of readings that are sent and not confirmed.
    private let window: Int
    /// The present maximum: halved by a session in which the broker confirms no values, doubled by each fast answer.
    ///
    /// So values pass over connections that are slow or end soon.
    private(set) var room: Int
    /// True if the broker has confirmed values in this session.
    private var hasConfirmed = false

    /// The newest committed number; `nil` until known.
    private(set) var head: Int64?
    /// The last confirmed number; `nil` until loaded.
    private(set) var cursor: Int64?
    /// The last number that was sent in this session, or is not to be sent.
    private(set) var sent: Int64 = 0
    /// The readings after the cursor, up to ``sent``.
    private(set) var unconfirmed = 0
    /// The number and count up to the ping that is not answered yet.
    private var asked: (through: Int64, count: Int)? { askedThrough.map { ($0, askedCount) } }
    private var askedThrough: Int64?
    private var askedCount = 0
    /// Readings that were confirmed since the start.
    private(set) var delivered: UInt64 = 0
    private var trail: HostTrail

    /// - Parameters:
    ///   - window: The maximum number of readings that are sent and not confirmed.
    ///   - hostGrace: The time after which the crash of the primary host is noticed; zero without one.
    init(window: Int, hostGrace: Duration) {
        (self.window, room) = (window, window)
        trail = HostTrail(grace: hostGrace)
    }

    /// The number after which another run begins; `nil` until loaded.
    var resumePoint: Int64? { cursor.map { _ in trail.start } }
    /// The time at which the resume point moves.
    var resumeDeadline: Duration? { trail.deadline }

    /// An upper bound of the entries that are not confirmed.
    var backlog: Int64 {
        guard let head, let cursor else { return 0 }
        return max(0, head - cursor)
    }

    /// True if all committed entries are sent.
    var isCaughtUp: Bool { head.map { sent >= $0 } ?? true }
    var isConfirmed: Bool { unconfirmed == 0 }
    /// True if entries can be fetched and sent now.
    var canFetch: Bool { cursor != nil && !isCaughtUp && unconfirmed < room }
    /// True if a ping would confirm further values.
    var wantsPing: Bool { askedThrough == nil && cursor.map { sent > $0 } ?? false }

    mutating func load(_ seq: Int64) {
        guard cursor == nil else { return }
        (cursor, sent) = (seq, seq)
        trail.load(seq)
    }

    mutating func headMoved(to seq: Int64) {
        head = max(seq, head ?? seq)
    }

    /// Records that all entries up to `seq` are sent, with `count` readings among them.
    mutating func send(through seq: Int64, count: Int, at now: Duration) {
        sent = max(sent, seq)
        unconfirmed += count
        // Other entries need no confirmation.
        if unconfirmed == 0 { moveCursor(to: sent, at: now) }
    }

    private mutating func moveCursor(to seq: Int64, at now: Duration) {
        cursor = max(cursor ?? seq, seq)
        trail.confirm(seq, at: now)
    }

    /// Moves the resume point over values that were confirmed long enough ago.
    mutating func moveResumePoint(at now: Duration) {
        trail.expire(at: now)
    }

    mutating func ping() {
        askedThrough = sent
        askedCount = unconfirmed
    }

    /// Applies the answer to the last ping.
    mutating func confirm(isFast: Bool, at now: Duration) {
        guard let asked else { return }
        hasConfirmed = true
        if isFast { room = min(window, room * 2) }
        moveCursor(to: asked.through, at: now)
        unconfirmed -= asked.count
        delivered += UInt64(clamping: asked.count)
        askedThrough = nil
    }

    /// Starts a session: the primary host, if any, is online.
    mutating func start(at now: Duration) {
        trail.resume(at: now)
    }

    /// Ends the session: unconfirmed values will be sent again.
    mutating func reset(at now: Duration) {
        trail.pause(at: now)
        if unconfirmed > 0, !hasConfirmed { room = max(1, room / 2) }
        hasConfirmed = false
        sent = cursor ?? 0
        unconfirmed = 0
        askedThrough = nil
    }

    /// Returns to the last values that the primary host has for sure; between sessions only.
    mutating func hostIsOffline() {
        guard cursor != nil else { return }
        sent = trail.rewind()
        cursor = sent
    }
}

/// The values of a session that are published as historical: those committed before its births.
struct HistoricalValues: Sendable {
    /// The number of the last historical entry; -1 before the first births.
    private(set) var end: Int64 = -1
    /// True from the births until the historical values are sent.
    private var areDue = false

    /// Starts with the births of a session; `head` is the newest committed number, if known.
    mutating func start(head: Int64?) {
        end = head ?? end
        areDue = true
    }

    /// Records the first known head, which marks the backlog also if the node is born already.
    mutating func headBecameKnown(_ seq: Int64) {
        end = seq
    }

    /// Returns true once for each session, when all historical values are sent.
    mutating func finish(_ progress: JournalProgress) -> Bool {
        guard areDue, progress.cursor != nil, progress.sent >= min(end, progress.head ?? end) else { return false }
        areDue = false
        return true
    }
}

/// The time for which the oldest undelivered entry has waited at most.
struct WaitingTime: Sendable {
    private var completion = DeliveryCompletion()
    /// The numbers of the last update, which held until the next one.
    private var last: (head: Int64, cursor: Int64)?
    /// The first update with undelivered entries.
    private var first: Duration?

    /// Compares the newest committed number with the last confirmed one; returns `nil` if nothing waits.
    mutating func update(head: Int64?, cursor: Int64?, at now: Duration) -> Duration? {
        if let last { completion.update(to: last.head, at: now) { $0 <= last.cursor } }
        guard let head, let cursor else { return nil }
        last = (head, cursor)
        guard cursor < head else { return nil }
        first = first ?? now
        return now - (completion.until ?? first ?? now)
    }
}
