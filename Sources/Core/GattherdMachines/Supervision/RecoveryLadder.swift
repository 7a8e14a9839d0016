/// What to do about an adapter that is there and on, but does not work: one step after another, each harsher.
///
/// Three symptoms: *silence*, when a scan that looks for somebody hears nothing at all; a *wedge*, when attempts to
/// connect or to scan keep failing with nobody in reach to blame; and a *stall*, when no link of the adapter answers any
/// more. After the last step the ladder begins again, ever more
/// slowly: in an empty room silence is no fault. A step that would end links that work is left out.
public struct RecoveryLadder: Equatable, Sendable {
    public enum Step: String, Hashable, Sendable, CaseIterable {
        /// Stop the scan and start it again; without a scan, listen for a while.
        case restartDiscovery
        /// Leave the bus and come back, so that BlueZ forgets what it thinks we are doing.
        case newSession
        case powerCycle
    }

    public enum Symptom: String, Hashable, Sendable {
        case silence
        case wedge
        case stall
    }

    /// A step and what it is against.
    public struct Remedy: Hashable, Sendable {
        public let step: Step
        public let symptom: Symptom
    }

    public struct Policy: Hashable, Sendable {
        /// How long a scan must have heard nothing.
        public var silence = Duration.seconds(120)
        /// How many attempts in a row must have failed.
        public var failures = 5
        /// How long a step has to take effect, and how long failures must have lasted.
        public var grace = Duration.seconds(30)
        /// The longest pause before the ladder begins again.
        public var longestPause = Duration.seconds(1800)
        public var mayPowerCycle = true

        public init() {}
    }

    /// What else is true of the adapter.
    public struct Surroundings: Hashable, Sendable {
        /// Since when a scan looks for a missing device; `nil` when none does.
        public var isListeningSince: Duration?
        /// True while the adapter has a link, of any program.
        public var hasLinks: Bool
        /// True while we have a link anywhere: a new session would end its subscriptions.
        public var hasSessions: Bool

        public init(isListeningSince: Duration?, hasLinks: Bool, hasSessions: Bool) {
            self.isListeningSince = isListeningSince
            self.hasLinks = hasLinks
            self.hasSessions = hasSessions
        }
    }

    private let policy: Policy
    /// The step to take next, by its place.
    private var rung = 0
    /// How often the ladder was left since all was well.
    private var rounds = 0
    private var symptom: Symptom?
    private var lastStep: Duration?
    /// When anything was last heard from the air.
    private(set) var lastHeard: Duration?
    /// Since when it hears without a longer pause.
    private var hearingSince: Duration?
    private var failures = 0
    private var failingSince: Duration?
    /// True from the failure that is one too many until something is done about it.
    private var isWedged = false
    /// True from when no link answers any more until something is done about it.
    private var isStalled = false

    public init(policy: Policy = Policy()) {
        self.policy = policy
    }

    // MARK: - What happened

    /// Anything was heard from the air.
    public mutating func heard(now: Duration) {
        let isSteady = !isDeaf(at: now)
        lastHeard = now
        if symptom == .silence { leave() }
        if !isSteady { hearingSince = now }
        // Heard for longer than the next round would wait: what was done has helped.
        let isWell = hearingSince.map { now - $0 > pause(from: policy.silence) } ?? false
        if isWell, symptom == nil, failures == 0 { rounds = 0 }
    }

    /// An attempt ended in a link.
    public mutating func connected() {
        (rung, rounds, symptom) = (0, 0, nil)
        forgetFailures()
    }

    /// An attempt, or the start of a scan, failed in a way that speaks against the adapter.
    public mutating func failed(now: Duration) {
        failures += 1
        let since = failingSince ?? now
        failingSince = since
        let isKnown = symptom == .stall
        let rested = lastStep.map { $0 + (rung == 0 ? pause(from: policy.grace) : policy.grace) } ?? .zero
        isWedged = isKnown ? now >= rested : failures >= policy.failures && now >= max(since + policy.grace, rested)
    }

    /// None of several links of the adapter answers any more.
    public mutating func stalled() {
        isStalled = true
    }

    // MARK: - What to do

    /// True when nothing at all was heard for the last while.
    public func isDeaf(at now: Duration) -> Bool {
        lastHeard.map { now - $0 > policy.silence } ?? true
    }

    /// True while a scan should run just to find out whether the adapter hears anything.
    public func wantsToListen(at now: Duration) -> Bool {
        guard isTreatingAttempts, let lastStep else { return false }
        return now < lastStep + policy.grace
    }

    /// The remedy that is due, if one is.
    public mutating func settle(_ surroundings: Surroundings, now: Duration) -> Remedy? {
        guard let (symptom, time) = next(surroundings), now >= time else { return nil }
        let steps = Step.allCases[rung...]
        let step = steps.first { isAllowed($0, surroundings) }
        forgetFailures()
        lastStep = now
        guard let step else {
            leave()
            return nil
        }
        self.symptom = symptom
        rung = (Step.allCases.firstIndex(of: step) ?? 0) + 1
        if rung == Step.allCases.count { leave() }
        return Remedy(step: step, symptom: symptom)
    }

    /// When ``settle(_:now:)`` has something to say without another event.
    public func deadline(_ surroundings: Surroundings, now: Duration) -> Duration? {
        let listening = lastStep.map { $0 + policy.grace }.flatMap { isTreatingAttempts && $0 > now ? $0 : nil }
        return [next(surroundings)?.time, listening].compactMap(\.self).min()
    }

    /// The symptom to treat first, and from when on.
    private func next(_ surroundings: Surroundings) -> (symptom: Symptom, time: Duration)? {
        let silence = surroundings.isListeningSince.map { since in
            let quietSince = max(since, lastHeard ?? since, lastStep ?? since)
            return (Symptom.silence, quietSince + (rung == 0 ? pause(from: policy.silence) : policy.grace))
        }
        if isStalled { return (.stall, .zero) }
        return isWedged ? (symptom == .stall ? .stall : .wedge, .zero) : silence
    }

    /// True while something is done for the sake of links, which tells only when the next ones are made.
    private var isTreatingAttempts: Bool { symptom == .wedge || symptom == .stall }

    private mutating func forgetFailures() {
        (failures, failingSince, isWedged, isStalled) = (0, nil, false, false)
    }

    private func pause(from first: Duration) -> Duration {
        Backoff(minimum: first, maximum: policy.longestPause).ceiling(after: rounds)
    }

    private func isAllowed(_ step: Step, _ surroundings: Surroundings) -> Bool {
        switch step {
        case .restartDiscovery: true
        case .newSession: !surroundings.hasSessions
        case .powerCycle: policy.mayPowerCycle && !surroundings.hasLinks
        }
    }

    /// Begins again at the lowest step, later.
    private mutating func leave() {
        (rung, symptom) = (0, nil)
        rounds += 1
    }
}
