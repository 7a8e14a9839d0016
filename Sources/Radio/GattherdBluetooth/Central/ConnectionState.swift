/// The state of a peripheral's connection to this program.
public enum ConnectionState: Hashable, Sendable {
    /// There is no link of this central, for this reason; `nil` if there never was one.
    case disconnected(DisconnectReason?)
    case connecting
    /// The link is up, and connection tasks are running.
    case connected
    /// All connection tasks are done.
    case ready
    case disconnecting

    /// True while there is a usable link.
    public var isConnected: Bool { self == .connected || self == .ready }
}

extension ConnectionState: CustomStringConvertible {
    /// A text like `ready` or `disconnected (remote)`.
    public var description: String {
        switch self {
        case .disconnected(nil): "disconnected"
        case .disconnected(let reason?): "disconnected (\(reason))"
        case .connecting: "connecting"
        case .connected: "connected"
        case .ready: "ready"
        case .disconnecting: "disconnecting"
        }
    }
}

/// A change of a peripheral's connection state.
public struct ConnectionStateChange: Sendable {
    public let peripheral: Peripheral
    public let previous: ConnectionState
    public let state: ConnectionState
    /// True if the central will reconnect it.
    public let willReconnect: Bool

    /// The reason of the link's end.
    public var reason: DisconnectReason? {
        guard case .disconnected(let reason) = state else { return nil }
        return reason
    }

    /// True if a link ended, or could not be established, without a request of this program.
    public var isUnexpectedDisconnect: Bool {
        guard let reason else { return false }
        return reason != .requested && reason != .detached
    }
}

extension ConnectionStateChange: CustomStringConvertible {
    public var description: String {
        "\(peripheral): \(previous) -> \(state)\(willReconnect ? ", will reconnect" : "")"
    }
}
