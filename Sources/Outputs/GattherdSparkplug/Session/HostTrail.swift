/// The confirmed entries that the primary host may have missed.
///
/// The broker notices the crash of a host by its keepalive, and confirms values for it until then. So the host has an
/// entry for sure once it stays online for a grace after the confirmation. Time in which the gateway does not know the
/// state of the host does not count.
struct HostTrail: Hashable, Sendable {
    private struct Confirmation: Hashable {
        let seq: Int64
        let time: Duration
    }

    /// The number of parts of the grace, of each of which at most two confirmations are kept.
    private static let parts = 32
    /// The number of sessions of the host in a row in which the same entries are confirmed at most.
    private static let mostSessions = 3

    private let grace: Duration
    private var confirmations: [Confirmation] = []
    /// The end of the last session, until the next one starts.
    private var pausedAt: Duration?
    /// The last number that the host has for sure.
    private(set) var start: Int64 = 0
    /// The last numbers that the broker has confirmed in the latest sessions of the host.
    private var ends: [Int64] = []

    /// - Parameter grace: The time after which a crash is noticed at the latest; zero without a primary host.
    init(grace: Duration) {
        self.grace = grace
    }

    /// The number of confirmations in memory.
    var count: Int { confirmations.count }
    /// The time at which ``start`` moves; `nil` between sessions.
    var deadline: Duration? { pausedAt == nil ? confirmations.first.map { $0.time + grace } : nil }

    mutating func load(_ seq: Int64) {
        start = seq
    }

    /// Ends a session: the state of the host is unknown from now on.
    mutating func pause(at now: Duration) {
        expire(at: now)
        pausedAt = pausedAt ?? now
    }

    /// Starts a session: the host is online.
    mutating func resume(at now: Duration) {
        guard let pausedAt else { return }
        confirmations = confirmations.map { Confirmation(seq: $0.seq, time: $0.time + (now - pausedAt)) }
        self.pausedAt = nil
    }

    /// Records that the broker has all entries up to `seq`.
    mutating func confirm(_ seq: Int64, at now: Duration) {
        guard seq > confirmations.last?.seq ?? start else { return }
        let isClose = confirmations.dropLast().last.map { now - $0.time < grace / Self.parts } ?? false
        if isClose { confirmations.removeLast() }
        confirmations.append(Confirmation(seq: seq, time: now))
        expire(at: now)
    }

    /// Removes the confirmations whose grace is over, unless there is no session.
    mutating func expire(at now: Duration) {
        guard pausedAt == nil else { return }
        let count = confirmations.prefix { now - $0.time >= grace }.count
        guard count > 0 else { return }
        start = confirmations[count - 1].seq
        confirmations.removeFirst(count)
    }

    /// Returns the number after which entries are sent to the host again.
    ///
    /// Entries that were confirmed in ``mostSessions`` sessions in a row are not among them. Otherwise a host that
    /// never stays online for the grace would get the same values for ever.
    mutating func rewind() -> Int64 {
        guard let last = confirmations.last else { return start }
        confirmations.removeAll()
        ends.append(last.seq)
        guard ends.count == Self.mostSessions else { return start }
        start = max(start, ends.min() ?? start)
        ends.removeFirst()
        return start
    }
}
