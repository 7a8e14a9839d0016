import CDBus

/// One private libdbus connection, closed and given back when it goes away.
///
/// `@unchecked Sendable` is safe: libdbus locks its connections itself; the order of calls is kept by
/// ``ConnectionCore``, which uses it on one thread.
@safe final class ConnectionHandle: @unchecked Sendable {
    let raw: OpaquePointer

    /// Connects the socket, which blocks; the handshake follows when the connection is driven.
    init(address: String) throws(DBusError) {
        try Name.check(address, is: .text)
        var error = unsafe CDBus.DBusError()
        unsafe dbus_error_init(&error)
        defer { unsafe dbus_error_free(&error) }
        guard let raw = unsafe dbus_connection_open_private(address, &error) else {
            throw unsafe Self.reason(error, address)
        }
        unsafe dbus_connection_set_exit_on_disconnect(raw, 0)
        unsafe self.raw = raw
    }

    deinit {
        unsafe dbus_connection_close(raw)
        unsafe dbus_connection_unref(raw)
    }

    private static func reason(_ error: CDBus.DBusError, _ address: String) -> DBusError {
        let name = unsafe error.name.map { unsafe String(cString: $0) } ?? DBusError.failedName
        let text = unsafe error.message.map { unsafe String(cString: $0) } ?? "unknown reason"
        return DBusError(name: name, message: "cannot connect to the bus at \(address): \(text)")
    }
}
