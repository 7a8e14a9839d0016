/// The scan of one adapter: wanted or not, and what BlueZ makes of it.
///
/// One question at a time, so that a start never overtakes a stop.
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
        /// It could not be started, or perhaps not be stopped.
        case pausing(until: Duration)
    }

    /// What became of a question.
    public enum Answer: Hashable, Sendable {
        case done
        case refused
        /// Nobody knows: BlueZ has not answered.
        case missing
    }

    private static let backoff = Backoff(minimum: .seconds(1), maximum: .seconds(60))
    /// BlueZ has its own limits; this is for answers that never come.
    private static let answerLimit = Duration.seconds(60)
    /// BlueZ shows short pauses of a scan as `Discovering` = false; one this long is the end of the scan.
    private static let longestLull = Duration.seconds(30)

    private var state = State.off
    private var ticket = 0
    private var isRestarting = false
    /// Since when BlueZ says that nobody scans, after it said that somebody does.
    private var lullSince: Duration?
    private var wasDiscovering = false
    /// BlueZ may scan for us: a start or a stop was not answered in time.
    private var isUncertain = false
    /// How often in a row a scan could not be started.
    public private(set) var failures = 0

    public init() {}

    /// True while nobody scans, or will by itself.
    var isOff: Bool { state == .off }

    /// Since when the scan runs; `nil` when it does not.
    public var since: Duration? {
        if case .on(let since) = state { since } else { nil }
    }

    /// Says what to do next, if anything.
    public mutating func settle(isWanted: Bool, now: Duration) -> Effect? {
        switch state {
        case .starting(let limit), .stopping(let limit):
            guard now >= limit else { return nil }
            answered(ticket, .missing, now: now)
            return settle(isWanted: isWanted, now: now)
        case .pausing(let end) where now < end && (isWanted || isUncertain): return nil
        case .off where isWanted, .pausing where isWanted: return start(now: now)
        case .off, .pausing: return isUncertain ? stop(now: now) : nil
        case .on: return !isWanted || isRestarting || isDead(now: now) ? stop(now: now) : nil
        }
    }

    /// When ``settle(isWanted:now:)`` has something to say without another event.
    public func deadline(isWanted: Bool) -> Duration? {
        switch state {
        case .off: nil
        case .starting(let limit), .stopping(let limit): limit
        case .pausing(let end): isWanted || isUncertain ? end : nil
        case .on: lullSince.map { $0 + Self.longestLull }
        }
    }

    /// Takes the answer to the question with that ticket.
    public mutating func answered(_ answered: Int, _ answer: Answer, now: Duration) {
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

    /// Takes BlueZ's own word, which is about any program's scan.
    public mutating func reported(isDiscovering: Bool, now: Duration) {
        lullSince = isDiscovering || !wasDiscovering ? nil : lullSince ?? now
        wasDiscovering = wasDiscovering || isDiscovering
    }

    /// Stops a running scan, which is then started anew if it is wanted.
    public mutating func restart() {
        isRestarting = since != nil
    }

    /// The adapter is off or gone, and the scan with it.
    public mutating func lose() {
        self = DiscoveryMachine(ticket: ticket + 1)
    }

    private init(ticket: Int) {
        self.ticket = ticket
    }

    private func isDead(now: Duration) -> Bool {
        lullSince.map { now - $0 >= Self.longestLull } ?? false
    }

    private mutating func start(now: Duration) -> Effect {
        ticket += 1
        state = .starting(until: now + Self.answerLimit)
        (lullSince, wasDiscovering) = (nil, false)
        return .start(ticket: ticket)
    }

    private mutating func stop(now: Duration) -> Effect {
        ticket += 1
        isRestarting = false
        state = .stopping(until: now + Self.answerLimit)
        return .stop(ticket: ticket)
    }
}
