/// One gateway's view of the leases of its devices: which it owns, bids for, and releases.
///
/// A lease is a row at the centre with an owner, an epoch and an end. The centre gives it by compare-and-set, so an
/// epoch has one owner. All gateways decide by the same rule on the same bids, see ``LeaseElection``. A machine counts
/// as owner only by the answer to a claim of its own. Time is passed in, counted from any fixed instant; it must go on
/// while the system is suspended. The clocks of gateways do not matter.
public struct LeaseMachine: Sendable {
    let gateway: String
    let policy: Policy
    /// The addresses of the devices that the gateway owned last before its restart.
    private let recalled: Set<String>
    private var devices: [String: LeaseState] = [:]
    private var departures = LeaseDepartures()
    private var isFull = false
    private var isStopped = false
    /// The time until which the release of the leases waits for the answer of the centre; `nil` if none is due.
    private var releaseEnd: Duration?
    private var exchanges: LeaseExchanges
    private var reports = LeaseReports()

    /// - Parameters:
    ///   - gateway: The gateway's name at the centre.
    ///   - policy: The durations.
    ///   - recalled: The ``lastOwned`` of the run before.
    ///   - now: The time of the start.
    public init(gateway: String, policy: Policy = Policy(), recalled: Set<String> = [], at now: Duration) {
        (self.gateway, self.policy, self.recalled) = (gateway, policy, recalled)
        exchanges = LeaseExchanges(policy, at: now)
    }

    /// Applies an event and returns the effects, in order.
    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .configured(let devices): configure(devices, at: now)
        case .heard(let device, let adapter, let rssi): self.devices[device]?.reach.record(rssi, on: adapter, at: now)
        case .link(let device, let phase):
            devices[device]?.setPhase(phase, policy, at: now)
            departures.setPhase(phase, of: device, policy, at: now)
        case .slots(let isFull): self.isFull = isFull
        case .answered(let ticket, let rows):
            let effects = answered(ticket, rows, at: now)
            return isStopped ? releaseIfDue(at: now) : effects
        case .failed(let ticket):
            failed(ticket)
            return releaseIfDue(at: now)
        case .stop(let releases): return stop(releases: releases, at: now)
        case .tick: return isStopped ? abandonExchange(at: now) : decide(at: now) + exchange(at: now)
        }
        return []
    }

    // MARK: - Output

    /// True if the gateway is the owner at this time, so that it may carry out remote controls.
    public func isCurrent(_ device: String, at now: Duration) -> Bool { epoch(of: device, at: now) != nil }

    /// The epoch under which the gateway owns the device; `nil` if it does not, or its lease has ended.
    public func epoch(of device: String, at now: Duration) -> Int64? { lease(of: device, at: now)?.epoch }

    /// The epoch and the end of the lease that the gateway has.
    public func lease(of device: String, at now: Duration) -> (epoch: Int64, until: Duration)? {
        guard let state = devices[device], case .owner(let grant) = state.role, now < grant.until else { return nil }
        return (grant.epoch, grant.until)
    }

    /// True if the device may be connected here.
    public func isAdmitted(_ device: String) -> Bool { devices[device]?.isAdmitted ?? false }

    /// The reason why the device may not be connected here; `nil` if it may.
    public func withdrawal(of device: String) -> String? { reports.withdrawal(of: device) }

    /// The addresses of the devices that this gateway owned last, for a restart without the centre.
    public var lastOwned: Set<String> {
        Set(devices.values.lazy.filter { $0.wasOwned(by: gateway) }.map(\.settings.address))
    }

    /// The devices that have left the configuration, whose links may still have to end.
    public var departingDevices: Set<String> { departures.devices }

    /// True while a device is about to change its owner, so that the pauses must be short.
    public func isBusy(at now: Duration) -> Bool {
        devices.values.contains { state in
            let outlook = outlook(state, at: now)
            return outlook.isBusy && outlook.isHandingOver
        }
    }

    /// True while the centre has not answered.
    public var isExchanging: Bool { exchanges.isPending }

    /// True if the centre has not answered for the duration of a lease, nor the last exchange.
    public func isCut(at now: Duration) -> Bool { exchanges.isCut(at: now) }

    /// The state of a device's lease, with all bids.
    public func status(of device: String, at now: Duration) -> LeaseStatus? {
        guard let state = devices[device] else { return nil }
        let outlook = outlook(state, at: now)
        let role: LeaseStatus.Role =
            switch state.role {
            case .owner(let grant): now < grant.until ? .owner : .alone
            case .standby: .standby
            case .claiming: .claiming
            case .releasing: .releasing
            case .alone: .alone
            }
        let owner = state.grant == nil ? state.owner(at: now) : gateway
        return LeaseStatus(
            role: role,
            owner: owner,
            epoch: state.grant?.epoch ?? state.row?.epoch ?? 0,
            reason: state.reason,
            bids: ([outlook.own] + outlook.rivals).sorted { $0.gateway < $1.gateway }
        )
    }

    // MARK: - Devices

    /// Follows the configuration; the lease of a removed device is released when its link has ended.
    private mutating func configure(_ wanted: [LeasedDevice], at now: Duration) {
        var next: [String: LeaseState] = [:]
        for device in wanted {
            let isRecalled = recalled.contains(device.address)
            var state = devices[device.name] ?? LeaseState(device, isRecalled: isRecalled)
            let isSame =
                state.settings.address == device.address
                && state.settings.isConnectable == device.isConnectable
            if isSame {
                state.setGateways(device.gateways)
            } else {
                state = LeaseState(device, isRecalled: isRecalled)
            }
            next[device.name] = state
        }
        let addresses = Set(wanted.map(\.address))
        departures.remove(addresses)
        for state in devices.values where !addresses.contains(state.settings.address) { departures.add(state, at: now) }
        devices = next
        reports.keep { next[$0] != nil }
    }

    private func outlook(_ state: LeaseState, at now: Duration) -> LeaseOutlook {
        let isReturning = exchanges.isReturning(at: now)
        return LeaseOutlook(
            state,
            of: gateway,
            policy,
            isFull: isFull,
            isCut: isCut(at: now),
            isReturning: isReturning,
            at: now
        )
    }

    // MARK: - Decisions

    private mutating func decide(at now: Duration) -> [Effect] {
        devices.keys.sorted().flatMap { decide($0, at: now) }
    }

    private mutating func decide(_ name: String, at now: Duration) -> [Effect] {
        guard var state = devices[name] else { return [] }
        state.reach.updateAudibility(outlook(state, at: now).own.isAudible, at: now)
        let outlook = outlook(state, at: now)
        switch state.role {
        case .owner where outlook.hasOldRow: break
        case .owner(let grant): reconsider(&state, grant, at: now)
        case .standby where isCut(at: now), .releasing where isCut(at: now): state.goAlone(gateway)
        case .standby: state.reason = outlook.reason
        case .alone where !isCut(at: now): rejoin(&state, outlook)
        case .claiming, .releasing, .alone: break
        }
        let isReleased = devices[name]?.isOwner == true && !state.isOwner
        let cause = isReleased ? state.cause.map { [Effect.handedOver(device: name, $0)] } ?? [] : []
        return cause + store(state, name, at: now)
    }

    /// Saves a state and returns the effects of its changes.
    private mutating func store(_ state: LeaseState, _ name: String, at now: Duration) -> [Effect] {
        let wasAdmitted = devices[name]?.isAdmitted ?? false
        devices[name] = state
        let detail = withdrawal(of: state, at: now)
        let effects = reports.admission(of: name, state.isAdmitted, before: wasAdmitted, detail: detail)
        guard let status = status(of: name, at: now) else { return effects }
        return effects + reports.change(of: name, to: status)
    }

    private func withdrawal(of state: LeaseState, at now: Duration) -> String {
        if case .releasing = state.role { return "handed over: \(state.reason)" }
        if let owner = state.owner(at: now), owner != gateway { return "owned by gateway \(owner)" }
        return isCut(at: now) ? "the centre, which decides who connects it, is away" : "no gateway owns it"
    }

    /// Releases the lease if another gateway should have it.
    private mutating func reconsider(_ state: inout LeaseState, _ grant: LeaseState.Grant, at now: Duration) {
        let isHeardElsewhere = outlook(state, at: now).rivals.contains(where: \.isAudible)
        if state.reach.isStuck(for: policy.linkLimit, at: now), isHeardElsewhere {
            state.reach.block("it could not be connected in \(policy.linkLimit.components.seconds) s", policy, at: now)
        }
        let election = outlook(state, at: now).challenge
        state.reason = election.reason
        let isForbidden = state.excludes(gateway)
        // A device that is never connected keeps its publisher until another gateway hears it.
        let hasOther = election.winner.map { $0 != gateway } ?? state.settings.isConnectable
        guard hasOther || isForbidden else { return }
        state.release(grant, isForbidden ? .excluded : election.cause ?? .silent, at: now)
    }

    /// Follows the centre again after it was away.
    private func rejoin(_ state: inout LeaseState, _ outlook: LeaseOutlook) {
        guard state.rowTime >= (exchanges.contact ?? .zero) else { return }
        let isFree = outlook.owner.map { $0 == gateway } ?? true
        guard isFree, state.reach.phase == .linked || outlook.shouldClaim else { return state.standBy() }
    }

    // MARK: - Exchanges

    private mutating func exchange(at now: Duration) -> [Effect] {
        guard exchanges.isDue(after: shortestPause(at: now), at: now) else { return [] }
        let last = departures.requests(of: gateway, policy, at: now)
        let requests = last + devices.keys.sorted().compactMap { request($0, at: now) }
        guard !requests.isEmpty || exchanges.isContactDue(at: now) else { return [] }
        return send(requests, at: now)
    }

    private mutating func send(_ requests: [LeaseRequest], at now: Duration) -> [Effect] {
        [.exchange(requests, ticket: exchanges.start(requests, at: now))]
    }

    /// The pause between two exchanges: short while something changes hands.
    private func shortestPause(at now: Duration) -> Duration {
        if departures.isDue(at: now) { return policy.shortestPause }
        return devices.values.lazy.map { outlook($0, at: now).pause }.min() ?? policy.calmPause
    }

    private mutating func request(_ name: String, at now: Duration) -> LeaseRequest? {
        guard var state = devices[name] else { return nil }
        let outlook = outlook(state, at: now)
        let operation = nextOperation(&state, outlook, at: now)
        devices[name] = state
        let own = outlook.own
        let isBidDue = state.isBidDue(own, policy, isHandingOver: outlook.isHandingOver, at: now)
        let isOld = state.row == nil || now - state.rowTime >= policy.renewal
        let isListDue = state.isListDue(of: gateway)
        let isConcerned = own.isAudible || state.isAdmitted || state.grant != nil
        guard isBidDue || isOld || isListDue || isConcerned || operation != .observe else { return nil }
        var request = LeaseRequest(
            device: name,
            address: state.settings.address,
            bid: own,
            isBidDue: isBidDue,
            operation: operation,
            reason: state.reason
        )
        if isListDue { request.gateways = state.settings.gateways ?? [] }
        return request
    }

    /// Returns the operation that the state requires; a claim changes the role to `claiming`.
    private func nextOperation(
        _ state: inout LeaseState,
        _ outlook: LeaseOutlook,
        at now: Duration
    ) -> LeaseRequest.Operation {
        switch state.role {
        case .releasing(let grant, _) where state.isReadyToRelease(at: now): return .release(epoch: grant.epoch)
        case .owner(let grant) where now - state.renewedAt >= policy.renewal: return .renew(epoch: grant.epoch)
        default: break
        }
        guard outlook.isClaimable || outlook.isNextInLine else { return .observe }
        return state.claim(outlook.election.reason)
    }

    // MARK: - Answers

    private mutating func failed(_ ticket: Int) {
        guard let failed = exchanges.failed(ticket) else { return }
        for request in failed.requests { fail(request) }
    }

    /// Ends a request without an answer.
    private mutating func fail(_ request: LeaseRequest) {
        devices[request.device]?.claimFailed()
        departures.failed(request)
    }

    private mutating func answered(_ ticket: Int, _ rows: [LeaseRow], at now: Duration) -> [Effect] {
        guard let answered = exchanges.answered(ticket) else { return [] }
        let byAddress = Dictionary(rows.map { ($0.address, $0) }) { first, _ in first }
        var effects: [Effect] = []
        for request in answered.requests {
            guard let row = byAddress[request.address] else {
                fail(request)
                continue
            }
            departures.answered(row, request, of: gateway, policy, sent: answered.sent, at: now)
            guard var state = devices[request.device], state.settings.address == request.address else { continue }
            state.received(row, request, at: now)
            let wasOwner = state.isOwner
            state.follow(row, request.operation, of: gateway, policy, sent: answered.sent, at: now)
            if wasOwner, !state.isOwner { effects.append(.handedOver(device: request.device, state.lossCause)) }
            if state.role == .standby || state.role == .alone { state.reason = outlook(state, at: now).reason }
            effects += store(state, request.device, at: now)
        }
        return effects
    }

    // MARK: - The end

    private mutating func stop(releases: Bool, at now: Duration) -> [Effect] {
        isStopped = true
        guard releases else {
            exchanges.cancel()
            departures.removeAll()
            for name in devices.keys { devices[name]?.stop() }
            return []
        }
        releaseEnd = now + policy.stopLimit
        // An answer that is awaited may give a lease, with its epoch. Bids under way could arrive after the last ones.
        return releaseIfDue(at: now)
    }

    /// Releases the leases without an answer that is late; a lease that it gives expires.
    private mutating func abandonExchange(at now: Duration) -> [Effect] {
        guard let releaseEnd, now >= releaseEnd else { return [] }
        exchanges.cancel()
        return releaseIfDue(at: now)
    }

    /// Releases the leases and withdraws the bids at the end, once no answer is awaited.
    private mutating func releaseIfDue(at now: Duration) -> [Effect] {
        guard releaseEnd != nil, !exchanges.isPending else { return [] }
        releaseEnd = nil
        let requests =
            departures.requests(of: gateway, policy, isEnd: true, at: now)
            + devices.keys.sorted().compactMap { lastRequest($0, at: now) }
        return requests.isEmpty ? [] : send(requests, at: now)
    }

    private mutating func lastRequest(_ name: String, at now: Duration) -> LeaseRequest? {
        let request = devices[name]?.lastRequest(of: gateway, policy, "the gateway was stopped", at: now)
        if request != nil { devices[name]?.stop() }
        return request
    }
}
