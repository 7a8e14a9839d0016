import CDBus

/// The checks of texts for libdbus, which ends the process on an invalid one.
enum DBusNameCheck {
    enum Kind: String {
        case busName = "bus name"
        case path = "object path"
        case interface = "interface name"
        case member = "member name"
        case errorName = "error name"
        case signature = "signature"
        case text = "text"
    }

    /// - Throws: ``DBusError`` when `text` is not a valid `kind`, or has a NUL, after which C would not read.
    static func check(_ text: String, is kind: Kind) throws(DBusError) {
        guard !text.utf8.contains(0), isValid(text, as: kind) else {
            throw .invalid("'\(text.prefix(256))' is not a valid D-Bus \(kind.rawValue)")
        }
    }

    private static func isValid(_ text: String, as kind: Kind) -> Bool {
        let answer =
            switch kind {
            case .busName: unsafe dbus_validate_bus_name(text, nil)
            case .path: unsafe dbus_validate_path(text, nil)
            case .interface: unsafe dbus_validate_interface(text, nil)
            case .member: unsafe dbus_validate_member(text, nil)
            case .errorName: unsafe dbus_validate_error_name(text, nil)
            case .signature: unsafe dbus_signature_validate(text, nil)
            case .text: unsafe dbus_validate_utf8(text, nil)
            }
        return answer != 0
    }

    /// - Throws: ``DBusError`` when `signature` is not exactly one complete type.
    static func checkSingleType(_ signature: String) throws(DBusError) {
        guard !signature.utf8.contains(0), unsafe dbus_signature_validate_single(signature, nil) != 0 else {
            throw .invalid("'\(signature.prefix(256))' is not one complete D-Bus type")
        }
    }
}
