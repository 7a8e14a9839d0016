/// The reach of one device at a gateway: the signals that it hears, its link, and the failures of the link.
struct DeviceReach: Sendable {
    /// The longest grace for a device that advertises seldom.
    private static let seldomGrace = Duration.seconds(30)

    /// False if the device only advertises.
    private let isConnectable: Bool
    private(set) var phase = LeaseMachine.LinkPhase.none
    /// The strength of the signal, by adapter.
    private var signals: [String: SmoothedSignal] = [:]
    /// The time until which the device counts as heard without an advertisement.
    private var graceEnd = Duration.zero
    private(set) var unlinkedSince: Duration?
    /// The time by which an owner that lost its link should have a link again.
    private var recoveryEnd: Duration?
    /// The end of the period without bids after a failure.
    private var blockEnd = Duration.zero
    private var blockReason = ""
    /// The time since which the device is heard without a pause.
    private(set) var audibleSince: Duration?

    init(isConnectable: Bool) {
        self.isConnectable = isConnectable
    }

    // MARK: - Input

    mutating func record(_ rssi: Int, on adapter: String, at now: Duration) {
        signals[adapter, default: SmoothedSignal()].record(rssi, at: now)
    }

    mutating func updateAudibility(_ isAudible: Bool, at now: Duration) {
        audibleSince = isAudible ? audibleSince ?? now : nil
    }

    mutating func setPhase(
        _ new: LeaseMachine.LinkPhase,
        isOwner: Bool,
        _ policy: LeaseMachine.Policy,
        at now: Duration
    ) {
        guard isConnectable, new != phase else { return }
        if phase == .linked {
            beginGrace(policy.lossGrace, at: now)
            recoveryEnd = isOwner ? graceEnd : nil
        }
        if new == .linked { recoveryEnd = nil }
        if case .failed(let words) = new { block("its link failed: \(words)", policy, at: now) }
        unlinkedSince = new == .linked ? nil : unlinkedSince ?? now
        phase = new
    }

    /// Excludes the gateway from bids for a time, because of a failure.
    mutating func block(_ words: String, _ policy: LeaseMachine.Policy, at now: Duration) {
        (blockReason, blockEnd) = (words, now + policy.failurePause)
    }

    /// Starts the grace period of a new owner, in which it counts as hearing the device.
    mutating func beginOwnership(_ grace: Duration, at now: Duration) {
        recoveryEnd = nil
        if isConnectable, phase != .linked { beginGrace(grace, at: now) }
    }

    /// Counts the device as heard for `grace`, or longer: for three of its intervals, up to 30 s.
    private mutating func beginGrace(_ grace: Duration, at now: Duration) {
        let interval = signals.values.compactMap(\.interval).min() ?? .zero
        graceEnd = max(graceEnd, now + max(grace, min(interval * 3, Self.seldomGrace)))
        unlinkedSince = now
    }

    // MARK: - The bid

    /// The standing of a bid, and the strength of the signal.
    func standing(at now: Duration) -> (LeaseBid.Standing, Int?) {
        let present = signals.values.filter { !$0.isGone(at: now) }
        let isRecovering = recoveryEnd != nil
        let heard = present.filter { isRecovering ? !$0.isQuiet(at: now) : !$0.isSilent(at: now) }
        // Of equal levels a steady one counts, whatever the order of the adapters.
        let best = (heard.isEmpty ? present : heard).max {
            ($0.level ?? -128, $0.isSteady ? 1 : 0) < ($1.level ?? -128, $1.isSteady ? 1 : 0)
        }
        switch phase {
        case .linked: return (.linked, best?.level)
        case .held: return (.held, best?.level)
        // A link that ends keeps no other gateway away.
        case .none, .withdrawn, .attempting, .ending, .failed: break
        }
        if !heard.isEmpty { return (best?.isSteady == true ? .steady : .heard, best?.level) }
        if now < graceEnd { return (.heard, best?.level) }
        return (best == nil ? .gone : .silent, best?.level)
    }

    /// The failure for which the gateway makes no bid now, if any.
    func failure(at now: Duration) -> String? { now < blockEnd ? blockReason : nil }

    /// True if a link would need a free slot of an adapter.
    var needsSlot: Bool { isConnectable && (phase == .none || phase == .withdrawn) }

    // MARK: - The link

    /// The loss of this owner's link; `nil` unless it was lost under this lease.
    func linkLoss(at now: Duration) -> LeaseElection.LinkLoss? {
        recoveryEnd.map { now < $0 ? .recent : .late }
    }

    /// True if the device should be connected, and has had no link for a time.
    func isStuck(for limit: Duration, at now: Duration) -> Bool {
        guard isConnectable, phase != .held, let unlinkedSince else { return false }
        return now - unlinkedSince >= limit
    }

    /// The time after which a link that does not report its end counts as ended.
    private static let endLimit = Duration.seconds(5)

    /// True if the link that had to end at a time is ending or has ended, so that another gateway may make one.
    ///
    /// The link session has ended by then. BlueZ needs two seconds to end the link; meanwhile the next owner can
    /// claim the lease.
    func isEnding(since: Duration, at now: Duration) -> Bool {
        switch phase {
        case .withdrawn, .held, .ending: true
        case .none, .failed: !isConnectable || now - since >= Self.endLimit
        case .attempting, .linked: false
        }
    }
}
