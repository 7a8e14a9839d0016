public import GattherdModel

/// The life of one device's link: events in, effects out, no clock and no I/O.
///
/// Answers carry the ticket of their question; an answer to an older question changes nothing.
public struct LinkMachine: Equatable, Sendable {
    public enum Event: Equatable, Sendable {
        /// BlueZ knows the peripheral, and the adapter that it was seen on is usable.
        case seen(isConnected: Bool)
        /// There is nothing to try any more: forgotten, adapter gone or off, bluetoothd gone.
        case gone(LinkReason, detail: String)
        /// It is this link's turn to connect.
        case granted
        case connected(ticket: Int)
        /// The GATT table is there and a profile matches.
        case discovered(ticket: Int)
        case prepared(ticket: Int)
        case failed(LinkFault, ticket: Int)
        /// The link dropped.
        case lost(LinkReason, detail: String)
        /// The answer to ``Effect/disconnect(ticket:)``.
        case disconnected(ticket: Int)
        case retryDue(ticket: Int)
        /// What the session was built on is not true any more, while the link is up: another GATT table.
        case sessionStale
        /// A person wants it disconnected.
        case hold
        /// A person wants it connected.
        case release
    }

    public enum Effect: Equatable, Sendable {
        /// Ask for a turn on the adapter.
        case queue
        /// Give the turn back, or leave the queue.
        case unqueue
        case connect(ticket: Int)
        /// Read the GATT table, run the connection tasks, subscribe.
        case openSession(ticket: Int)
        /// End what ``openSession(ticket:)`` began.
        case closeSession
        case disconnect(ticket: Int)
        case armRetry(after: Duration, ticket: Int)
        /// The state is another one now.
        case changed(LinkChange)
    }

    /// What the machine knows for how long to wait.
    public struct Policy: Equatable, Sendable {
        public var backoff: Backoff
        /// A link must have been ready for this long before earlier failures are forgotten.
        public var stableAfter: Duration
        /// The pause before what retrying cannot mend is tried again.
        public var slowRetry: Duration

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

    public private(set) var state = LinkState.waiting
    /// Failed attempts since the link was last ready for long enough.
    public private(set) var attempt = 0
    private var reason: LinkReason?
    private var ticket = 0
    /// True from ``Effect/queue`` until ``Effect/unqueue``.
    private var isQueued = false
    private var isPresent = false
    private var readySince: Duration?
    /// The pause that begins when the link that failed has been ended.
    private var retryAfterDisconnect: Duration?
    private let policy: Policy

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
        let delay = policy.backoff.delay(after: isStable(at: now) ? 0 : attempt, using: &generator)
        return switch event {
        case .seen(let isConnected): seen(isConnected: isConnected)
        case .gone(.vanished, let detail): vanished(detail, now: now, delay: delay)
        case .gone(let reason, let detail): gone(reason, detail)
        case .granted: granted()
        case .connected(let answered): answered == ticket ? connected() : []
        case .discovered(let answered): answered == ticket ? discovered() : []
        case .prepared(let answered): answered == ticket ? prepared(now: now) : []
        case .failed(let fault, let answered):
            answered == ticket ? failed(fault, isDown: state == .connecting, now: now, delay: delay) : []
        case .lost(let reason, let detail):
            isUp ? failed(LinkFault(reason, detail), isDown: true, now: now, delay: delay) : []
        case .disconnected(let answered): answered == ticket ? disconnected() : []
        case .retryDue(let answered): answered == ticket ? retryDue() : []
        case .sessionStale: sessionStale()
        case .hold: hold()
        case .release: release()
        }
    }

    /// True while BlueZ may hold a link of ours.
    private var isUp: Bool {
        switch state {
        case .connecting, .discovering, .preparing, .ready: true
        case .waiting, .disconnecting, .disconnected, .backingOff, .held, .failed: false
        }
    }

    /// True when the link has been ready for so long that earlier failures do not count any more.
    private func isStable(at now: Duration) -> Bool {
        readySince.map { now - $0 >= policy.stableAfter } ?? false
    }

    private mutating func seen(isConnected: Bool) -> [Effect] {
        isPresent = true
        switch state {
        case .waiting, .disconnected:
            return isConnected ? adopt() : enqueue()
        case .backingOff:
            return isConnected && retryAfterDisconnect == nil ? adopt() : []
        case .connecting, .discovering, .preparing, .ready, .disconnecting, .held, .failed:
            return []
        }
    }

    /// Takes over a link that is up already, without asking for a turn.
    private mutating func adopt() -> [Effect] {
        leaveQueue() + move(to: .discovering, reason: nil) { [.openSession(ticket: $0)] }
    }

    /// BlueZ forgot the peripheral; a pause that has begun goes on, so that a flapping one is not asked at once.
    private mutating func vanished(_ detail: String, now: Duration, delay: Duration) -> [Effect] {
        isPresent = false
        switch state {
        case .waiting, .held, .failed:
            return leaveQueue()
        case .backingOff:
            return isQueued ? leaveQueue() + move(to: .waiting, reason: .vanished, detail) : []
        case .disconnecting:
            return disconnected()
        case .disconnected:
            return move(to: .waiting, reason: .vanished, detail)
        case .connecting, .discovering, .preparing, .ready:
            return failed(LinkFault(.vanished, detail), isDown: true, now: now, delay: delay)
        }
    }

    /// The adapter or bluetoothd is not there: nothing can be tried until it is back.
    private mutating func gone(_ reason: LinkReason, _ detail: String) -> [Effect] {
        isPresent = false
        switch state {
        case .held, .failed:
            return []
        case .disconnecting:
            return disconnected()
        case .waiting, .disconnected, .backingOff, .connecting, .discovering, .preparing, .ready:
            let isNews = state != .disconnected || self.reason != reason
            return leaveQueue() + endSession() + (isNews ? move(to: .disconnected, reason: reason, detail) : [])
        }
    }

    private mutating func granted() -> [Effect] {
        guard isQueued, state == .waiting || state == .disconnected || state == .backingOff else { return [] }
        return move(to: .connecting, reason: nil) { [.connect(ticket: $0)] }
    }

    private mutating func connected() -> [Effect] {
        guard state == .connecting else { return [] }
        return leaveQueue() + move(to: .discovering, reason: nil) { [.openSession(ticket: $0)] }
    }

    /// Keeps the ticket: the session that was opened goes on.
    private mutating func discovered() -> [Effect] {
        guard state == .discovering else { return [] }
        return [change(to: .preparing, reason: nil)]
    }

    private mutating func prepared(now: Duration) -> [Effect] {
        guard state == .preparing else { return [] }
        readySince = now
        return [change(to: .ready, reason: nil)]
    }

    /// A link that did not end by itself is ended before the pause begins, so that the next attempt starts clean.
    private mutating func failed(_ fault: LinkFault, isDown: Bool, now: Duration, delay: Duration) -> [Effect] {
        guard isUp else { return [] }
        attempt = isStable(at: now) ? 1 : attempt + 1
        let delay = fault.isPermanent ? policy.slowRetry : delay
        let ended = leaveQueue() + endSession()
        let next: LinkState = fault.isPermanent ? .failed : .backingOff
        let moved = move(to: next, reason: fault.reason, fault.detail, retryAfter: delay) { ticket in
            isDown ? [.armRetry(after: delay, ticket: ticket)] : [.disconnect(ticket: ticket)]
        }
        retryAfterDisconnect = isDown ? nil : delay
        return ended + moved
    }

    private mutating func retryDue() -> [Effect] {
        switch state {
        case .failed:
            attempt = 0
            let moved = move(to: .waiting, reason: reason)
            return isPresent ? moved + enqueue() : moved
        case .backingOff where isPresent:
            return enqueue()
        case .backingOff:
            return move(to: .waiting, reason: reason)
        case .waiting, .connecting, .discovering, .preparing, .ready, .disconnecting, .disconnected, .held:
            return []
        }
    }

    private mutating func sessionStale() -> [Effect] {
        switch state {
        case .discovering, .preparing, .ready:
            let ended = endSession()
            return ended + move(to: .discovering, reason: .gattError) { [.openSession(ticket: $0)] }
        case .waiting, .connecting, .disconnecting, .disconnected, .backingOff, .held, .failed:
            return []
        }
    }

    private mutating func hold() -> [Effect] {
        switch state {
        case .held, .disconnecting:
            return []
        case .waiting, .disconnected, .backingOff, .failed:
            return leaveQueue() + move(to: .held, reason: .requested)
        case .connecting, .discovering, .preparing, .ready:
            return leaveQueue() + endSession()
                + move(to: .disconnecting, reason: .requested) { [.disconnect(ticket: $0)] }
        }
    }

    private mutating func disconnected() -> [Effect] {
        if let delay = retryAfterDisconnect {
            retryAfterDisconnect = nil
            return [.armRetry(after: delay, ticket: ticket)]
        }
        guard state == .disconnecting else { return [] }
        return move(to: .held, reason: .requested)
    }

    private mutating func release() -> [Effect] {
        switch state {
        case .held, .failed, .backingOff, .disconnecting:
            attempt = 0
            let moved = leaveQueue() + move(to: .waiting, reason: nil)
            return isPresent ? moved + enqueue() : moved
        case .waiting, .connecting, .discovering, .preparing, .ready, .disconnected:
            return []
        }
    }

    private mutating func enqueue() -> [Effect] {
        guard !isQueued else { return [] }
        isQueued = true
        return [.queue]
    }

    private mutating func leaveQueue() -> [Effect] {
        guard isQueued else { return [] }
        isQueued = false
        return [.unqueue]
    }

    private mutating func endSession() -> [Effect] {
        readySince = nil
        switch state {
        case .discovering, .preparing, .ready: return [.closeSession]
        case .waiting, .connecting, .disconnecting, .disconnected, .backingOff, .held, .failed: return []
        }
    }

    /// Leaves the state for another, which closes the open question and may open a new one.
    private mutating func move(
        to next: LinkState,
        reason: LinkReason?,
        _ detail: String? = nil,
        retryAfter: Duration? = nil,
        then effects: (Int) -> [Effect] = { _ in [] }
    ) -> [Effect] {
        ticket += 1
        retryAfterDisconnect = nil
        return [change(to: next, reason: reason, detail, retryAfter: retryAfter)] + effects(ticket)
    }

    private mutating func change(
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
