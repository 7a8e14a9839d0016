import CDBus

/// Writes values that were checked before: libdbus ends the process on wrong ones, and cannot discard half a message.
@safe struct MessageWriter {
    /// The deepest nesting of containers that the wire allows.
    static let depthLimit = 64
    /// The maximum size in bytes: more than the bus forwards, and about half of that at which libdbus ends the process.
    static let sizeLimit = 32 << 20

    private let values: [DBusValue]
    /// The file descriptors among the values, in order.
    let descriptors: [DBusDescriptor]

    /// - Throws: ``DBusError`` when one of `values` is not valid in D-Bus: a NUL in a text, an element that is
    ///   not of its array's type, too much nesting, too many bytes.
    init(checking values: [DBusValue]) throws(DBusError) {
        var check = ValueCheck()
        for value in values { try check.check(value, depth: 0) }
        try DBusNameCheck.check(check.signature(of: values), is: .signature)
        self.values = values
        descriptors = check.descriptors
    }

    mutating func write(to message: OpaquePointer) {
        var iterator = unsafe DBusMessageIter()
        unsafe dbus_message_iter_init_append(message, &iterator)
        for value in values { unsafe Self.append(value, to: &iterator) }
    }

    private static func append(_ value: DBusValue, to iterator: inout DBusMessageIter) {
        switch value {
        case .byte(let value): unsafe append(value, TypeCode.byte, to: &iterator)
        case .boolean(let value): unsafe append(dbus_bool_t(value ? 1 : 0), TypeCode.boolean, to: &iterator)
        case .int16(let value): unsafe append(value, TypeCode.int16, to: &iterator)
        case .uint16(let value): unsafe append(value, TypeCode.uint16, to: &iterator)
        case .int32(let value): unsafe append(value, TypeCode.int32, to: &iterator)
        case .uint32(let value): unsafe append(value, TypeCode.uint32, to: &iterator)
        case .int64(let value): unsafe append(value, TypeCode.int64, to: &iterator)
        case .uint64(let value): unsafe append(value, TypeCode.uint64, to: &iterator)
        case .double(let value): unsafe append(value, TypeCode.double, to: &iterator)
        case .string(let text): unsafe append(text, TypeCode.string, to: &iterator)
        case .objectPath(let text): unsafe append(text, TypeCode.objectPath, to: &iterator)
        case .signature(let text): unsafe append(text, TypeCode.signature, to: &iterator)
        case .fileDescriptor(let owner): unsafe append(owner.rawValue, TypeCode.fileDescriptor, to: &iterator)
        default: unsafe appendContainer(value, to: &iterator)
        }
    }

    private static func appendContainer(_ value: DBusValue, to iterator: inout DBusMessageIter) {
        switch value {
        case .bytes(let bytes):
            unsafe open(TypeCode.array, "y", in: &iterator) { unsafe append(bytes, to: &$0) }
        case .array(let element, let values):
            unsafe open(TypeCode.array, element, in: &iterator) { inner in
                for value in values { unsafe append(value, to: &inner) }
            }
        case .dictionary(let key, let value, let entries):
            unsafe open(TypeCode.array, "{\(key)\(value)}", in: &iterator) { inner in
                for entry in entries { unsafe append(entry, to: &inner) }
            }
        case .structure(let fields):
            unsafe open(TypeCode.structure, nil, in: &iterator) { inner in
                for field in fields { unsafe append(field, to: &inner) }
            }
        case .variant(let value):
            unsafe open(TypeCode.variant, value.signature, in: &iterator) { unsafe append(value, to: &$0) }
        default: break
        }
    }

    private static func append(_ entry: DBusEntry, to iterator: inout DBusMessageIter) {
        unsafe open(TypeCode.dictEntry, nil, in: &iterator) { inner in
            unsafe append(entry.key, to: &inner)
            unsafe append(entry.value, to: &inner)
        }
    }

    private static func open(
        _ type: Int32,
        _ signature: String?,
        in outer: inout DBusMessageIter,
        _ body: (inout DBusMessageIter) -> Void
    ) {
        var inner = unsafe DBusMessageIter()
        unsafe need(dbus_message_iter_open_container(&outer, type, signature, &inner))
        unsafe body(&inner)
        unsafe need(dbus_message_iter_close_container(&outer, &inner))
    }

    private static func append<Basic: BitwiseCopyable>(
        _ value: Basic,
        _ type: Int32,
        to iterator: inout DBusMessageIter
    ) {
        var value = value
        unsafe need(dbus_message_iter_append_basic(&iterator, type, &value))
    }

    private static func append(_ text: String, _ type: Int32, to iterator: inout DBusMessageIter) {
        unsafe text.withCString { characters in
            var characters: UnsafePointer<CChar>? = unsafe characters
            unsafe need(dbus_message_iter_append_basic(&iterator, type, &characters))
        }
    }

    private static func append(_ bytes: [UInt8], to iterator: inout DBusMessageIter) {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            unsafe need(
                dbus_message_iter_append_fixed_array(&iterator, TypeCode.byte, &start, Int32(buffer.count))
            )
        }
    }

    /// libdbus refuses checked values only when memory is exhausted, which no Swift program outlives either.
    private static func need(_ success: dbus_bool_t) {
        precondition(success != 0, "no memory for a D-Bus message")
    }
}

/// D-Bus's type codes, which libdbus has as macros that Swift cannot import.
enum TypeCode {
    static let byte = code("y")
    static let boolean = code("b")
    static let int16 = code("n")
    static let uint16 = code("q")
    static let int32 = code("i")
    static let uint32 = code("u")
    static let int64 = code("x")
    static let uint64 = code("t")
    static let double = code("d")
    static let string = code("s")
    static let objectPath = code("o")
    static let signature = code("g")
    static let fileDescriptor = code("h")
    static let array = code("a")
    static let variant = code("v")
    static let structure = code("r")
    static let dictEntry = code("e")

    private static func code(_ letter: Unicode.Scalar) -> Int32 { Int32(UInt8(ascii: letter)) }
}
