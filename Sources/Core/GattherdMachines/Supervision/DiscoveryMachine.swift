/// The state machine of discovery on one adapter.
///
/// At most one request is pending, so that a start never overtakes a stop.
public struct DiscoveryMachine: Equatable, Sendable {
    public enum Effect: Hashable, Sendable {
        case start(ticket: Int)
        case stop(ticket: Int)
    }

    private enum State: Equatable {
        case off
        case starting(until: Duration)
        case on(since: Duration)
        case stopping(until: Duration)
        /// A start, or possibly a stop, failed.
        case pausing(until: Duration)
    }

    /// The answer to a discovery request.
    public enum Answer: Hashable, Sendable {
        case done
        case refused
        /// BlueZ has not answered; the outcome is unknown.
        case missing
    }

    private static let backoff = Backoff(minimum: .seconds(1), maximum: .seconds(60))
    /// The limit for missing answers, longer than BlueZ's own limits.
    private static let answerLimit = Duration.seconds(60)
    /// The longest pause that belongs to a scan; BlueZ reports short ones as `Discovering` = false.
    private static let longestLull = Duration.seconds(30)

    private var state = State.off
    private var ticket = 0
    private var isRestarting = false
    /// The time since which BlueZ reports no discovery, after it reported one.
    private var lullSince: Duration?
    private var wasDiscovering = false
    /// True if a start or a stop was not answered in time, so BlueZ may be scanning.
    private var isUncertain = false
    /// Consecutive failures to start discovery.
    public private(set) var failures = 0

    public init() {}

    /// True while discovery is off and no start is pending.
    var isOff: Bool { state == .off }

    /// The time since which discovery runs; `nil` while it does not.
    public var since: Duration? {
        if case .on(let since) = state { since } else { nil }
    }

    /// Returns the next request, if any.
    public mutating func nextRequest(isWanted: Bool, at now: Duration) -> Effect? {
        switch state {
        case .starting(let limit), .stopping(let limit):
            guard now >= limit else { return nil }
            answered(ticket, .missing, at: now)
            return nextRequest(isWanted: isWanted, at: now)
        case .pausing(let end) where now < end && (isWanted || isUncertain): return nil
        case .off where isWanted, .pausing where isWanted: return start(at: now)
        case .off, .pausing: return isUncertain ? stop(at: now) : nil
        case .on: return !isWanted || isRestarting || isDead(at: now) ? stop(at: now) : nil
        }
    }

    /// The time at which ``nextRequest(isWanted:at:)`` has an effect without another event.
    public func deadline(isWanted: Bool) -> Duration? {
        switch state {
        case .off: nil
        case .starting(let limit), .stopping(let limit): limit
        case .pausing(let end): isWanted || isUncertain ? end : nil
        case .on: lullSince.map { $0 + Self.longestLull }
        }
    }

    /// Handles the answer to the request with that ticket.
    public mutating func answered(_ answered: Int, _ answer: Answer, at now: Duration) {
        guard answered == ticket else { return }
        isUncertain = answer == .missing
        switch state {
        case .starting where answer == .done: (state, failures) = (.on(since: now), 0)
        case .starting:
            state = .pausing(until: now + Self.backoff.ceiling(after: failures))
            failures += 1
        case .stopping: state = isUncertain ? .pausing(until: now + Self.backoff.ceiling(after: 0)) : .off
        case .off, .on, .pausing: break
        }
    }

    /// Records `Discovering` as BlueZ reports it, which covers every client's discovery.
    public mutating func reported(isDiscovering: Bool, at now: Duration) {
        lullSince = isDiscovering || !wasDiscovering ? nil : lullSince ?? now
        wasDiscovering = wasDiscovering || isDiscovering
    }

    /// Stops discovery; it starts again if it is still wanted.
    public mutating func restart() {
        isRestarting = since != nil
    }

    /// Handles the loss or power-off of the adapter, which ends discovery.
    public mutating func reset() {
        self = DiscoveryMachine(ticket: ticket + 1)
    }

    private init(ticket: Int) {
        self.ticket = ticket
    }

    private func isDead(at now: Duration) -> Bool {
        lullSince.map { now - $0 >= Self.longestLull } ?? false
    }

    private mutating func start(at now: Duration) -> Effect {
        ticket += 1
        state = .starting(until: now + Self.answerLimit)
        (lullSince, wasDiscovering) = (nil, false)
        return .start(ticket: ticket)
    }

    private mutating func stop(at now: Duration) -> Effect {
        ticket += 1
        isRestarting = false
        state = .stopping(until: now + Self.answerLimit)
        return .stop(ticket: ticket)
    }
}

/// The reliability of an adapter's advertisement monitor, which reports advertisements without active discovery.
///
/// An active monitor proves nothing: after controller faults it may report nothing more. A monitor that has fallen
/// silent is replaced by active discovery until it restarts.
struct PassiveScan: Equatable, Sendable {
    /// Longer than the advertising pauses of most sensors.
    static let longestSilence = Duration.seconds(600)

    /// The time since which BlueZ reports the monitor as active; `nil` while it is not.
    private var since: Duration?
    private var fellSilent = false

    var isReliable: Bool { since != nil && !fellSilent }

    /// Records the monitor state that BlueZ reports.
    mutating func reported(isActive: Bool, at now: Duration) {
        guard isActive != (since != nil) else { return }
        restart(at: isActive ? now : nil)
    }

    /// Records that the adapter was powered on, which restarts an active monitor.
    mutating func switchedOn(at now: Duration) {
        restart(at: since.map { _ in now })
    }

    mutating func checkSilence(lastHeard: Duration?, at now: Duration) {
        if let deadline = deadline(lastHeard: lastHeard), now >= deadline { fellSilent = true }
    }

    /// The time at which ``checkSilence(lastHeard:at:)`` has an effect without another event.
    func deadline(lastHeard: Duration?) -> Duration? {
        guard isReliable, let since else { return nil }
        return max(since, lastHeard ?? since) + Self.longestSilence
    }

    private mutating func restart(at time: Duration?) {
        (since, fellSilent) = (time, false)
    }
}
