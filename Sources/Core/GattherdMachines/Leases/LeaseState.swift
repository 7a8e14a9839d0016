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
    private(set) var role = Role.standby
    /// True if the link may be made.
    private(set) var isAdmitted = false
    /// The reason of the last decision.
    var reason = ""
    var reach: DeviceReach
    /// The lease and the bids as last read from the centre, at ``rowTime``.
    private(set) var row: LeaseRow?
    private(set) var rowTime = Duration.zero
    /// The last bid that the centre has.
    private(set) var sentBid: LeaseBid?
    private var sentTime = Duration.zero
    /// The time of the last claim or renewal.
    private(set) var renewedAt = Duration.zero

    /// True if this gateway was the last owner before its restart.
    private let isRecalled: Bool

    init(_ settings: LeasedDevice, isRecalled: Bool) {
        (self.settings, self.isRecalled) = (settings, isRecalled)
        reach = DeviceReach(isConnectable: settings.isConnectable)
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

    // MARK: - The role

    /// Starts a claim, and returns its operation.
    mutating func claim(_ reason: String) -> LeaseRequest.Operation {
        (role, self.reason) = (.claiming, reason)
        return .claim(epoch: row?.epoch ?? 0)
    }

    /// Ends a claim without an answer; the centre may have given the lease, but it does not count.
    mutating func claimFailed() {
        guard role == .claiming else { return }
        role = isAdmitted ? .alone : .standby
    }

    /// Starts the release of the device.
    mutating func release(_ grant: Grant, _ cause: LeaseCause, at now: Duration) {
        (role, isAdmitted, self.cause) = (.releasing(grant, since: now), false, cause)
    }

    /// Ends the lease with the gateway, whose link may stay.
    mutating func stop() { role = .standby }

    /// Connects the device while the centre is unreachable, if this gateway owned it last, or it belongs to it.
    mutating func goAlone(_ gateway: String) {
        guard !excludes(gateway) else { return reason = "the centre is away, and it is for other gateways" }
        let isOwn = settings.gateways?.first == gateway
        if isOwn || wasOwned(by: gateway) { (role, isAdmitted) = (.alone, true) }
        reason = isOwn ? "the centre is away, and it belongs to this gateway" : "the centre is away"
    }

    /// Leaves the device to others.
    mutating func standBy() { (role, isAdmitted) = (.standby, false) }

    /// Follows the centre's answer to an operation that was sent at a time.
    mutating func follow(
        _ row: LeaseRow,
        _ operation: LeaseRequest.Operation,
        of gateway: String,
        _ policy: LeaseMachine.Policy,
        sent: Duration,
        at now: Duration
    ) {
        let isOurs = row.owner == gateway && !row.isReleased
        switch (operation, role) {
        case (.claim, .claiming):
            guard isOurs, row.isGranted else { return leave(row) }
            role = .owner(Grant(epoch: row.epoch, until: sent + policy.duration))
            (isAdmitted, renewedAt) = (true, sent)
            reach.beginOwnership(policy.claimGrace, at: now)
        case (.renew(let epoch), .owner(var grant)) where grant.epoch == epoch:
            guard isOurs, row.epoch == epoch else { return leave(row) }
            guard row.isGranted else { return refuse(grant, row, gateway, at: now) }
            grant.until = sent + policy.duration
            (role, renewedAt) = (.owner(grant), sent)
        case (.renew(let epoch), .releasing(let grant, _)) where grant.epoch == epoch:
            if !isOurs || row.epoch != epoch { leave(row) }
        case (.release, .releasing): leave(row)
        case (_, .owner(let grant)):
            if row.epoch != grant.epoch || row.owner != gateway { leave(row) }
        default: break
        }
    }

    /// Gives up a lease that the centre does not renew.
    ///
    /// If a list leaves this gateway out, the lease must be released: the others would wait for its end.
    private mutating func refuse(_ grant: Grant, _ row: LeaseRow, _ gateway: String, at now: Duration) {
        guard excludes(gateway) else { return leave(row) }
        release(grant, .excluded, at: now)
        reason = problem(of: gateway, isFull: false, at: now) ?? reason
    }

    /// Stops being the owner.
    private mutating func leave(_ row: LeaseRow) {
        standBy()
        reason = row.reason
    }

    // MARK: - Input

    mutating func setPhase(_ phase: LeaseMachine.LinkPhase, _ policy: LeaseMachine.Policy, at now: Duration) {
        reach.setPhase(phase, isOwner: isOwner, policy, at: now)
    }

    mutating func received(_ row: LeaseRow, _ request: LeaseRequest, at now: Duration) {
        (self.row, rowTime) = (row, now)
        if let sent = request.gateways, sent == settings.gateways ?? [] { isListSent = true }
        guard request.isBidDue else { return }
        (sentBid, sentTime) = (request.bid, now)
    }

    // MARK: - The bid

    func bid(of gateway: String, isFull: Bool, at now: Duration) -> LeaseBid {
        let (standing, rssi) = reach.standing(at: now)
        let problem = problem(of: gateway, isFull: isFull, at: now)
        return LeaseBid(gateway: gateway, standing: standing, rssi: rssi, problem: problem)
    }

    /// The constraint that the gateway does not fulfil.
    private func problem(of gateway: String, isFull: Bool, at now: Duration) -> String? {
        if let gateways = settings.gateways, !gateways.contains(gateway) {
            return "it is configured for \(gateways.joined(separator: ", "))"
        }
        if let gateways = row?.gateways, !gateways.contains(gateway) {
            return "the centre reserves it for \(gateways.joined(separator: ", "))"
        }
        if reach.phase == .held, !isOwner, !wasOwned(by: gateway) { return "a person has disconnected it there" }
        return reach.failure(at: now) ?? (reach.needsSlot && isFull ? "no adapter has a free slot" : nil)
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

    /// The cause for which an owner has stopped being it by the answer of the centre.
    var lossCause: LeaseCause { if case .releasing = role { cause ?? .expired } else { .expired } }

    /// True if the link is ending or has ended, so that another gateway may make one.
    func isReadyToRelease(at now: Duration) -> Bool {
        guard case .releasing(_, let since) = role else { return false }
        return reach.isEnding(since: since, at: now)
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
