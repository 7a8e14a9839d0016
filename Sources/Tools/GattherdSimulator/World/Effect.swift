import GattherdDBus
import GattherdGATT

/// Identifies a method call that waits for its reply.
struct CallToken: Hashable, Sendable {
    let id: UInt64
}

/// Identifies bluetoothd's end of an acquired socket.
struct SocketID: Hashable, Sendable {
    let id: UInt64
}

/// One method call from the bus.
struct MethodCall: Hashable, Sendable {
    let token: CallToken
    /// The caller's unique name.
    let sender: String
    let path: String
    let interface: String
    let member: String
    var arguments: [DBusValue] = []
}

/// One property of an object and its value.
struct Property: Hashable, Sendable {
    let name: String
    let value: DBusValue

    init(_ name: String, _ value: DBusValue) {
        self.name = name
        self.value = value
    }
}

/// One interface of an object with its properties.
struct Interface: Hashable, Sendable {
    let name: String
    let properties: [Property]

    init(_ name: String, _ properties: [Property] = []) {
        self.name = name
        self.properties = properties
    }
}

/// An output of ``VirtualBlueZ``.
enum Effect: Hashable, Sendable {
    case reply(CallToken, DBusValue?)
    case fail(CallToken, DBusError)
    /// Creates a socket pair and replies with the other end and the MTU.
    ///
    /// If `isRead`, the client's packets become events.
    case openSocket(SocketID, CallToken, mtu: UInt16, isRead: Bool)
    /// Closes bluetoothd's end of a socket.
    case closeSocket(SocketID)
    /// Sends a notification through a socket and records whether it was delivered.
    case send(SocketID, NotificationRecord)
    /// Signals `PropertiesChanged`.
    case changed(path: String, interface: String, [Property], invalidated: [String])
    case added(path: String, [Interface])
    case removed(path: String, [String])
    case record(TruthEvent)
    /// Calls an agent's method. The reply becomes an event.
    case ask(AgentRequest)
    /// Calls an agent's method without arguments and without a reply.
    case notifyAgent(RegisteredAgent, String)
    /// Releases the bus name and drops all unanswered calls.
    case stopDaemon
    case startDaemon
}

/// An event at a peripheral.
///
/// Tests compare these events with the results of clients.
enum TruthEvent: Hashable, Sendable {
    enum DisconnectReason: String, Hashable, Sendable {
        /// Ended by the peripheral.
        case remote
        /// Ended by a client.
        case local
        /// Lost radio contact.
        case timeout
        /// Ended after an unanswered request.
        case unanswered
        /// Ended because a client set `Blocked`.
        case blocked
        /// Ended because keys did not match or a pairing failed.
        case authentication
        case powerOff = "power-off"
        case unplugged
        /// Ended with bluetoothd.
        case daemon
    }

    case notification(NotificationRecord)
    case write(BluetoothAddress, BluetoothUUID, [UInt8], error: UInt8?)
    case subscribed(BluetoothAddress, BluetoothUUID, Bool)
    case connected(BluetoothAddress, adapter: String)
    case disconnected(BluetoothAddress, DisconnectReason)
    /// A client crashed bluetoothd.
    case crashed
}

/// A sent notification.
struct NotificationRecord: Hashable, Sendable {
    let address: BluetoothAddress
    let characteristic: BluetoothUUID
    /// The number of the characteristic's earlier notifications.
    let number: UInt64
    let payload: [UInt8]
    /// True if a subscriber could receive it.
    var isDelivered: Bool
}
