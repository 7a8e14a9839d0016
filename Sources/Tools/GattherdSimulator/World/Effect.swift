import GattherdDBus

/// A method call that waits for its answer.
struct CallToken: Hashable, Sendable {
    let id: UInt64
}

/// Our end of a notification socket.
struct SocketID: Hashable, Sendable {
    let id: UInt64
}

/// One method call as it came from the bus.
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

/// What the virtual bluetoothd wants done, in order.
enum Effect: Hashable, Sendable {
    case reply(CallToken, DBusValue?)
    case fail(CallToken, DBusError)
    /// Makes a socket pair and answers with the other end and the MTU.
    ///
    /// If it is read, what the client sends comes as events.
    case openSocket(SocketID, CallToken, mtu: UInt16, isRead: Bool)
    /// Shuts our end, so that the reader sees the end.
    case closeSocket(SocketID)
    /// Sends a notification through a socket; the record says afterwards whether it went.
    case send(SocketID, NotificationRecord)
    /// A `PropertiesChanged`.
    case changed(path: String, interface: String, [Property], invalidated: [String])
    case added(path: String, [Interface])
    case removed(path: String, [String])
    case record(TruthEvent)
    /// Calls an agent's method; the answer comes as an event.
    case ask(AgentRequest)
    /// Calls an agent's method without arguments and wants no answer.
    case tell(RegisteredAgent, String)
    /// bluetoothd is gone: its name, and whatever was asked of it and not answered.
    case stopDaemon
    case startDaemon
}
