import GattherdDBus

/// A client's agent object, which bluetoothd calls during pairings.
struct RegisteredAgent: Hashable, Sendable {
    /// The client's unique name.
    let owner: String
    let path: String
    let capability: AgentCapability
}

/// The agents that clients have registered at `AgentManager1`.
final class AgentRegistry {
    private let world: World
    private var agents = AgentList()

    init(_ world: World) {
        self.world = world
    }

    /// The agent for a pairing of `client`: its own, else the default agent.
    func agent(for client: String?) -> RegisteredAgent? { agents.agent(for: client) }

    /// True if the client has registered the agent at this path, at any path without one.
    func has(_ client: String, path: String? = nil) -> Bool {
        guard let agent = agents[client] else { return false }
        return path.map { $0 == agent.path } ?? true
    }

    func register(_ call: MethodCall, _ path: String) {
        guard agents[call.sender] == nil else { return world.effects.fail(call, .alreadyExists) }
        guard let word = call.arguments.last?.string, let capability = AgentCapability(word: word) else {
            return world.effects.fail(call, .invalidArguments)
        }
        agents.add(RegisteredAgent(owner: call.sender, path: path, capability: capability))
        updatePairable()
        world.effects.reply(call)
    }

    func makeDefault(_ call: MethodCall, _ path: String) {
        guard has(call.sender, path: path) else { return world.effects.fail(call, .doesNotExist) }
        agents.makeDefault(call.sender)
        world.effects.reply(call)
    }

    func remove(_ client: String) {
        agents.remove(client)
        updatePairable()
    }

    /// Sends `Release` to all agents, because bluetoothd ends.
    func release() {
        for agent in agents.all { world.effects.append(.notifyAgent(agent, "Release")) }
    }

    /// Removes all agents without signals.
    func removeAll() {
        agents.removeAll()
        for index in world.adapters.indices { world.adapters[index].isPairable = false }
    }

    /// Makes adapters pairable exactly while an agent is registered.
    private func updatePairable() {
        for index in world.adapters.indices where world.adapters[index].isPairable == agents.isEmpty {
            world.adapters[index].isPairable = !agents.isEmpty
            guard world.adapters[index].isPresent else { continue }
            world.signal(adapter: index, [Property("Pairable", .boolean(!agents.isEmpty))])
        }
    }
}

/// The registered agents, one per client.
///
/// The first one is the default agent.
private struct AgentList {
    private var agents: [RegisteredAgent] = []

    var isEmpty: Bool { agents.isEmpty }

    var all: [RegisteredAgent] { agents }

    /// The agent of `owner`.
    subscript(owner: String) -> RegisteredAgent? { agents.first { $0.owner == owner } }

    /// The agent for a pairing of `client`: its own, else the default agent.
    func agent(for client: String?) -> RegisteredAgent? {
        client.flatMap { self[$0] } ?? agents.first
    }

    mutating func add(_ agent: RegisteredAgent) { agents.append(agent) }

    mutating func remove(_ owner: String) { agents.removeAll { $0.owner == owner } }

    mutating func removeAll() { agents.removeAll() }

    /// Makes the agent of `owner` the default.
    mutating func makeDefault(_ owner: String) {
        guard let agent = self[owner] else { return }
        remove(owner)
        agents.insert(agent, at: 0)
    }
}
