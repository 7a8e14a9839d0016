/// The recovery of an adapter that is present and on but does not work: a ladder of increasingly harsh steps.
///
/// There are three symptoms:
///
/// - *silence*: discovery for a missing device receives no advertisement;
/// - *wedge*: attempts to connect or to scan keep failing although no device can be at fault;
/// - *stall*: no link of the adapter answers any more.
///
/// After the last step the ladder begins again after growing pauses, because in an empty room silence is not a fault. A
/// step that would end working links is skipped.
public struct RecoveryLadder: Equatable, Sendable {
    public enum Step: String, Hashable, Sendable, CaseIterable {
        /// Stops discovery and starts it again; without discovery, listens for a while.
        case restartDiscovery
        /// Reconnects to the bus as a new client, so that BlueZ resets our discovery and connections.
        case newBusConnection = "newSession"
        case powerCycle
    }

    public enum Symptom: String, Hashable, Sendable {
        case silence
        case wedge
        case stall
    }

    /// A step and the symptom that it treats.
    public struct Remedy: Hashable, Sendable {
        public let step: Step
        public let symptom: Symptom
    }

    public struct Policy: Hashable, Sendable {
        /// The time for which discovery must have heard nothing.
        public var silence = Duration.seconds(120)
        /// The number of consecutive attempts that must have failed.
        public var failures = 5
        /// The time for a step to take effect, and the minimum time over which failures must occur.
        public var grace = Duration.seconds(30)
        /// The longest pause before the ladder begins again.
        public var longestPause = Duration.seconds(1800)
        public var mayPowerCycle = true

        public init() {}
    }

    /// The state of the adapter that the ladder does not track itself.
    public struct Conditions: Hashable, Sendable {
        /// The start of the discovery for a missing device; `nil` if none is missing.
        public var isListeningSince: Duration?
        /// True while the adapter has a link, of any program.
        public var hasLinks: Bool
        /// True while the gateway has any link: a new bus session would end its subscriptions.
        public var hasSessions: Bool

        public init(isListeningSince: Duration?, hasLinks: Bool, hasSessions: Bool) {
            self.isListeningSince = isListeningSince
            self.hasLinks = hasLinks
            self.hasSessions = hasSessions
        }
    }

    private let policy: Policy
    /// The index of the next step.
    private var rung = 0
    /// The number of completed rounds since the adapter last worked.
    private var rounds = 0
    private var symptom: Symptom?
    private var lastStep: Duration?
    /// The time at which any advertisement was last heard.
    private(set) var lastHeard: Duration?
    /// The time since which the adapter hears advertisements without a longer pause.
    private var hearingSince: Duration?
    private var failures = 0
    private var failingSince: Duration?
    /// True from the failure that exceeds the limit until a step is taken.
    private var isWedged = false
    /// True from the time when no link answers until a step is taken.
    private var isStalled = false

    public init(policy: Policy = Policy()) {
        self.policy = policy
    }

    // MARK: - What happened

    /// Records an advertisement.
    public mutating func heard(at now: Duration) {
        let isSteady = !hearsNothing(at: now)
        lastHeard = now
        if symptom == .silence { restart() }
        if !isSteady { hearingSince = now }
        // If advertisements were heard for longer than the next round's pause, the last step was effective.
        let isWell = hearingSince.map { now - $0 > pause(from: policy.silence) } ?? false
        if isWell, symptom == nil, failures == 0 { rounds = 0 }
    }

    /// Records an attempt that ended in a link.
    public mutating func connected() {
        (rung, rounds, symptom) = (0, 0, nil)
        forgetFailures()
    }

    /// Records an attempt, or a discovery start, that failed in a way that suggests an adapter fault.
    public mutating func failed(at now: Duration) {
        failures += 1
        let since = failingSince ?? now
        failingSince = since
        let isKnown = symptom == .stall
        let rested = lastStep.map { $0 + (rung == 0 ? pause(from: policy.grace) : policy.grace) } ?? .zero
        isWedged = isKnown ? now >= rested : failures >= policy.failures && now >= max(since + policy.grace, rested)
    }

    /// Records that none of several links of the adapter answers any more.
    public mutating func stalled() {
        isStalled = true
    }

    // MARK: - What to do

    /// True if no advertisement was heard recently.
    public func hearsNothing(at now: Duration) -> Bool {
        lastHeard.map { now - $0 > policy.silence } ?? true
    }

    /// True while discovery should run only to find out whether the adapter hears anything.
    public func wantsToListen(at now: Duration) -> Bool {
        guard isTreatingAttempts, let lastStep else { return false }
        return now < lastStep + policy.grace
    }

    /// Returns the remedy that is due, if any.
    public mutating func nextRemedy(_ conditions: Conditions, at now: Duration) -> Remedy? {
        guard let (symptom, time) = next(conditions), now >= time else { return nil }
        let steps = Step.allCases[rung...]
        let step = steps.first { isAllowed($0, conditions) }
        forgetFailures()
        lastStep = now
        guard let step else {
            restart()
            return nil
        }
        self.symptom = symptom
        rung = (Step.allCases.firstIndex(of: step) ?? 0) + 1
        if rung == Step.allCases.count { restart() }
        return Remedy(step: step, symptom: symptom)
    }

    /// The time at which ``nextRemedy(_:at:)`` has an effect without another event.
    public func deadline(_ conditions: Conditions, at now: Duration) -> Duration? {
        let listening = lastStep.map { $0 + policy.grace }.flatMap { isTreatingAttempts && $0 > now ? $0 : nil }
        return [next(conditions)?.time, listening].compactMap(\.self).min()
    }

    /// Returns the first symptom to treat, and the time from which to treat it.
    private func next(_ conditions: Conditions) -> (symptom: Symptom, time: Duration)? {
        let silence = conditions.isListeningSince.map { since in
            let quietSince = max(since, lastHeard ?? since, lastStep ?? since)
            return (Symptom.silence, quietSince + (rung == 0 ? pause(from: policy.silence) : policy.grace))
        }
        if isStalled { return (.stall, .zero) }
        return isWedged ? (symptom == .stall ? .stall : .wedge, .zero) : silence
    }

    /// True while a step treats connection attempts, whose effect shows only when the next links are made.
    private var isTreatingAttempts: Bool { symptom == .wedge || symptom == .stall }

    private mutating func forgetFailures() {
        (failures, failingSince, isWedged, isStalled) = (0, nil, false, false)
    }

    private func pause(from first: Duration) -> Duration {
        Backoff(minimum: first, maximum: policy.longestPause).ceiling(after: rounds)
    }

    private func isAllowed(_ step: Step, _ conditions: Conditions) -> Bool {
        switch step {
        case .restartDiscovery: true
        case .newBusConnection: !conditions.hasSessions
        case .powerCycle: policy.mayPowerCycle && !conditions.hasLinks
        }
    }

    /// Restarts at the lowest step, after a longer pause.
    private mutating func restart() {
        (rung, symptom) = (0, nil)
        rounds += 1
    }
}
