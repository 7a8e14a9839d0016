import GattherdDBus

// Agents: registered, asked, gone.
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
            agents.prefer(call.sender)
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

    /// Forgets a client's agent.
    ///
    /// What it was asked stays open until the other side loses patience.
    private mutating func removeAgent(of client: String) {
        agents.remove(client)
        for key in devices.keys where devices[key]?.pairing?.question?.agent.owner == client {
            devices[key]?.pairing?.question = nil
        }
        updatePairable()
    }

    /// A client that left the bus has refused what it was asked.
    mutating func forgetAgent(of client: String) {
        let asked = devices.filter { $0.value.pairing?.question?.agent.owner == client }.keys
        for key in asked.sorted(by: { $0.peripheral < $1.peripheral }) { refuse(key) }
        removeAgent(of: client)
    }

    /// Adapters make bonds while there is an agent.
    private mutating func updatePairable() {
        for index in adapters.indices where adapters[index].isPairable == agents.isEmpty {
            adapters[index].isPairable = !agents.isEmpty
            guard adapters[index].isPresent else { continue }
            let property = Property("Pairable", .boolean(adapters[index].isPairable))
            changed(adapters[index].path, InterfaceName.adapter, property)
        }
    }

    /// Asks `agent`, who has as long as the two radios wait for each other.
    mutating func ask(_ agent: RegisteredAgent, _ method: SimulatedPairingMethod, _ key: DeviceKey) {
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
        let question = AgentRequest(id: makeID(), agent: agent, member: member, arguments: arguments)
        devices[key]?.pairing?.question = question
        effects.append(.ask(question))
        schedule(.abandonPairing(key, pairing: pairing.id), after: timing.pairingTimeout)
    }

    /// Takes an agent's answer; one that comes too late is nobody's.
    mutating func take(_ answer: AgentAnswer, to id: UInt64) {
        guard let (key, question) = question(id) else { return }
        devices[key]?.pairing?.question = nil
        guard answer.isYes else { return refuse(key, expiring: true) }
        let passkey = peripherals[key.peripheral].spec.passkey
        guard question.member != "RequestPasskey" || answer.passkey == passkey else {
            return schedule(.failPairing(key, pairing: devices[key]?.pairing?.id ?? 0), after: pairingLatency(key))
        }
        exchangeKeys(key)
    }

    private func question(_ id: UInt64) -> (DeviceKey, AgentRequest)? {
        for (key, device) in devices {
            if let question = device.pairing?.question, question.id == id { return (key, question) }
        }
        return nil
    }
}

/// What an agent answered.
struct AgentAnswer: Hashable, Sendable {
    /// False when it answered with an error, or is gone.
    let isYes: Bool
    /// What it entered.
    var passkey: UInt32?
}
