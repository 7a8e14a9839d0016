import Glibc

/// The address of a bus.
public struct DBusAddress: Hashable, Sendable, CustomStringConvertible {
    /// In D-Bus's own syntax, for example `unix:path=/run/dbus/system_bus_socket`.
    public let description: String

    private init(_ text: String) {
        description = text
    }

    /// A literal address.
    public static func address(_ text: String) -> DBusAddress { DBusAddress(text) }

    /// `DBUS_SYSTEM_BUS_ADDRESS`, else the usual socket.
    public static var system: DBusAddress {
        environment("DBUS_SYSTEM_BUS_ADDRESS", else: "unix:path=/run/dbus/system_bus_socket")
    }

    /// `DBUS_SESSION_BUS_ADDRESS`, else the socket in this user's run-time folder.
    public static var session: DBusAddress {
        environment("DBUS_SESSION_BUS_ADDRESS", else: "unix:path=/run/user/\(getuid())/bus")
    }

    private static func environment(_ name: String, else fallback: String) -> DBusAddress {
        guard let value = unsafe getenv(name) else { return DBusAddress(fallback) }
        let text = unsafe String(cString: value)
        return DBusAddress(text.isEmpty ? fallback : text)
    }
}
