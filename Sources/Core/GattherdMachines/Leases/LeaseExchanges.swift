/// The exchanges with the centre: one at a time, with longer pauses while it does not answer.
struct LeaseExchanges: Sendable {
    /// An exchange that waits for its answer.
    struct Pending: Sendable {
        fileprivate let ticket: Int
        let sent: Duration
        let requests: [LeaseRequest]
    }

    private static let mostFailures = 10

    private let policy: LeaseMachine.Policy
    private let start: Duration
    private let retry: Backoff
    private var pending: Pending?
    private var ticket = 0
    private var last: Duration?
    /// The number of failures since the last answer.
    private var failures = 0
    /// The time at which the last answered exchange was sent.
    private(set) var contact: Duration?
    /// The time at which the first answered exchange was sent after leases could not be renewed; `nil` without one.
    private var returned: Duration?

    init(_ policy: LeaseMachine.Policy, at now: Duration) {
        (self.policy, start) = (policy, now)
        retry = Backoff(minimum: .seconds(1), maximum: policy.longestPause)
    }

    var isPending: Bool { pending != nil }

    /// True if the centre has not answered for the duration of a lease, nor the last exchange.
    ///
    /// A gateway that was suspended asks the centre first.
    func isCut(at now: Duration) -> Bool {
        guard let contact else { return now - start >= policy.startLimit }
        return failures > 0 && now - contact >= policy.duration
    }

    /// True after the centre was away, until the last owners have had the time to renew their leases.
    ///
    /// Their next exchange begins within the longest pause after a failure. The rest is for its answer.
    func isReturning(at now: Duration) -> Bool {
        returned.map { now - $0 < policy.longestPause * 3 / 2 } ?? false
    }

    /// True if the next exchange may begin: `pause` after the last one, and later after a failure.
    func isDue(after pause: @autoclosure () -> Duration, at now: Duration) -> Bool {
        guard pending == nil else { return false }
        guard let last else { return true }
        return now >= last + (failures > 0 ? retry.ceiling(after: failures - 1) : pause())
    }

    /// True if an exchange is due to stay in contact, even if no device needs one.
    func isContactDue(at now: Duration) -> Bool { contact.map { now - $0 >= policy.renewal } ?? true }

    /// Starts an exchange and returns its ticket.
    mutating func start(_ requests: [LeaseRequest], at now: Duration) -> Int {
        ticket += 1
        pending = Pending(ticket: ticket, sent: now, requests: requests)
        last = now
        return ticket
    }

    /// Ends the exchange that was answered; returns `nil` if it is not the pending one.
    mutating func answered(_ ticket: Int) -> Pending? {
        guard let answered = end(ticket) else { return nil }
        if answered.sent - (contact ?? start) >= policy.renewal * 3 / 2 { returned = answered.sent }
        (failures, contact) = (0, answered.sent)
        return answered
    }

    /// Ends the exchange that failed; returns `nil` if it is not the pending one.
    mutating func failed(_ ticket: Int) -> Pending? {
        guard let failed = end(ticket) else { return nil }
        failures = min(failures + 1, Self.mostFailures)
        return failed
    }

    /// Ignores the answer of the pending exchange.
    mutating func cancel() {
        pending = nil
    }

    private mutating func end(_ ticket: Int) -> Pending? {
        guard let pending, pending.ticket == ticket else { return nil }
        self.pending = nil
        return pending
    }
}
