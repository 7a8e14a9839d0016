import GattherdMQTT

/// The meaning of a message that a host sent, by its topic and its payload.
enum HostMessage: Hashable, Sendable {
    /// The topic is none of a host's.
    case unrelated
    /// A message that is not carried out, with the reason.
    case invalid(String)
    /// A STATE message, which may be retained.
    case state([UInt8])
    case rebirth
    case command(SparkplugPayload, device: String)

    init(_ message: BrokerMessage, _ topics: SparkplugTopics) {
        guard let command = topics.command(message.topic) else {
            self = .unrelated
            return
        }
        guard message.length == message.payload.count else {
            self = .invalid("it has \(message.length) bytes; at most \(BrokerMessage.maximum) are read")
            return
        }
        switch command {
        case .state: self = .state(message.payload)
        case .node, .device: self = message.isRetained ? .invalid("it is retained") : Self(message.payload, of: command)
        }
    }

    private init(_ octets: [UInt8], of command: SparkplugTopics.Command) {
        do throws(ProtobufError) {
            let payload = try SparkplugPayload(decoding: octets[...])
            switch command {
            case .device(let device): self = .command(payload, device: device)
            case .node where EdgeNode.isRebirth(payload): self = .rebirth
            case .node, .state: self = .invalid("it asks for no rebirth")
            }
        } catch {
            self = .invalid(error.description)
        }
    }
}
