/// What the gateway as a whole can be asked on `bridge/request/<verb>`.
public enum BridgeRequest: Hashable, Sendable {
    /// Connect a device that was disconnected by hand.
    case connect(device: String)
    /// Disconnect a device, which stays so.
    case disconnect(device: String)
    case health
}

/// Why the gateway did not do what it was asked; for people.
public struct BridgeFailure: Error, Hashable, Sendable {
    public let detail: String

    public init(_ detail: String) {
        self.detail = detail
    }
}

extension BridgeRequest {
    /// Reads `{"device": …, "transaction": …}`, or the device's bare name.
    init(verb: String, _ payload: RequestPayload) throws(JSONError) {
        switch verb {
        case "connect": self = .connect(device: try Self.device(payload))
        case "disconnect": self = .disconnect(device: try Self.device(payload))
        case "health": self = .health
        default: throw JSONError(description: "unknown request '\(verb)'; use connect, disconnect or health")
        }
    }

    private static func device(_ payload: RequestPayload) throws(JSONError) -> String {
        guard case .string(let device) = try payload.value("device") else {
            throw JSONError(description: "name the device: {\"device\": \"…\"}")
        }
        return device
    }
}
