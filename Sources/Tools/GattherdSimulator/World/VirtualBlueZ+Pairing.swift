import GattherdDBus

// Pairings, started by `Pair` or by a request that needs encryption.
extension VirtualBlueZ {
    /// The number of ATT latencies that a pairing takes once no agent has to answer.
    private static let pairingRounds = 5

    /// Makes a bond, after connecting if necessary.
    ///
    /// Two calls are never answered, as observed with BlueZ 5.66: on a bonded device, and while `Connect` is pending.
    mutating func pair(_ call: MethodCall, _ key: DeviceKey) {
        guard let device = devices[key] else { return }
        guard device.pairing == nil else { return fail(call, .acquireInProgress) }
        guard adapters[key.adapter].isPowered else { return fail(call, .authenticationFailed) }
        guard !device.isBonded else { return }
        guard !device.isEncrypted else { return fail(call, .alreadyPaired) }
        let token = device.attempt?.call == nil ? call.token : nil
        let id = makeID()
        devices[key]?.pairing = SimulatedPairing(id: id, call: token, client: call.sender)
        if device.isResolved {
            negotiate(key)
        } else if !device.isConnected, device.attempt == nil {
            startAttempt(key, for: nil)
        }
    }

    /// Holds a request until the link is encrypted, and starts a pairing.
    mutating func hold(_ request: GATTRequest, _ id: UInt64) {
        requests.hold(request, id)
        guard devices[request.key]?.pairing == nil else { return }
        let pairing = makeID()
        devices[request.key]?.pairing = SimulatedPairing(id: pairing, call: nil, client: nil)
        negotiate(request.key)
    }

    /// Selects the pairing method and starts it.
    ///
    /// After a client's `Pair`, Just Works needs no authorization, but it does need an agent.
    mutating func negotiate(_ key: DeviceKey) {
        guard let pairing = devices[key]?.pairing else { return }
        guard let agent = agents.agent(for: pairing.client) else { return refuse(key) }
        let capability = peripherals[key.peripheral].spec.pairing
        let method = capability.method(with: agent.capability)
        if capability == .refused || (method == .justWorks && capability.needsAuthentication) {
            schedule(.failPairing(key, pairing: pairing.id), after: pairingLatency(key))
        } else if method == .justWorks, pairing.client != nil {
            exchangeKeys(key)
        } else {
            ask(agent, method, key)
        }
    }

    private func pairingLatency(_ key: DeviceKey) -> Duration {
        peripherals[key.peripheral].attLatency * Self.pairingRounds
    }

    private mutating func exchangeKeys(_ key: DeviceKey) {
        guard let pairing = devices[key]?.pairing else { return }
        schedule(.finishPairing(key, pairing: pairing.id), after: pairingLatency(key))
    }

    /// Encrypts the link.
    ///
    /// If an agent is registered, both sides also make a bond.
    mutating func finishPairing(_ key: DeviceKey, pairing id: UInt64) {
        guard let pairing = devices[key]?.pairing, pairing.id == id else { return }
        let makesBond = adapters[key.adapter].isPairable
        let properties = devices[key]?.finishPairing(makesBond: makesBond) ?? []
        if makesBond { peripherals[key.peripheral].bonds.insert(key.adapter) }
        effects.changed(devicePath(key), InterfaceName.device, properties)
        if let call = pairing.call { effects.reply(call) }
        for request in requests.held(by: key) { finish(request) }
    }

    /// Fails a pairing on the host's side.
    ///
    /// The link remains, and bluetoothd removes the device with it later.
    ///
    /// Requests that wait for encryption continue to wait. If an agent refused, they time out.
    private mutating func refuse(_ key: DeviceKey, expiring isExpiring: Bool = false) {
        endPairing(key, .authenticationFailed)
        if isExpiring { for id in requests.held(by: key) { schedule(.timeOut(id), after: timing.attTimeout) } }
        scheduleRemoval(key, after: timing.temporaryTimeout)
    }

    /// Fails a pairing on the peripheral's side, which ends the link.
    mutating func failPairing(_ key: DeviceKey, pairing id: UInt64) {
        guard devices[key]?.pairing?.id == id else { return }
        endPairing(key, .authenticationFailed)
        linkDown(key, .authentication)
    }

    /// Ends a pairing whose agent did not answer in time, and the link.
    mutating func abandonPairing(_ key: DeviceKey, pairing id: UInt64) {
        guard devices[key]?.pairing?.id == id else { return }
        linkDown(key, .authentication)
    }

    mutating func cancelPairing(_ call: MethodCall, _ key: DeviceKey) {
        guard devices[key]?.pairing?.client != nil else { return fail(call, .doesNotExist) }
        withdrawPairing(key)
        if devices[key]?.attempt?.call == nil { cancelAttempt(key) }
        reply(call)
    }

    /// Cancels a pairing and its agent's request.
    mutating func withdrawPairing(_ key: DeviceKey) {
        guard let pairing = devices[key]?.pairing else { return }
        if let agent = pairing.request?.agent { effects.append(.notifyAgent(agent, "Cancel")) }
        endPairing(key, .authenticationCanceled)
    }

    mutating func endPairing(_ key: DeviceKey, _ error: DBusError) {
        guard let pairing = devices[key]?.pairing else { return }
        devices[key]?.pairing = nil
        if let call = pairing.call { effects.fail(call, error) }
    }
}

// MARK: - Agents

extension VirtualBlueZ {
    mutating func answerAgentManager(_ call: MethodCall) {
        let path = call.arguments.first?.string ?? ""
        switch call.member {
        case "RegisterAgent": registerAgent(call, path)
        case "UnregisterAgent":
            guard agents[call.sender]?.path == path else { return fail(call, .doesNotExist) }
            removeAgent(of: call.sender)
            reply(call)
        case "RequestDefaultAgent":
            guard agents[call.sender]?.path == path else { return fail(call, .doesNotExist) }
            agents.makeDefault(call.sender)
            reply(call)
        default: fail(call, .unknown(call, object: false))
        }
    }

    private mutating func registerAgent(_ call: MethodCall, _ path: String) {
        guard agents[call.sender] == nil else { return fail(call, .alreadyExists) }
        guard let word = call.arguments.last?.string, let capability = AgentCapability(word: word) else {
            return fail(call, .invalidArguments)
        }
        agents.add(RegisteredAgent(owner: call.sender, path: path, capability: capability))
        updatePairable()
        reply(call)
    }

    /// Removes a client's agent.
    ///
    /// Its pending requests stay open until the peripheral gives up.
    private mutating func removeAgent(of client: String) {
        agents.remove(client)
        for key in devices.keys where devices[key]?.pairing?.request?.agent.owner == client {
            devices[key]?.pairing?.request = nil
        }
        updatePairable()
    }

    /// Refuses the pending requests of a client that left the bus, and removes its agent.
    mutating func agentLeft(_ client: String) {
        let asked = devices.filter { $0.value.pairing?.request?.agent.owner == client }.keys
        for key in asked.sorted(by: { $0.peripheral < $1.peripheral }) { refuse(key) }
        removeAgent(of: client)
    }

    /// Makes adapters pairable exactly while an agent is registered.
    private mutating func updatePairable() {
        for index in adapters.indices where adapters[index].isPairable == agents.isEmpty {
            adapters[index].isPairable = !agents.isEmpty
            guard adapters[index].isPresent else { continue }
            let property = Property("Pairable", .boolean(adapters[index].isPairable))
            effects.changed(adapters[index].path, InterfaceName.adapter, [property])
        }
    }

    /// Sends a request to an agent, which has until the pairing timeout to answer.
    private mutating func ask(_ agent: RegisteredAgent, _ method: SimulatedPairingMethod, _ key: DeviceKey) {
        guard let pairing = devices[key]?.pairing else { return }
        let device = DBusValue.objectPath(devicePath(key))
        let passkey = DBusValue.uint32(peripherals[key.peripheral].spec.passkey)
        let (member, arguments): (String, [DBusValue]) =
            switch method {
            case .justWorks: ("RequestAuthorization", [device])
            case .agentEnters: ("RequestPasskey", [device])
            case .agentDisplays: ("DisplayPasskey", [device, passkey, .uint16(0)])
            case .agentCompares: ("RequestConfirmation", [device, passkey])
            }
        let request = AgentRequest(id: makeID(), agent: agent, member: member, arguments: arguments)
        devices[key]?.pairing?.request = request
        effects.append(.ask(request))
        schedule(.abandonPairing(key, pairing: pairing.id), after: timing.pairingTimeout)
    }

    /// Applies an agent's answer.
    ///
    /// Answers to ended requests are ignored.
    mutating func receive(_ answer: AgentAnswer, to id: UInt64) {
        guard let (key, request) = request(id) else { return }
        devices[key]?.pairing?.request = nil
        guard answer.isYes else { return refuse(key, expiring: true) }
        let passkey = peripherals[key.peripheral].spec.passkey
        guard request.member != "RequestPasskey" || answer.passkey == passkey else {
            return schedule(.failPairing(key, pairing: devices[key]?.pairing?.id ?? 0), after: pairingLatency(key))
        }
        exchangeKeys(key)
    }

    private func request(_ id: UInt64) -> (DeviceKey, AgentRequest)? {
        for (key, device) in devices {
            if let request = device.pairing?.request, request.id == id { return (key, request) }
        }
        return nil
    }
}
