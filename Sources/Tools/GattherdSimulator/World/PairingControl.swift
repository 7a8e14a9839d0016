import GattherdDBus

/// A pairing in progress.
struct SimulatedPairing: Hashable, Sendable {
    let id: UInt64
    /// The `Pair` call to answer at the end, if there is one.
    let call: CallToken?
    /// The client that called `Pair`; `nil` if a request needed encryption.
    let client: String?
    /// The agent's pending request.
    var request: AgentRequest?
}

/// A call of an agent's method that waits for its reply.
struct AgentRequest: Hashable, Sendable {
    let id: UInt64
    let agent: RegisteredAgent
    let member: String
    let arguments: [DBusValue]
}

/// The reply to an agent's request.
struct AgentAnswer: Hashable, Sendable {
    /// False if the agent replied with an error, or has left the bus.
    let isYes: Bool
    /// The passkey that the agent entered.
    var passkey: UInt32?
}

/// The pairings that `Pair`, or a request that needs encryption, has started.
final class PairingControl {
    /// The number of ATT latencies that a pairing takes once no agent has to answer.
    private static let rounds = 5

    private let world: World
    private let agents: AgentRegistry
    private let requests: RequestTable
    private let registry: DeviceRegistry

    init(_ world: World, _ agents: AgentRegistry, _ requests: RequestTable, _ registry: DeviceRegistry) {
        self.world = world
        self.agents = agents
        self.requests = requests
        self.registry = registry
    }

    /// Starts to make a bond.
    ///
    /// Returns true if the device has to be connected first.
    ///
    /// Two calls are never answered, as observed with BlueZ 5.66: on a bonded device, and while `Connect` is pending.
    func pair(_ call: MethodCall, _ key: DeviceKey) -> Bool {
        guard let device = world.devices[key] else { return false }
        if let refusal = refusal(of: device) {
            world.effects.fail(call, refusal)
            return false
        }
        guard !device.isBonded else { return false }
        let token = device.attempt?.call == nil ? call.token : nil
        start(key, call: token, client: call.sender)
        if device.isResolved { negotiate(key) }
        return !device.isConnected && device.attempt == nil
    }

    private func refusal(of device: SimulatedDevice) -> DBusError? {
        if device.pairing != nil { return .acquireInProgress }
        if !world.adapters[device.key.adapter].isPowered { return .authenticationFailed }
        return device.isEncrypted && !device.isBonded ? .alreadyPaired : nil
    }

    /// Starts a pairing for a request that needs encryption, unless one is in progress.
    func pairForRequest(_ key: DeviceKey) {
        guard world.devices[key]?.pairing == nil else { return }
        start(key, call: nil, client: nil)
        negotiate(key)
    }

    private func start(_ key: DeviceKey, call: CallToken?, client: String?) {
        world.devices[key]?.pairing = SimulatedPairing(id: world.clock.makeID(), call: call, client: client)
    }

    /// Selects the method of a pairing in progress and starts it.
    ///
    /// After a client's `Pair`, Just Works needs no authorization, but it does need an agent.
    func negotiate(_ key: DeviceKey) {
        guard let pairing = world.devices[key]?.pairing else { return }
        guard let agent = agents.agent(for: pairing.client) else { return refuse(key) }
        let capability = world.air.peripherals[key.peripheral].spec.pairing
        let method = capability.method(with: agent.capability)
        if capability == .refused || (method == .justWorks && capability.needsAuthentication) {
            world.clock.schedule(.failPairing(key, pairing: pairing.id), after: latency(key))
        } else if method == .justWorks, pairing.client != nil {
            exchangeKeys(key)
        } else {
            ask(agent, method, key)
        }
    }

    private func latency(_ key: DeviceKey) -> Duration {
        world.air.peripherals[key.peripheral].attLatency * Self.rounds
    }

    private func exchangeKeys(_ key: DeviceKey) {
        guard let pairing = world.devices[key]?.pairing else { return }
        world.clock.schedule(.finishPairing(key, pairing: pairing.id), after: latency(key))
    }

    /// Encrypts the link.
    ///
    /// Returns the requests that have waited for it. If an agent is registered, both sides also make a bond.
    func finish(_ key: DeviceKey, pairing id: UInt64) -> [UInt64] {
        guard let pairing = world.devices[key]?.pairing, pairing.id == id else { return [] }
        let makesBond = world.adapters[key.adapter].isPairable
        let properties = world.devices[key]?.finishPairing(makesBond: makesBond) ?? []
        if makesBond { world.air.peripherals[key.peripheral].bonds.insert(key.adapter) }
        world.signal(key, properties)
        if let call = pairing.call { world.effects.reply(call) }
        return requests.held(by: key)
    }

    /// Fails a pairing on the host's side.
    ///
    /// The link remains, and bluetoothd removes the device with it later.
    ///
    /// Requests that wait for encryption continue to wait. If an agent refused, they time out.
    private func refuse(_ key: DeviceKey, expiring isExpiring: Bool = false) {
        end(key, .authenticationFailed)
        let expired = isExpiring ? requests.held(by: key) : []
        for id in expired { world.clock.schedule(.timeOut(id), after: world.timing.attTimeout) }
        registry.scheduleRemoval(key, after: world.timing.temporaryTimeout)
    }

    /// Fails a pairing on the peripheral's side.
    ///
    /// Returns false if it has ended before. Otherwise the link has to end.
    func fail(_ key: DeviceKey, pairing id: UInt64) -> Bool {
        guard isCurrent(key, id) else { return false }
        end(key, .authenticationFailed)
        return true
    }

    /// True if this pairing is in progress.
    func isCurrent(_ key: DeviceKey, _ id: UInt64) -> Bool { world.devices[key]?.pairing?.id == id }

    /// True if a client has called `Pair`.
    func isPairedByClient(_ key: DeviceKey) -> Bool { world.devices[key]?.pairing?.client != nil }

    /// Cancels a pairing and its agent's request.
    func withdraw(_ key: DeviceKey) {
        guard let pairing = world.devices[key]?.pairing else { return }
        if let agent = pairing.request?.agent { world.effects.append(.notifyAgent(agent, "Cancel")) }
        end(key, .authenticationCanceled)
    }

    func end(_ key: DeviceKey, _ error: DBusError) {
        guard let pairing = world.devices[key]?.pairing else { return }
        world.devices[key]?.pairing = nil
        if let call = pairing.call { world.effects.fail(call, error) }
    }
}

// MARK: - Requests to agents

extension PairingControl {
    /// Sends a request to an agent, which has until the pairing timeout to answer.
    private func ask(_ agent: RegisteredAgent, _ method: SimulatedPairingMethod, _ key: DeviceKey) {
        guard let pairing = world.devices[key]?.pairing else { return }
        let device = DBusValue.objectPath(world.path(of: key))
        let passkey = DBusValue.uint32(world.air.peripherals[key.peripheral].spec.passkey)
        let (member, arguments): (String, [DBusValue]) =
            switch method {
            case .justWorks: ("RequestAuthorization", [device])
            case .agentEnters: ("RequestPasskey", [device])
            case .agentDisplays: ("DisplayPasskey", [device, passkey, .uint16(0)])
            case .agentCompares: ("RequestConfirmation", [device, passkey])
            }
        let request = AgentRequest(id: world.clock.makeID(), agent: agent, member: member, arguments: arguments)
        world.devices[key]?.pairing?.request = request
        world.effects.append(.ask(request))
        world.clock.schedule(.abandonPairing(key, pairing: pairing.id), after: world.timing.pairingTimeout)
    }

    /// Applies an agent's answer.
    ///
    /// Answers to ended requests are ignored.
    func receive(_ answer: AgentAnswer, to id: UInt64) {
        guard let (key, pairing, request) = pending(id) else { return }
        world.devices[key]?.pairing?.request = nil
        guard answer.isYes else { return refuse(key, expiring: true) }
        let passkey = world.air.peripherals[key.peripheral].spec.passkey
        guard request.member != "RequestPasskey" || answer.passkey == passkey else {
            return world.clock.schedule(.failPairing(key, pairing: pairing.id), after: latency(key))
        }
        exchangeKeys(key)
    }

    private func pending(_ id: UInt64) -> (DeviceKey, SimulatedPairing, AgentRequest)? {
        for (key, device) in world.devices {
            if let pairing = device.pairing, let request = pairing.request, request.id == id {
                return (key, pairing, request)
            }
        }
        return nil
    }

    func unregisterAgent(_ call: MethodCall, _ path: String) {
        guard agents.has(call.sender, path: path) else { return world.effects.fail(call, .doesNotExist) }
        removeAgent(of: call.sender)
        world.effects.reply(call)
    }

    /// Refuses the pending requests of a client that left the bus, and removes its agent.
    func removeClient(_ client: String) {
        guard agents.has(client) else { return }
        for key in keys(asking: client).sorted(by: { $0.peripheral < $1.peripheral }) { refuse(key) }
        removeAgent(of: client)
    }

    /// Removes a client's agent.
    ///
    /// Its pending requests stay open until the peripheral times out.
    private func removeAgent(of client: String) {
        for key in keys(asking: client) { world.devices[key]?.pairing?.request = nil }
        agents.remove(client)
    }

    private func keys(asking client: String) -> [DeviceKey] {
        world.devices.values.filter { $0.pairing?.request?.agent.owner == client }.map(\.key)
    }
}
