import CDBus

/// A check of values for everything that libdbus or the bus does not accept.
struct ValueCheck {
    private var size = 0
    /// The file descriptors that were found.
    private(set) var descriptors: [DBusDescriptor] = []

    func signature(of values: [DBusValue]) -> String {
        values.map(\.signature).joined()
    }

    /// - Throws: ``DBusError`` with the fault of `value`, which is inside `depth` containers.
    mutating func check(_ value: DBusValue, depth: Int) throws(DBusError) {
        switch value {
        case .string(let text): try check(text, is: .text)
        case .objectPath(let text): try check(text, is: .path)
        case .signature(let text): try check(text, is: .signature)
        case .fileDescriptor(let owner):
            guard owner.rawValue >= 0 else { throw .invalid("the file descriptor was sent before") }
            descriptors.append(owner)
            try count(4)
        case .bytes(let bytes): try count(bytes.count)
        case .array, .dictionary, .structure, .variant: try checkContainer(value, depth: depth + 1)
        default: try count(8)
        }
    }

    private mutating func checkContainer(_ value: DBusValue, depth: Int) throws(DBusError) {
        guard depth <= MessageWriter.depthLimit else { throw .invalid("containers are nested too deeply") }
        switch value {
        case .array(let element, let values):
            try DBusNameCheck.checkSingleType(element)
            for value in values { try check(value, is: element, depth: depth) }
        case .dictionary(let key, let value, let entries):
            try DBusNameCheck.checkSingleType("a{\(key)\(value)}")
            for entry in entries {
                try check(entry.key, is: key, depth: depth + 1)
                try check(entry.value, is: value, depth: depth + 1)
            }
        case .structure(let fields):
            guard !fields.isEmpty else { throw .invalid("a structure has no field") }
            for field in fields { try check(field, depth: depth) }
        case .variant(let inner):
            try check(inner, depth: depth)
            try DBusNameCheck.checkSingleType(inner.signature)
        default: break
        }
    }

    private mutating func check(_ value: DBusValue, is signature: String, depth: Int) throws(DBusError) {
        try check(value, depth: depth)
        guard value.signature == signature else {
            throw .invalid("an element is of type '\(value.signature)' instead of '\(signature)'")
        }
    }

    private mutating func check(_ text: String, is kind: DBusNameCheck.Kind) throws(DBusError) {
        try DBusNameCheck.check(text, is: kind)
        try count(text.utf8.count)
    }

    private mutating func count(_ bytes: Int) throws(DBusError) {
        size += bytes
        guard size <= MessageWriter.sizeLimit else { throw .invalid("more than 32 MiB in one message") }
    }
}

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
