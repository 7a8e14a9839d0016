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
