import GattherdDBus

/// The input and output capability of an agent.
///
/// Bluetooth Core Specification, Vol 3, Part H, "IO Capabilities".
enum AgentCapability: String, Hashable, Sendable {
    case displayOnly = "DisplayOnly"
    case displayYesNo = "DisplayYesNo"
    case keyboardOnly = "KeyboardOnly"
    case noInputNoOutput = "NoInputNoOutput"
    case keyboardDisplay = "KeyboardDisplay"

    /// Parses the capability of `RegisterAgent`.
    ///
    /// The empty string means keyboard and display.
    init?(word: String) {
        self.init(rawValue: word.isEmpty ? Self.keyboardDisplay.rawValue : word)
    }

    var hasKeyboard: Bool { self == .keyboardOnly || self == .keyboardDisplay }
    var hasDisplay: Bool { self != .keyboardOnly && self != .noInputNoOutput }
    /// True if a person can see a number and confirm it.
    var canConfirm: Bool { self == .displayYesNo || self == .keyboardDisplay }
}

/// A client's agent object, which bluetoothd calls during pairings.
struct RegisteredAgent: Hashable, Sendable {
    /// The client's unique name.
    let owner: String
    let path: String
    let capability: AgentCapability
}

/// The registered agents, one per client.
///
/// The first one is the default agent.
struct AgentList: Hashable, Sendable {
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
