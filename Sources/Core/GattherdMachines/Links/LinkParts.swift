/// The presence of a peripheral in BlueZ, and the state of a link that was found without services.
struct LinkPresence: Equatable, Sendable {
    /// The state of a link that was found without services.
    enum Doubt: Equatable, Sendable {
        case none
        /// The link is found, and may drop or become usable.
        case waiting
        /// The link stayed up, so `Connect` will use it.
        case over
    }

    private(set) var isPresent = false
    private(set) var doubt = Doubt.none

    /// Records that BlueZ knows the peripheral, and any link of it is usable.
    mutating func seen() { (isPresent, doubt) = (true, .none) }

    /// Records that BlueZ shows a link without services.
    mutating func linkFound() { isPresent = true }

    /// Records that the peripheral is unreachable.
    mutating func gone() { (isPresent, doubt) = (false, .none) }

    mutating func startDoubt() { doubt = .waiting }

    mutating func endDoubt() { doubt = .over }
}

/// The stability of a link: since when it is ready, and how often its sessions were reopened.
struct LinkStability: Equatable, Sendable {
    private static let maximumTableChanges = 5

    /// The time after which the failure count is reset.
    private let period: Duration
    private(set) var readySince: Duration?
    /// True if the session failed and not the link: the same link would fail again.
    private(set) var hasFailedSession = false
    /// The time at which a session was last reopened on the same link.
    private var reopenedAt: Duration?
    /// The time of the last change of the GATT table.
    private var tableChangedAt: Duration?
    /// The number of changes of the table with less than ``period`` between them.
    private var tableChanges = 0

    init(period: Duration) {
        self.period = period
    }

    /// True if the link has been ready long enough to reset the failure count.
    func isStable(at now: Duration) -> Bool {
        readySince.map { now - $0 >= period } ?? false
    }

    mutating func becameReady(at now: Duration) { readySince = now }

    mutating func sessionEnded() { readySince = nil }

    /// Records a failure of the session, or of the whole link.
    mutating func failed(isSessionOnly: Bool) { hasFailedSession = isSessionOnly }

    /// Records that a session is reopened on the same link; false if a session was reopened shortly before.
    mutating func reopen(at now: Duration) -> Bool {
        defer { reopenedAt = now }
        return !isRecent(reopenedAt, at: now)
    }

    /// Records a change of the GATT table; false if it keeps changing.
    mutating func changeTable(at now: Duration) -> Bool {
        tableChanges = isRecent(tableChangedAt, at: now) ? tableChanges + 1 : 1
        tableChangedAt = now
        guard tableChanges > Self.maximumTableChanges else { return true }
        tableChanges = 0
        return false
    }

    private func isRecent(_ time: Duration?, at now: Duration) -> Bool {
        time.map { now - $0 < period } ?? false
    }
}
