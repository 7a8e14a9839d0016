/// A check of values for everything that libdbus or the bus does not accept.
struct ValueCheck {
    private var size = 0
    /// The file descriptors that were found.
    private(set) var descriptors: [DBusDescriptor] = []

    func signature(of values: [DBusValue]) -> String {
        values.map(\.signature).joined()
    }

    /// - Throws: ``DBusError`` that says what is wrong with `value`, which stands inside `depth` containers.
    mutating func check(_ value: DBusValue, depth: Int) throws(DBusError) {
        switch value {
        case .string(let text): try check(text, is: .text)
        case .objectPath(let text): try check(text, is: .path)
        case .signature(let text): try check(text, is: .signature)
        case .fileDescriptor(let owner):
            guard owner.rawValue >= 0 else { throw .invalid("the file descriptor was given away before") }
            descriptors.append(owner)
            try count(4)
        case .bytes(let octets): try count(octets.count)
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

    private mutating func count(_ octets: Int) throws(DBusError) {
        size += octets
        guard size <= MessageWriter.sizeLimit else { throw .invalid("more than 32 MiB in one message") }
    }
}
