/// The devices that have left the configuration, until the centre has no lease and no bid of this gateway for them.
///
/// The configuration has no other device with such an address, so an exchange has each address once.
struct LeaseDepartures: Sendable {
    private static let reason = "it was removed from the configuration there"

    /// The states by address.
    private var states: [String: LeaseState] = [:]

    /// The names of the devices.
    var devices: Set<String> { Set(states.values.lazy.map(\.settings.name)) }

    /// Adds a device; its lease is released when its link session has ended.
    mutating func add(_ state: LeaseState, at now: Duration) {
        states[state.settings.address] = state.departing(at: now)
    }

    /// Removes the devices with these addresses, which the configuration has again.
    mutating func remove(_ addresses: Set<String>) {
        states = states.filter { !addresses.contains($0.key) }
    }

    mutating func removeAll() { states = [:] }

    mutating func setPhase(
        _ phase: LeaseMachine.LinkPhase,
        of device: String,
        _ policy: LeaseMachine.Policy,
        at now: Duration
    ) {
        for (address, state) in states where state.settings.name == device {
            states[address]?.setPhase(phase, policy, at: now)
        }
    }

    // MARK: - Exchanges

    /// Returns the requests that are due, and removes the devices that need none any more.
    ///
    /// - Parameters:
    ///   - gateway: The name of this gateway.
    ///   - policy: The durations.
    ///   - isEnd: True at the end of the gateway, when all links have ended.
    ///   - now: The time.
    /// - Returns: At most one request for each device.
    mutating func requests(
        of gateway: String,
        _ policy: LeaseMachine.Policy,
        isEnd: Bool = false,
        at now: Duration
    ) -> [LeaseRequest] {
        states = states.filter { _, state in
            state.role == .claiming || state.lastRequest(of: gateway, policy, Self.reason, at: now) != nil
        }
        return states.keys.sorted().compactMap { address in
            guard let state = states[address], isEnd || Self.isReady(state, at: now) else { return nil }
            return state.lastRequest(of: gateway, policy, Self.reason, at: now)
        }
    }

    /// True if a request is due.
    func isDue(at now: Duration) -> Bool { states.values.contains { Self.isReady($0, at: now) } }

    /// True if the link session has ended, so that the lease and the bid may go.
    private static func isReady(_ state: LeaseState, at now: Duration) -> Bool {
        state.role != .claiming && (state.grant == nil || state.isReadyToRelease(at: now))
    }

    /// Follows the centre's answer; a claim under way may have been granted.
    mutating func answered(
        _ row: LeaseRow,
        _ request: LeaseRequest,
        of gateway: String,
        _ policy: LeaseMachine.Policy,
        sent: Duration,
        at now: Duration
    ) {
        guard var state = states[request.address] else { return }
        state.received(row, request, at: now)
        state.follow(row, request.operation, of: gateway, policy, sent: sent, at: now)
        states[request.address] = state.departing(at: now)
    }

    /// Ends a claim without an answer.
    mutating func failed(_ request: LeaseRequest) {
        states[request.address]?.claimFailed()
    }
}

extension LeaseState {
    /// The state of a device that has left the configuration.
    fileprivate func departing(at now: Duration) -> LeaseState {
        guard case .owner(let grant) = role else { return self }
        var state = self
        state.release(grant, .excluded, at: now)
        return state
    }

    /// The last request for a device; `nil` if the gateway has neither its lease nor a bid.
    ///
    /// Without it, other gateways would leave the device to this one until the bid is old.
    func lastRequest(
        of gateway: String,
        _ policy: LeaseMachine.Policy,
        _ reason: String,
        at now: Duration
    ) -> LeaseRequest? {
        let grant = grant.flatMap { now < $0.until ? $0 : nil }
        guard grant != nil || hasBid(policy, at: now) else { return nil }
        return LeaseRequest(
            device: settings.name,
            address: settings.address,
            bid: LeaseBid(gateway: gateway, standing: .gone),
            isBidDue: true,
            operation: grant.map { .release(epoch: $0.epoch) } ?? .observe,
            reason: reason
        )
    }
}
