import GattherdDBus

/// What a client can do for a person who pairs a device.
///
/// Bluetooth Core Specification, Vol 3, Part H, "IO Capabilities".
enum AgentCapability: String, Hashable, Sendable {
    case displayOnly = "DisplayOnly"
    case displayYesNo = "DisplayYesNo"
    case keyboardOnly = "KeyboardOnly"
    case noInputNoOutput = "NoInputNoOutput"
    case keyboardDisplay = "KeyboardDisplay"

    /// The word of `RegisterAgent`; nothing means a keyboard and a display.
    init?(word: String) {
        self.init(rawValue: word.isEmpty ? Self.keyboardDisplay.rawValue : word)
    }

    var hasKeyboard: Bool { self == .keyboardOnly || self == .keyboardDisplay }
    var hasDisplay: Bool { self != .keyboardOnly && self != .noInputNoOutput }
    /// Whether a person can see a number and say yes or no.
    var canConfirm: Bool { self == .displayYesNo || self == .keyboardDisplay }
}

/// An object of a client that bluetoothd asks about pairings.
struct RegisteredAgent: Hashable, Sendable {
    /// The client's unique name.
    let owner: String
    let path: String
    let capability: AgentCapability
}

/// The agents that are registered: one for each client, the first one first in line for what no client asked for.
struct AgentList: Hashable, Sendable {
    private var agents: [RegisteredAgent] = []

    var isEmpty: Bool { agents.isEmpty }

    var all: [RegisteredAgent] { agents }

    /// The agent of `owner`.
    subscript(owner: String) -> RegisteredAgent? { agents.first { $0.owner == owner } }

    /// Who is asked about a pairing that `client` wants, or that nobody wanted.
    func agent(for client: String?) -> RegisteredAgent? {
        client.flatMap { self[$0] } ?? agents.first
    }

    mutating func add(_ agent: RegisteredAgent) { agents.append(agent) }

    mutating func remove(_ owner: String) { agents.removeAll { $0.owner == owner } }

    mutating func removeAll() { agents.removeAll() }

    /// Makes the agent of `owner` the first in line.
    mutating func prefer(_ owner: String) {
        guard let agent = self[owner] else { return }
        remove(owner)
        agents.insert(agent, at: 0)
    }
}

/// A call of an agent's method that waits for its answer.
struct AgentRequest: Hashable, Sendable {
    let id: UInt64
    let agent: RegisteredAgent
    let member: String
    let arguments: [DBusValue]
}
