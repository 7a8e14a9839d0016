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

/// The key generation method of a pairing.
///
/// Bluetooth Core Specification, Vol 3, Part H, "Selecting Key Generation Method".
enum SimulatedPairingMethod: Hashable, Sendable {
    case justWorks
    /// The device displays a passkey and the agent enters it.
    case agentEnters
    /// The agent displays a passkey and the device enters it.
    case agentDisplays
    /// Both sides display a number and the agent confirms it.
    case agentCompares
}

extension PeripheralSpec.Pairing {
    /// Selects the method by the capabilities of both sides.
    func method(with agent: AgentCapability) -> SimulatedPairingMethod {
        switch self {
        case .justWorks, .refused: .justWorks
        case .showsPasskey: agent.hasKeyboard ? .agentEnters : .justWorks
        case .compares: agent.canConfirm ? .agentCompares : agent.hasKeyboard ? .agentEnters : .justWorks
        case .entersPasskey: agent.hasDisplay ? .agentDisplays : .justWorks
        }
    }

    /// True if the device refuses unauthenticated pairings.
    var needsAuthentication: Bool {
        switch self {
        case .justWorks, .refused: false
        case .showsPasskey, .compares, .entersPasskey: true
        }
    }
}
