public import GattherdModel

// The events, the effects and the policy of a link.
extension LinkMachine {
    public enum Event: Equatable, Sendable {
        /// BlueZ knows the peripheral, on a usable adapter.
        case seen(isConnected: Bool)
        /// BlueZ shows a link without discovered services.
        ///
        /// Another program may be connecting. Or a crashed bluetoothd left the link, and the kernel is about to drop
        /// it.
        case linkFound
        /// The peripheral is unreachable: its object, its adapter or bluetoothd is gone, or the adapter is off.
        case gone(LinkReason, detail: String)
        /// The connect queue granted this link its turn.
        case granted
        case connected(ticket: Int)
        /// The GATT table is known and a profile matches.
        case discovered(ticket: Int)
        case prepared(ticket: Int)
        case failed(LinkFault, ticket: Int)
        /// The health of the ready link is unknown, because bluetoothd does not answer.
        case stalled(detail: String, ticket: Int)
        /// bluetoothd answers again.
        case resumed(ticket: Int)
        /// The link dropped.
        case lost(LinkReason, detail: String)
        /// The answer to ``Effect/disconnect(ticket:)``.
        case disconnected(ticket: Int)
        /// The timer of ``Effect/arm(after:ticket:)`` expired.
        case due(ticket: Int)
        /// A subscription of the session ended while the link is up.
        case sessionStale
        /// The GATT table changed; subscriptions to unchanged attributes remain.
        case tableChanged
        /// The device's configuration or its profiles changed.
        case reconfigured
        /// The link makes room for another device and stays away for a pause.
        case yield(Duration, detail: String)
        /// A user disconnects the device.
        case hold
        /// A user connects the device again.
        case release
        /// Another gateway may own the device: the link ends, and none is made until ``admitted``.
        case withdrawn(detail: String)
        /// This gateway owns the device and may connect it.
        case admitted
    }

    public enum Effect: Equatable, Sendable {
        /// Requests a turn to connect.
        case queue
        /// Returns the turn, or leaves the queue.
        case unqueue
        case connect(ticket: Int)
        /// Reads the GATT table, runs the connection tasks and subscribes.
        case openSession(ticket: Int)
        /// Ends the session that ``openSession(ticket:)`` opened.
        case closeSession
        /// Ends the session and opens another on the same link; common subscriptions remain.
        case replaceSession(ticket: Int)
        /// Ends the link, or the attempt.
        case disconnect(ticket: Int)
        /// Sends ``Event/due(ticket:)`` after this time; replaces the previous timer.
        case arm(after: Duration, ticket: Int)
        /// The state changed.
        case changed(LinkChange)
    }

    /// The timeouts and pauses of a link.
    public struct Policy: Equatable, Sendable {
        public var backoff: Backoff
        /// The time for which a link must be ready before the failure count is reset.
        public var stableAfter: Duration
        /// The pause after the first failed attempt to connect.
        ///
        /// Other devices get their turn meanwhile. An adapter without other work need not be idle for the whole
        /// shortest pause.
        public var firstRetry = Duration.milliseconds(100)
        /// The pause before a problem is retried that retries alone cannot fix.
        public var slowRetry: Duration
        /// The limit of ``Effect/connect(ticket:)``; the executor has a shorter limit of its own.
        public var connectLimit = Duration.seconds(60)
        /// The limit from ``Effect/openSession(ticket:)`` to ready.
        public var sessionLimit = Duration.seconds(180)
        /// The limit for a link without services: the kernel drops an abandoned one 2.25 s after a crash.
        public var doubtLimit = Duration.milliseconds(2500)
        /// The limit of ``Effect/disconnect(ticket:)``.
        public var endLimit = Duration.seconds(30)
        /// True if no link is made before ``Event/admitted``.
        public var needsAdmission = false

        public init(
            backoff: Backoff = Backoff(minimum: .seconds(1), maximum: .seconds(60)),
            stableAfter: Duration = .seconds(30),
            slowRetry: Duration = .seconds(300)
        ) {
            self.backoff = backoff
            self.stableAfter = stableAfter
            self.slowRetry = slowRetry
        }
    }
}

/// A transition of a link from one state to another.
public struct LinkChange: Equatable, Sendable {
    public let from: LinkState
    public let to: LinkState
    public let reason: LinkReason?
    public internal(set) var detail: String?
    public let attempt: Int
    public let retryAfter: Duration?

    /// True if the state is the same and only its details changed.
    public var isWithinState: Bool { from == to }

    public init(
        from: LinkState,
        to: LinkState,
        reason: LinkReason?,
        detail: String?,
        attempt: Int,
        retryAfter: Duration?
    ) {
        self.from = from
        self.to = to
        self.reason = reason
        self.detail = detail
        self.attempt = attempt
        self.retryAfter = retryAfter
    }
}
