public import GattherdModel

/// The state machine of one device's link: events in, effects out, no clock and no I/O.
///
/// Answers carry the ticket of their request; an answer to an older request changes nothing. Every state that waits
/// for an answer has a timer too, so that a missing answer never blocks a link.
public struct LinkMachine: Equatable, Sendable {
    /// A disconnect without an answer yet; nothing new begins until then.
    struct Ending: Equatable {
        let ticket: Int
        /// The pause that begins when the link has ended.
        let pause: Duration
    }

    public private(set) var state = LinkState.waiting
    /// Failed attempts since the link was last ready for ``Policy/stableAfter``.
    public private(set) var attempt = 0
    private(set) var reason: LinkReason?
    private(set) var ticket = 0
    /// True from ``Effect/queue`` until ``Effect/unqueue``.
    private(set) var isQueued = false
    private(set) var ending: Ending?
    /// The reason why another gateway may connect the device and this one may not; `nil` if this one may.
    private(set) var withdrawal: String?
    var presence = LinkPresence()
    var stability: LinkStability
    let policy: Policy

    /// Creates the machine of an unseen link; `isHeld` if a user disconnected the device before.
    public init(policy: Policy = Policy(), isHeld: Bool = false) {
        self.policy = policy
        stability = LinkStability(period: policy.stableAfter)
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
        at now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> [Effect] {
        if stability.isStable(at: now) { attempt = 0 }
        if let answered = event.answeredTicket, answered != ticket { return [] }
        return switch event {
        case .seen(let isConnected): seen(isConnected: isConnected)
        case .linkFound: linkFound()
        case .gone(.vanished, let detail): vanished(detail, using: &generator)
        case .gone(let reason, let detail): gone(reason, detail)
        case .granted: granted()
        case .connected: connected()
        case .discovered: discovered()
        case .prepared: prepared(at: now)
        case .failed(let fault, _): refused(fault, using: &generator)
        case .stalled(let detail, _): stalled(detail)
        case .resumed: resumed()
        case .lost(let reason, let detail): lost(LinkFault(reason, detail), using: &generator)
        case .disconnected(let answered): answered == ending?.ticket ? ended() : []
        case .due(let answered): due(answered, using: &generator)
        case .sessionStale: sessionStale(at: now, using: &generator)
        case .tableChanged: tableChanged(at: now, using: &generator)
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
        stability.sessionEnded()
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
        stability.sessionEnded()
        let moved = move(to: .discovering, reason: reason)
        return moved + [.replaceSession(ticket: ticket), .arm(after: policy.sessionLimit, ticket: ticket)]
    }

    /// Waits for the peripheral, or for a turn to connect if it is there.
    mutating func wait(reason: LinkReason? = nil) -> [Effect] {
        let moved = move(to: .waiting, reason: reason)
        return presence.isPresent ? moved + enqueue() : moved
    }

    /// Waits until a link without services drops or becomes usable.
    mutating func waitForLink() -> [Effect] {
        presence.startDoubt()
        ticket += 1
        return leaveQueue() + [.arm(after: policy.doubtLimit, ticket: ticket)]
    }

    /// Resets the failure count, so that the next pause is short.
    mutating func forgetFailures() { attempt = 0 }

    /// Ends the link and the session before the pause, so that the next attempt starts without them.
    mutating func failed(
        _ fault: LinkFault,
        isDown: Bool,
        using generator: inout some RandomNumberGenerator
    ) -> [Effect] {
        guard isUp else { return [] }
        let pause = pause(after: fault, using: &generator)
        attempt += 1
        stability.failed(isSessionOnly: !isDown && state != .connecting)
        let closed = leaveQueue() + closeSession()
        let next: LinkState = fault.isPermanent ? .failed : .backingOff
        let moved = move(to: next, reason: fault.reason, fault.detail, retryAfter: pause)
        return closed + moved + (isDown ? [.arm(after: pause, ticket: ticket)] : end(thenPause: pause))
    }

    private func pause(after fault: LinkFault, using generator: inout some RandomNumberGenerator) -> Duration {
        if fault.isPermanent { return policy.slowRetry }
        let isFirst = state == .connecting && attempt == 0 && fault.reason == .connectFailed
        if isFirst { return min(policy.firstRetry, policy.backoff.minimum) }
        return policy.backoff.delay(after: attempt, using: &generator)
    }

    /// Ends the link of the previous state.
    mutating func end(thenPause pause: Duration = .zero) -> [Effect] {
        ending = Ending(ticket: ticket, pause: pause)
        return [.disconnect(ticket: ticket), .arm(after: policy.endLimit, ticket: ticket)]
    }

    /// Removes and returns the disconnect under way, which is answered or overdue; `nil` if there is none.
    mutating func takeEnding() -> Ending? { ending.take() }

    /// Moves to another state, so that answers to the pending request are ignored.
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

extension LinkMachine.Event {
    /// The ticket of an answer to a request of the current state.
    fileprivate var answeredTicket: Int? {
        switch self {
        case .connected(let ticket), .discovered(let ticket), .prepared(let ticket), .resumed(let ticket),
            .failed(_, let ticket), .stalled(_, let ticket):
            ticket
        default: nil
        }
    }
}
