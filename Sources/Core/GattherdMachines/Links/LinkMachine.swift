public import GattherdModel

/// The life of one device's link: events in, effects out, no clock and no I/O.
///
/// Answers carry the ticket of their question; an answer to an older question changes nothing. Every state that waits
/// for an answer has a timer too, so that no link is stuck when the answer never comes.
public struct LinkMachine: Equatable, Sendable {
    public enum Event: Equatable, Sendable {
        /// BlueZ knows the peripheral, and the adapter that it was seen on is usable.
        case seen(isConnected: Bool)
        /// BlueZ shows a link over which it has found no services: one that another program makes, or one that a bluetoothd
        /// which crashed has left, and that the kernel is about to drop.
        case linkFound
        /// There is nothing to try any more: forgotten, adapter gone or off, bluetoothd gone.
        case gone(LinkReason, detail: String)
        /// It is this link's turn to connect.
        case granted
        case connected(ticket: Int)
        /// The GATT table is there and a profile matches.
        case discovered(ticket: Int)
        case prepared(ticket: Int)
        case failed(LinkFault, ticket: Int)
        /// Whether the ready link works cannot be said, as bluetoothd does not answer.
        case stalled(detail: String, ticket: Int)
        /// bluetoothd answers again.
        case resumed(ticket: Int)
        /// The link dropped.
        case lost(LinkReason, detail: String)
        /// The answer to ``Effect/disconnect(ticket:)``.
        case disconnected(ticket: Int)
        /// The time of ``Effect/arm(after:ticket:)`` has come.
        case due(ticket: Int)
        /// A subscription of the session has ended while the link is up.
        case sessionStale
        /// The GATT table is another one; the subscriptions to what did not change still stand.
        case tableChanged
        /// The configuration of the device, or what its profiles say, is another.
        case reconfigured
        /// The link makes room for another device, and may not come back before a pause is over.
        case yield(Duration, detail: String)
        /// A person wants it disconnected.
        case hold
        /// A person wants it connected.
        case release
    }

    public enum Effect: Equatable, Sendable {
        /// Ask for a turn to connect.
        case queue
        /// Give the turn back, or leave the queue.
        case unqueue
        case connect(ticket: Int)
        /// Read the GATT table, run the connection tasks, subscribe.
        case openSession(ticket: Int)
        /// End what ``openSession(ticket:)`` began.
        case closeSession
        /// End the session and open another on the same link; what both subscribe to stays subscribed.
        case replaceSession(ticket: Int)
        /// End the link, or the attempt.
        case disconnect(ticket: Int)
        /// Send ``Event/due(ticket:)`` after this time; takes the place of the timer before.
        case arm(after: Duration, ticket: Int)
        /// The state is another one now.
        case changed(LinkChange)
    }

    /// What the machine knows for how long to wait.
    public struct Policy: Equatable, Sendable {
        public var backoff: Backoff
        /// A link must have been ready for this long before earlier failures are forgotten.
        public var stableAfter: Duration
        /// The pause after the first failed attempt to connect: others have their turn meanwhile, and an adapter that nobody
        /// else wants need not be idle for the whole of the shortest pause.
        public var firstRetry = Duration.milliseconds(100)
        /// The pause before what retrying cannot mend is tried again.
        public var slowRetry: Duration
        /// For ``Effect/connect(ticket:)``: who carries it out has a shorter limit of its own.
        public var connectLimit = Duration.seconds(60)
        /// From ``Effect/openSession(ticket:)`` to ready.
        public var sessionLimit = Duration.seconds(180)
        /// How long a link without services is waited for: the kernel drops an abandoned one 2.25 s after a crash.
        public var doubtLimit = Duration.milliseconds(2500)
        /// For ``Effect/disconnect(ticket:)``.
        public var endLimit = Duration.seconds(30)

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

    /// A link that was found without services.
    enum Doubt: Equatable {
        case none
        /// It may be dropped, or turn out to be of use.
        case waiting
        /// It is still there: `Connect` will use it.
        case over
    }

    /// A disconnect without an answer yet; until then nothing new is begun.
    struct Ending: Equatable {
        let ticket: Int
        /// The pause that begins when the link has ended.
        let pause: Duration
    }

    public internal(set) var state = LinkState.waiting
    /// Failed attempts since the link was last ready for long enough.
    public internal(set) var attempt = 0
    var reason: LinkReason?
    var ticket = 0
    /// True from ``Effect/queue`` until ``Effect/unqueue``.
    var isQueued = false
    var isPresent = false
    var ending: Ending?
    var doubt = Doubt.none
    /// True when it was the session that failed, and not the link: the same link would fail again.
    var hasFailedSession = false
    var readySince: Duration?
    /// When a session was last opened anew on the same link.
    var reopenedAt: Duration?
    /// When the GATT table last changed.
    var tableChangedAt: Duration?
    /// The number of changes of the table with less than ``Policy/stableAfter`` between them.
    var tableChanges = 0
    let policy: Policy

    /// A link that has not been seen; `isHeld` when a person disconnected it before.
    public init(policy: Policy = Policy(), isHeld: Bool = false) {
        self.policy = policy
        if isHeld { (state, reason) = (.held, .requested) }
    }

    /// Applies one event at the monotonic time `now`, and says what must be done, in order.
    ///
    /// An event that the state does not expect changes nothing: late signals are weather here.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - now: Time since an arbitrary start; never goes back.
    ///   - generator: For the jitter.
    /// - Returns: What to do.
    public mutating func handle(
        _ event: Event,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> [Effect] {
        if isStable(at: now) { attempt = 0 }
        return switch event {
        case .seen(let isConnected): seen(isConnected: isConnected)
        case .linkFound: linkFound()
        case .gone(.vanished, let detail): vanished(detail, now: now, using: &generator)
        case .gone(let reason, let detail): gone(reason, detail)
        case .granted: granted()
        case .connected(let answered): answered == ticket ? connected() : []
        case .discovered(let answered): answered == ticket ? discovered() : []
        case .prepared(let answered): answered == ticket ? prepared(now: now) : []
        case .failed(let fault, let answered):
            answered == ticket ? refused(fault, now: now, using: &generator) : []
        case .stalled(let detail, let answered): answered == ticket ? stalled(detail) : []
        case .resumed(let answered): answered == ticket ? resumed() : []
        case .lost(let reason, let detail):
            lost(LinkFault(reason, detail), now: now, using: &generator)
        case .disconnected(let answered): answered == ending?.ticket ? ended() : []
        case .due(let answered): due(answered, now: now, using: &generator)
        case .sessionStale: sessionStale(now: now, using: &generator)
        case .tableChanged: tableChanged(now: now, using: &generator)
        case .reconfigured: reconfigured()
        case .yield(let pause, let detail): yield(pause, detail)
        case .hold: hold()
        case .release: release()
        }
    }

    /// True while BlueZ may hold a link of ours.
    var isUp: Bool {
        switch state {
        case .connecting, .discovering, .preparing, .ready: true
        case .waiting, .disconnecting, .disconnected, .backingOff, .held, .failed: false
        }
    }

    /// True when the link has been ready for so long that earlier failures do not count any more.
    func isStable(at now: Duration) -> Bool {
        readySince.map { now - $0 >= policy.stableAfter } ?? false
    }

    // MARK: - Steps that handlers are made of

    mutating func enqueue() -> [Effect] {
        guard !isQueued, ending == nil else { return [] }
        isQueued = true
        return [.queue]
    }

    mutating func leaveQueue() -> [Effect] {
        guard isQueued else { return [] }
        isQueued = false
        return [.unqueue]
    }

    mutating func closeSession() -> [Effect] {
        readySince = nil
        switch state {
        case .discovering, .preparing, .ready: return [.closeSession]
        case .waiting, .connecting, .disconnecting, .disconnected, .backingOff, .held, .failed: return []
        }
    }

    mutating func openSession(reason: LinkReason?) -> [Effect] {
        let moved = move(to: .discovering, reason: reason)
        return moved + [.openSession(ticket: ticket), .arm(after: policy.sessionLimit, ticket: ticket)]
    }

    /// Reads the table anew without letting go of what is subscribed.
    mutating func replaceSession(reason: LinkReason?) -> [Effect] {
        readySince = nil
        let moved = move(to: .discovering, reason: reason)
        return moved + [.replaceSession(ticket: ticket), .arm(after: policy.sessionLimit, ticket: ticket)]
    }

    /// Ends the link of the state just left.
    mutating func end(thenPause pause: Duration = .zero) -> [Effect] {
        ending = Ending(ticket: ticket, pause: pause)
        return [.disconnect(ticket: ticket), .arm(after: policy.endLimit, ticket: ticket)]
    }

    /// Leaves the state for another, which closes the open question.
    mutating func move(
        to next: LinkState,
        reason: LinkReason?,
        _ detail: String? = nil,
        retryAfter: Duration? = nil
    ) -> [Effect] {
        ticket += 1
        return [change(to: next, reason: reason, detail, retryAfter: retryAfter)]
    }

    /// Leaves the state for another that waits for the same answer.
    mutating func change(
        to next: LinkState,
        reason: LinkReason?,
        _ detail: String? = nil,
        retryAfter: Duration? = nil
    ) -> Effect {
        defer { (state, self.reason) = (next, reason) }
        return .changed(
            LinkChange(
                from: state,
                to: next,
                reason: reason,
                detail: detail,
                attempt: attempt,
                retryAfter: retryAfter
            )
        )
    }
}
