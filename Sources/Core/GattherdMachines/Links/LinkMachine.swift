public import GattherdModel

/// The state machine of one device's link: events in, effects out, no clock and no I/O.
///
/// Answers carry the ticket of their request; an answer to an older request changes nothing. Every state that waits
/// for an answer has a timer too, so that a missing answer never blocks a link.
public struct LinkMachine: Equatable, Sendable {
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
        /// Request a turn to connect.
        case queue
        /// Return the turn, or leave the queue.
        case unqueue
        case connect(ticket: Int)
        /// Read the GATT table, run the connection tasks, subscribe.
        case openSession(ticket: Int)
        /// End what ``openSession(ticket:)`` began.
        case closeSession
        /// End the session and open another on the same link; common subscriptions remain.
        case replaceSession(ticket: Int)
        /// End the link, or the attempt.
        case disconnect(ticket: Int)
        /// Send ``Event/due(ticket:)`` after this time; replaces the previous timer.
        case arm(after: Duration, ticket: Int)
        /// The state changed.
        case changed(LinkChange)
    }

    /// The timeouts and pauses of a link.
    public struct Policy: Equatable, Sendable {
        public var backoff: Backoff
        /// The time for which a link must be ready before earlier failures are forgotten.
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

    /// The state of a link that was found without services.
    enum Doubt: Equatable {
        case none
        /// The link may drop, or become usable.
        case waiting
        /// The link is still up: `Connect` will use it.
        case over
    }

    /// A disconnect without an answer yet; nothing new begins until then.
    struct Ending: Equatable {
        let ticket: Int
        /// The pause that begins when the link has ended.
        let pause: Duration
    }

    public internal(set) var state = LinkState.waiting
    /// Failed attempts since the link was last ready for ``Policy/stableAfter``.
    public internal(set) var attempt = 0
    var reason: LinkReason?
    var ticket = 0
    /// True from ``Effect/queue`` until ``Effect/unqueue``.
    var isQueued = false
    var isPresent = false
    var ending: Ending?
    var doubt = Doubt.none
    /// True if the session failed and not the link: the same link would fail again.
    var hasFailedSession = false
    var readySince: Duration?
    /// The time at which a session was last reopened on the same link.
    var reopenedAt: Duration?
    /// The time of the last change of the GATT table.
    var tableChangedAt: Duration?
    /// The number of changes of the table with less than ``Policy/stableAfter`` between them.
    var tableChanges = 0
    /// The reason why another gateway may connect the device and this one may not; `nil` if this one may.
    private(set) var withdrawal: String?
    let policy: Policy

    /// Creates the machine of an unseen link; `isHeld` if a user disconnected the device before.
    public init(policy: Policy = Policy(), isHeld: Bool = false) {
        self.policy = policy
        if policy.needsAdmission { withdrawal = "no gateway has its lease yet" }
        if isHeld { (state, reason) = (.held, .requested) }
    }

    /// Applies one event at the monotonic time `now` and returns the resulting effects, in order.
    ///
    /// An event that the state does not expect changes nothing: late signals are normal here.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - now: Time since an arbitrary start; never goes back.
    ///   - generator: The source of the jitter.
    /// - Returns: The effects to carry out.
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
        case .withdrawn(let detail): withdraw(detail)
        case .admitted: admit()
        }
    }

    private mutating func withdraw(_ detail: String) -> [Effect] {
        guard withdrawal != detail || state != .disconnected && state != .held else { return [] }
        withdrawal = detail
        return endForOtherGateway()
    }

    private mutating func admit() -> [Effect] {
        guard withdrawal.take() != nil else { return [] }
        return startAfterAdmission()
    }

    /// True while BlueZ may hold a link for this machine.
    var isUp: Bool {
        switch state {
        case .connecting, .discovering, .preparing, .ready: true
        case .waiting, .disconnecting, .disconnected, .backingOff, .held, .failed: false
        }
    }

    /// True if the link has been ready long enough to forget earlier failures.
    func isStable(at now: Duration) -> Bool {
        readySince.map { now - $0 >= policy.stableAfter } ?? false
    }

    // MARK: - Steps shared by the handlers

    mutating func enqueue() -> [Effect] {
        guard !isQueued, ending == nil, withdrawal == nil else { return [] }
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

    /// Reads the table again and keeps the subscriptions.
    mutating func replaceSession(reason: LinkReason?) -> [Effect] {
        readySince = nil
        let moved = move(to: .discovering, reason: reason)
        return moved + [.replaceSession(ticket: ticket), .arm(after: policy.sessionLimit, ticket: ticket)]
    }

    /// Ends the link of the previous state.
    mutating func end(thenPause pause: Duration = .zero) -> [Effect] {
        ending = Ending(ticket: ticket, pause: pause)
        return [.disconnect(ticket: ticket), .arm(after: policy.endLimit, ticket: ticket)]
    }

    /// Moves to another state, which invalidates the open request.
    mutating func move(
        to next: LinkState,
        reason: LinkReason?,
        _ detail: String? = nil,
        retryAfter: Duration? = nil
    ) -> [Effect] {
        ticket += 1
        return [change(to: next, reason: reason, detail, retryAfter: retryAfter)]
    }

    /// Moves to another state that waits for the same answer.
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
