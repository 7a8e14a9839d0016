import CDBus
import Glibc

/// The header of a message that somebody else keeps alive.
@safe struct MessageView {
    let raw: OpaquePointer

    init(_ raw: OpaquePointer) {
        unsafe self.raw = raw
    }

    var path: String? { unsafe Self.text(dbus_message_get_path(raw)) }
    var interface: String? { unsafe Self.text(dbus_message_get_interface(raw)) }
    var member: String? { unsafe Self.text(dbus_message_get_member(raw)) }
    var sender: String? { unsafe Self.text(dbus_message_get_sender(raw)) }
    var signature: String { unsafe Self.text(dbus_message_get_signature(raw)) ?? "" }

    func arguments() throws(DBusError) -> [DBusValue] {
        unsafe try MessageReader.arguments(of: raw)
    }

    /// Compares without making a string.
    func isSignal(_ interface: String, _ member: String) -> Bool {
        unsafe dbus_message_get_type(raw) == DBUS_MESSAGE_TYPE_SIGNAL
            && Self.equals(dbus_message_get_member(raw), member)
            && Self.equals(dbus_message_get_interface(raw), interface)
    }

    /// Compares without making a string.
    func hasSignature(_ signature: String) -> Bool {
        unsafe Self.equals(dbus_message_get_signature(raw), signature)
    }

    static func equals(_ characters: UnsafePointer<CChar>?, _ expected: String) -> Bool {
        guard let characters = unsafe characters else { return false }
        return unsafe expected.withCString { unsafe strcmp(characters, $0) == 0 }
    }

    /// What an error reply says.
    var error: DBusError {
        let name = unsafe Self.text(dbus_message_get_error_name(raw)) ?? DBusError.failedName
        let first = try? arguments().first
        return DBusError(name: name, message: first?.string ?? "")
    }

    private static func text(_ characters: UnsafePointer<CChar>?) -> String? {
        unsafe characters.map { unsafe String(cString: $0) }
    }
}
