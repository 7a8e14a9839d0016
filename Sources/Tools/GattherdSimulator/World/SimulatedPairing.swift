/// A pairing that is under way.
struct SimulatedPairing: Hashable, Sendable {
    let id: UInt64
    /// The `Pair` that is answered at the end, if one is.
    let call: CallToken?
    /// Who wants it; absent when a request needed encryption.
    let client: String?
    /// What an agent was asked and has not answered.
    var question: AgentRequest?
}

/// How the two sides make sure of each other.
///
/// Bluetooth Core Specification, Vol 3, Part H, "Selecting Key Generation Method".
enum SimulatedPairingMethod: Hashable, Sendable {
    case justWorks
    /// The device shows a passkey, the agent enters it.
    case agentEnters
    /// The agent shows a passkey, the device enters it.
    case agentDisplays
    /// Both show a number, the agent compares.
    case agentCompares
}

extension PeripheralSpec.Pairing {
    /// What comes of the two sides' capabilities.
    func method(with agent: AgentCapability) -> SimulatedPairingMethod {
        switch self {
        case .justWorks, .refused: .justWorks
        case .showsPasskey: agent.hasKeyboard ? .agentEnters : .justWorks
        case .compares: agent.canConfirm ? .agentCompares : agent.hasKeyboard ? .agentEnters : .justWorks
        case .entersPasskey: agent.hasDisplay ? .agentDisplays : .justWorks
        }
    }

    /// Whether it wants no pairing in which nobody has made sure of the other side.
    var needsAuthentication: Bool {
        switch self {
        case .justWorks, .refused: false
        case .showsPasskey, .compares, .entersPasskey: true
        }
    }
}
