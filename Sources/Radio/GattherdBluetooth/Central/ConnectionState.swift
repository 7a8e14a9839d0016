/// The state of a peripheral's connection to this program.
public enum ConnectionState: Hashable, Sendable {
    /// No link of ours; `nil` when there never was one.
    case disconnected(DisconnectReason?)
    case connecting
    /// The link is up; connection tasks are under way.
    case connected
    /// All connection tasks are done.
    case ready
    case disconnecting

    /// True while there is a link that can be used.
    public var isConnected: Bool { self == .connected || self == .ready }
}

extension ConnectionState: CustomStringConvertible {
    /// For people: `ready`, `disconnected (remote)`, for example.
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

/// A peripheral's connection has become another.
public struct ConnectionStateChange: Sendable {
    public let peripheral: Peripheral
    public let previous: ConnectionState
    public let state: ConnectionState
    /// True if the central will reconnect it.
    public let willReconnect: Bool

    /// Why there is no link any more.
    public var reason: DisconnectReason? {
        guard case .disconnected(let reason) = state else { return nil }
        return reason
    }

    /// True when a link ended, or could not be made, without this program's asking for it.
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
