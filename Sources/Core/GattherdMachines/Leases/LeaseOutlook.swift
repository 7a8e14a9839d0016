/// An assessment of one device's lease at a moment, from the bids that a gateway knows.
struct LeaseOutlook {
    let state: LeaseState
    /// This gateway's bid.
    let own: LeaseBid
    let rivals: [LeaseBid]
    /// The owner of a lease that has not ended.
    let owner: String?
    private let gateway: String
    private let policy: LeaseMachine.Policy
    private let isCut: Bool
    private let isReturning: Bool
    private let now: Duration

    init(
        _ state: LeaseState,
        of gateway: String,
        _ policy: LeaseMachine.Policy,
        isFull: Bool,
        isCut: Bool,
        isReturning: Bool,
        at now: Duration
    ) {
        (self.state, self.gateway, self.policy) = (state, gateway, policy)
        (self.isCut, self.isReturning, self.now) = (isCut, isReturning, now)
        own = state.bid(of: gateway, isFull: isFull, at: now)
        rivals = state.rivals(of: gateway, policy, at: now)
        owner = state.owner(at: now)
    }

    /// True if the gateway does not know the current bids of the others, and so continues as before.
    var hasOldRow: Bool { now - state.rowTime >= policy.calmPause * 3 }

    /// True if no other gateway owns the device.
    private var isFree: Bool { owner == nil || owner == gateway }

    /// The choice of an owner if the lease is free.
    var election: LeaseElection { LeaseElection(rivals + [own], owner: nil) }

    /// The choice between this gateway, the current owner, and the others.
    var challenge: LeaseElection {
        LeaseElection(
            rivals + [own],
            owner: gateway,
            previous: state.row?.previous,
            loss: state.reach.linkLoss(at: now)
        )
    }

    /// The reason for the current owner, or for having none.
    var reason: String {
        guard let row = state.row else { return "the centre has not answered yet" }
        return owner == nil ? election.reason : row.reason
    }

    // MARK: - Claims

    /// True if the lease would be claimed by the next exchange.
    var isClaimable: Bool {
        switch state.role {
        case .standby: shouldClaim
        case .alone where !isCut: state.reach.phase == .linked && isFree || shouldClaim
        case .alone, .claiming, .owner, .releasing: false
        }
    }

    /// True if the lease is free and this gateway should have it.
    var shouldClaim: Bool {
        guard let row = state.row, !hasOldRow, isFree, own.problem == nil, !isAwaitingOwner else { return false }
        let winner = election.winner
        // After a restart, the links of the run before are taken over.
        if row.owner == gateway, !row.isReleased { return winner == nil || winner == gateway }
        return winner == gateway && (own.standing == .linked || isCompared)
    }

    /// True if the last owner of a device that only advertises may still renew a lease that ended without the centre.
    ///
    /// Meanwhile each gateway that hears the device publishes it.
    private var isAwaitingOwner: Bool {
        guard isReturning, let row = state.row, let last = row.owner else { return false }
        return last != gateway && !row.isReleased && !state.settings.isConnectable
    }

    /// True if other gateways have had time to bid; while the device has an owner, they always have.
    private var isCompared: Bool {
        if state.row?.owner != nil, own.standing == .steady { return true }
        return state.reach.audibleSince.map { now - $0 >= policy.comparison } ?? false
    }

    /// True if this gateway is next in line for a device whose owner has lost the link, and may release it any moment.
    ///
    /// Such a gateway claims with each exchange. The centre grants it only after the release.
    var isNextInLine: Bool {
        guard state.role == .standby, !hasOldRow, state.settings.isConnectable, own.problem == nil, !isFree,
            let present = rivals.first(where: { $0.gateway == owner }), present.standing != .linked,
            present.standing != .held
        else { return false }
        let others = rivals.filter { $0.gateway != owner }
        return LeaseElection(others + [own], owner: nil).winner == gateway && isCompared
    }

    // MARK: - Pace

    /// True if the device may change hands: two gateways hear it, and none has the link.
    var isBusy: Bool {
        if case .releasing = state.role { return true }
        guard own.isAudible else { return false }
        if !state.isOwner, owner == nil { return true }
        guard state.settings.isConnectable else { return false }
        if state.reach.linkLoss(at: now) != nil, isHandingOver { return true }
        // A device that starts to advertise has lost its link, although its owner may not have reported it yet.
        if !state.isOwner, let since = state.reach.audibleSince, now - since < policy.renewal { return true }
        return rivals.contains(where: \.isAudible) && !(rivals + [own]).contains { $0.standing == .linked }
    }

    /// True for some seconds after a device has begun to advertise, or after its link was lost.
    var isHandingOver: Bool {
        if case .releasing = state.role { return true }
        let since = max(state.reach.audibleSince ?? .zero, state.reach.unlinkedSince ?? .zero)
        return state.settings.isConnectable && now - since < policy.renewal
    }

    /// The pause before the next exchange.
    var pause: Duration {
        if state.isReadyToRelease(at: now) || isClaimable || state.isChange(own) { return policy.shortestPause }
        guard isBusy else { return policy.calmPause }
        return isHandingOver ? policy.quickPause : policy.busyPause
    }
}
