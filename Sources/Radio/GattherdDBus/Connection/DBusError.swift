/// An error with its D-Bus name.
///
/// The text is that of the other side, or ours for errors within this process.
public struct DBusError: Error, Hashable, Sendable {
    /// The D-Bus name, for example `org.freedesktop.DBus.Error.UnknownObject`.
    public let name: String
    /// The text for people.
    public let message: String

    public init(name: String, message: String) {
        self.name = name
        self.message = message
    }
}

extension DBusError: CustomStringConvertible {
    public var description: String { "\(name): \(message)" }
}

extension DBusError {
    /// The deadline passed without an answer.
    public static let timeoutName = "org.freedesktop.DBus.Error.Timeout"
    /// The connection to the bus is gone.
    public static let disconnectedName = "org.freedesktop.DBus.Error.Disconnected"
    /// The task that waited was cancelled; never on the wire.
    public static let cancelledName = "org.freedesktop.DBus.Local.Cancelled"
    /// A name, path, string or value that is not valid in D-Bus.
    public static let invalidArgumentsName = "org.freedesktop.DBus.Error.InvalidArgs"
    public static let failedName = "org.freedesktop.DBus.Error.Failed"

    /// True if the bus was there: it refused the connection, or has ended it.
    public var isFromBus: Bool {
        let refusals = ["org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.AuthFailed"]
        return name == Self.disconnectedName || refusals.contains(name)
    }

    static func invalid(_ what: String) -> DBusError {
        DBusError(name: invalidArgumentsName, message: what)
    }

    static let disconnected = DBusError(name: disconnectedName, message: "the connection to the bus was lost")
    static let cancelled = DBusError(name: cancelledName, message: "cancelled")

    static func refused(by address: String) -> DBusError {
        DBusError(
            name: disconnectedName,
            message: "the bus at \(address) hung up during the handshake: may this user connect to it?"
        )
    }

    static func timeout(_ what: String, after limit: Duration) -> DBusError {
        DBusError(name: timeoutName, message: "no answer to \(what) within \(limit)")
    }
}
