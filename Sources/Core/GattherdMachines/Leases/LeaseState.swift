/// The state of one device's lease at a gateway.
struct LeaseState: Sendable {
    /// A lease that the centre has given to this gateway.
    struct Grant: Hashable, Sendable {
        let epoch: Int64
        /// The end of the lease, counted from the request; a little earlier than at the centre.
        var until: Duration
    }

    enum Role: Hashable, Sendable {
        case standby
        case claiming
        case owner(Grant)
        /// The link must end before the lease is released.
        case releasing(Grant, since: Duration)
        /// The centre is unreachable. This gateway connects the device, as its last owner or because it is its own.
        case alone
    }

    private(set) var settings: LeasedDevice
    var role = Role.standby
    /// True if the link may be made.
    var isAdmitted = false
    /// The reason of the last decision.
    var reason = ""
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
    /// The lease and the bids as the centre had them last, at ``rowTime``.
    private(set) var row: LeaseRow?
    private(set) var rowTime = Duration.zero
    /// The last bid that the centre has.
    private(set) var sentBid: LeaseBid?
    private var sentTime = Duration.zero
    /// The time of the last claim or renewal.
    var renewedAt = Duration.zero

    /// True if this gateway was the last owner before its restart.
    private let isRecalled: Bool

    init(_ settings: LeasedDevice, isRecalled: Bool) {
        (self.settings, self.isRecalled) = (settings, isRecalled)
    }

    mutating func setGateways(_ gateways: [String]?) {
        guard gateways != settings.gateways else { return }
        settings.gateways = gateways
        isListSent = false
    }

    /// True if the centre has received the list of gateways that may own the device.
    private var isListSent = false

    /// True if the centre needs the list of the gateways that may own the device.
    ///
    /// The gateway that decides about the list repeats it until the centre has it: a restored centre may lack it.
    func isListDue(of gateway: String) -> Bool {
        guard isListSent, let row else { return true }
        let (wanted, stored) = (settings.gateways ?? [], row.gateways ?? [])
        return wanted != stored && (stored.first ?? wanted.first) == gateway
    }

    /// The cause of the last release.
    private(set) var cause: LeaseCause?

    /// Starts the release of the device.
    mutating func release(_ grant: Grant, _ cause: LeaseCause, at now: Duration) {
        (role, isAdmitted, self.cause) = (.releasing(grant, since: now), false, cause)
    }

    // MARK: - Input

    mutating func record(_ rssi: Int, on adapter: String, at now: Duration) {
        signals[adapter, default: SmoothedSignal()].record(rssi, at: now)
    }

    mutating func setPhase(_ new: LeaseMachine.LinkPhase, _ policy: LeaseMachine.Policy, at now: Duration) {
        guard settings.isConnectable, new != phase else { return }
        if phase == .linked {
            beginGrace(policy.lossGrace, at: now)
            recoveryEnd = isOwner ? graceEnd : nil
        }
        if new == .linked { recoveryEnd = nil }
        if case .failed(let words) = new { block("its link failed: \(words)", policy, at: now) }
        unlinkedSince = new == .linked ? nil : unlinkedSince ?? now
        phase = new
    }

    mutating func block(_ words: String, _ policy: LeaseMachine.Policy, at now: Duration) {
        (blockReason, blockEnd) = (words, now + policy.failurePause)
    }

    /// Counts the device as heard for a time, three of its intervals at least.
    mutating func beginGrace(_ grace: Duration, at now: Duration) {
        let interval = signals.values.compactMap(\.interval).min() ?? .zero
        graceEnd = max(graceEnd, now + max(grace, min(interval * 3, .seconds(30))))
        unlinkedSince = now
    }

    /// Starts the grace period of a new owner, in which it counts as hearing the device.
    mutating func beginOwnership(_ grace: Duration, at now: Duration) {
        recoveryEnd = nil
        if settings.isConnectable, phase != .linked { beginGrace(grace, at: now) }
    }

    /// The loss of this owner's link; `nil` unless it was lost under this lease.
    func linkLoss(at now: Duration) -> LeaseElection.LinkLoss? {
        recoveryEnd.map { now < $0 ? .recent : .late }
    }

    mutating func received(_ row: LeaseRow, _ request: LeaseRequest, at now: Duration) {
        (self.row, rowTime) = (row, now)
        if let sent = request.gateways, sent == settings.gateways ?? [] { isListSent = true }
        guard request.isBidDue else { return }
        (sentBid, sentTime) = (request.bid, now)
    }

    mutating func updateAudibility(_ isAudible: Bool, at now: Duration) {
        audibleSince = isAudible ? audibleSince ?? now : nil
    }

    // MARK: - The bid

    func bid(of gateway: String, isFull: Bool, at now: Duration) -> LeaseBid {
        let (standing, rssi) = standing(at: now)
        let problem = problem(of: gateway, isFull: isFull, at: now)
        return LeaseBid(gateway: gateway, standing: standing, rssi: rssi, problem: problem)
    }

    private func standing(at now: Duration) -> (LeaseBid.Standing, Int?) {
        let present = signals.values.filter { !$0.isGone(at: now) }
        let isRecovering = recoveryEnd != nil
        let heard = present.filter { isRecovering ? !$0.isQuiet(at: now) : !$0.isSilent(at: now) }
        let best = (heard.isEmpty ? present : heard).max { ($0.level ?? -128) < ($1.level ?? -128) }
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

    /// The constraint that the gateway does not fulfil.
    private func problem(of gateway: String, isFull: Bool, at now: Duration) -> String? {
        if let gateways = settings.gateways, !gateways.contains(gateway) {
            return "it is configured for \(gateways.joined(separator: ", "))"
        }
        if let gateways = row?.gateways, !gateways.contains(gateway) {
            return "the centre reserves it for \(gateways.joined(separator: ", "))"
        }
        if phase == .held, !isOwner, !wasOwned(by: gateway) { return "a person has disconnected it there" }
        if now < blockEnd { return blockReason }
        let needsSlot = settings.isConnectable && (phase == .none || phase == .withdrawn)
        return needsSlot && isFull ? "no adapter has a free slot" : nil
    }

    /// True if the bid's kind differs from the one at the centre.
    func isChange(_ bid: LeaseBid) -> Bool {
        guard let sentBid else { return bid.standing != .gone }
        return sentBid.standing != bid.standing || sentBid.problem != bid.problem
    }

    /// The dB by which a bid's strength must change to be sent before its time.
    private static let notableChange = 4

    /// True if the centre needs the bid, during a hand-over also for a small change.
    func isBidDue(_ bid: LeaseBid, _ policy: LeaseMachine.Policy, isHandingOver: Bool, at now: Duration) -> Bool {
        if isChange(bid) { return true }
        guard bid.standing != .gone else { return false }
        let change = abs((sentBid?.rssi ?? -128) - (bid.rssi ?? -128))
        return change >= (isHandingOver ? 1 : Self.notableChange) || now - sentTime >= policy.renewal
    }

    /// True if the centre has a bid of this gateway that others may consider.
    func hasBid(_ policy: LeaseMachine.Policy, at now: Duration) -> Bool {
        guard let sentBid, sentBid.standing != .gone else { return false }
        return now - sentTime < policy.bidLimit
    }

    // MARK: - The lease

    var grant: Grant? {
        switch role {
        case .owner(let grant), .releasing(let grant, _): grant
        case .standby, .claiming, .alone: nil
        }
    }

    var isOwner: Bool { if case .owner = role { true } else { false } }

    /// The time after which a link that does not report its end counts as ended.
    private static let endLimit = Duration.seconds(5)

    /// True if the link is ending or has ended, so that another gateway may make one.
    ///
    /// The link session has ended by then. BlueZ needs two seconds to end the link; meanwhile the next owner can
    /// claim the lease.
    func isReadyToRelease(at now: Duration) -> Bool {
        guard case .releasing(_, let since) = role else { return false }
        switch phase {
        case .withdrawn, .held: return true
        case .none, .failed: return !settings.isConnectable || now - since >= Self.endLimit
        case .ending: return true
        case .attempting, .linked: return false
        }
    }

    /// True if this gateway is the last owner that is known.
    func wasOwned(by gateway: String) -> Bool { row.map { $0.owner == gateway } ?? isRecalled }

    /// The owner of a lease that has not ended.
    func owner(at now: Duration) -> String? {
        guard let row, !row.isReleased, row.remaining > now - rowTime else { return nil }
        return row.owner
    }

    /// True if the configuration or the centre reserves the device for other gateways.
    func excludes(_ gateway: String) -> Bool {
        [settings.gateways, row?.gateways].contains { $0.map { !$0.contains(gateway) } ?? false }
    }

    /// The bids of the other gateways that may own the device; a bid that was not repeated in time counts as silent,
    /// then as missing.
    func rivals(of gateway: String, _ policy: LeaseMachine.Policy, at now: Duration) -> [LeaseBid] {
        (row?.bids ?? []).filter { $0.bid.gateway != gateway }.compactMap { entry in
            let age = entry.age + (now - rowTime)
            guard age < policy.bidLimit, row?.gateways?.contains(entry.bid.gateway) ?? true else { return nil }
            var bid = entry.bid
            if age >= policy.renewal * 3 / 2, bid.standing != .linked, bid.standing != .gone { bid.standing = .silent }
            return bid
        }
    }
}
