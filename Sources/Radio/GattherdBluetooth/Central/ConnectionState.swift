/// The state of a peripheral's connection to this program.
///
/// Two disconnected states are equal if they have the same reason; the errors are not compared.
public enum ConnectionState: Sendable {
    /// This central has no link, for this reason; `nil` if it never had one.
    ///
    /// The error is that of the failed attempt or of the lost link; `nil` after a request of this program.
    case disconnected(DisconnectReason?, error: BluetoothError? = nil)
    case connecting
    /// The link is up, and connection tasks are running.
    case connected
    /// All connection tasks are done.
    case ready
    case disconnecting

    /// True while there is a usable link.
    public var isConnected: Bool { self == .connected || self == .ready }

    /// The reason why there is no link; `nil` in other states, and before the first connect.
    public var reason: DisconnectReason? {
        if case .disconnected(let reason, _) = self { reason } else { nil }
    }

    /// The error of the failed attempt or of the lost link; `nil` in other states and after a request.
    public var error: BluetoothError? {
        if case .disconnected(_, let error) = self { error } else { nil }
    }
}

extension ConnectionState: Hashable {
    public static func == (left: ConnectionState, right: ConnectionState) -> Bool {
        switch (left, right) {
        case (.disconnected(let left, _), .disconnected(let right, _)): left == right
        case (.connecting, .connecting), (.connected, .connected), (.ready, .ready): true
        case (.disconnecting, .disconnecting): true
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(reason)
    }

    private var name: String {
        switch self {
        case .disconnected: "disconnected"
        case .connecting: "connecting"
        case .connected: "connected"
        case .ready: "ready"
        case .disconnecting: "disconnecting"
        }
    }
}

extension ConnectionState: CustomStringConvertible {
    /// A text like `ready` or `disconnected (remote)`.
    public var description: String { reason.map { "\(name) (\($0))" } ?? name }
}

/// A change of a peripheral's connection state, or the current state with which a stream of changes begins.
public struct ConnectionStateChange: Sendable {
    public let peripheral: Peripheral
    /// The state before; the same as ``state`` if ``isInitial``.
    public let previous: ConnectionState
    public let state: ConnectionState
    /// True if the central will reconnect it.
    public let willReconnect: Bool
    /// True if the central connects, or failed to connect, by itself: for ``Autoconnect`` or a kept peripheral.
    public let isAutomatic: Bool
    /// True for the current state, with which a stream begins.
    public let isInitial: Bool

    /// The reason why there is no link.
    public var reason: DisconnectReason? { state.reason }

    /// The error of the failed attempt or of the lost link.
    public var error: BluetoothError? { state.error }

    /// True if a link ended, or could not be established, without a request of this program.
    public var isUnexpectedDisconnect: Bool {
        guard let reason, !isInitial else { return false }
        return reason != .requested && reason != .detached
    }
}

extension ConnectionStateChange: CustomStringConvertible {
    public var description: String {
        let change = isInitial ? "\(peripheral): \(state)" : "\(peripheral): \(previous) -> \(state)"
        return change + (isAutomatic ? ", automatic" : "") + (willReconnect ? ", will reconnect" : "")
    }
}
