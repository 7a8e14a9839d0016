import CDBus

/// Reads a received message, whose form libdbus has checked when it arrived.
enum MessageReader {
    /// All arguments.
    ///
    /// - Throws: ``DBusError`` for what this process cannot hold: no descriptor left, an unknown type.
    static func arguments(of message: OpaquePointer) throws(DBusError) -> [DBusValue] {
        var iterator = unsafe DBusMessageIter()
        guard unsafe dbus_message_iter_init(message, &iterator) != 0 else { return [] }
        return unsafe try values(&iterator, depth: 0)
    }

    /// Everything from where `iterator` stands to its end.
    private static func values(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) -> [DBusValue] {
        guard depth <= MessageWriter.depthLimit else { throw .invalid("containers are nested too deeply") }
        var values: [DBusValue] = []
        while unsafe dbus_message_iter_get_arg_type(&iterator) != TypeCode.invalid {
            values.append(unsafe try value(&iterator, depth: depth))
            unsafe dbus_message_iter_next(&iterator)
        }
        return values
    }

    private static func value(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) -> DBusValue {
        let type = unsafe dbus_message_iter_get_arg_type(&iterator)
        return switch type {
        case TypeCode.byte: .byte(unsafe basic(&iterator, 0))
        case TypeCode.boolean: .boolean(unsafe basic(&iterator, dbus_bool_t(0)) != 0)
        case TypeCode.int16: .int16(unsafe basic(&iterator, 0))
        case TypeCode.uint16: .uint16(unsafe basic(&iterator, 0))
        case TypeCode.int32: .int32(unsafe basic(&iterator, 0))
        case TypeCode.uint32: .uint32(unsafe basic(&iterator, 0))
        case TypeCode.int64: .int64(unsafe basic(&iterator, 0))
        case TypeCode.uint64: .uint64(unsafe basic(&iterator, 0))
        case TypeCode.double: .double(unsafe basic(&iterator, 0))
        case TypeCode.string: .string(unsafe text(&iterator))
        case TypeCode.objectPath: .objectPath(unsafe text(&iterator))
        case TypeCode.signature: .signature(unsafe text(&iterator))
        case TypeCode.fileDescriptor: .fileDescriptor(unsafe try descriptor(&iterator))
        default: unsafe try container(type, &iterator, depth: depth + 1)
        }
    }

    private static func container(
        _ type: Int32,
        _ iterator: inout DBusMessageIter,
        depth: Int
    ) throws(DBusError) -> DBusValue {
        var inner = unsafe DBusMessageIter()
        switch type {
        case TypeCode.array: return unsafe try array(&iterator, depth: depth)
        case TypeCode.structure:
            unsafe dbus_message_iter_recurse(&iterator, &inner)
            return .structure(unsafe try values(&inner, depth: depth))
        case TypeCode.variant:
            unsafe dbus_message_iter_recurse(&iterator, &inner)
            guard depth <= MessageWriter.depthLimit else { throw .invalid("containers are nested too deeply") }
            return .variant(unsafe try value(&inner, depth: depth))
        default: throw .invalid("type \(type) is unknown")
        }
    }

    private static func array(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) -> DBusValue {
        let element = unsafe dbus_message_iter_get_element_type(&iterator)
        var inner = unsafe DBusMessageIter()
        unsafe dbus_message_iter_recurse(&iterator, &inner)
        if element == TypeCode.byte { return .bytes(unsafe Array(octets(&inner))) }
        let signature = unsafe elementSignature(&iterator)
        guard element == TypeCode.dictEntry else {
            return .array(element: signature, unsafe try values(&inner, depth: depth))
        }
        return .dictionary(
            key: String(signature.dropFirst().prefix(1)),
            value: String(signature.dropFirst(2).dropLast()),
            unsafe try entries(&inner, depth: depth + 1)
        )
    }

    private static func entries(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) -> [DBusEntry] {
        var entries: [DBusEntry] = []
        while unsafe dbus_message_iter_get_arg_type(&iterator) == TypeCode.dictEntry {
            var inner = unsafe DBusMessageIter()
            unsafe dbus_message_iter_recurse(&iterator, &inner)
            let key = unsafe try value(&inner, depth: depth)
            unsafe dbus_message_iter_next(&inner)
            entries.append(DBusEntry(key, unsafe try value(&inner, depth: depth)))
            unsafe dbus_message_iter_next(&iterator)
        }
        return entries
    }

    /// The octets of an `ay` that `inner` has been recursed into; they live in the message.
    static func octets(_ inner: inout DBusMessageIter) -> UnsafeBufferPointer<UInt8> {
        var start: UnsafePointer<UInt8>?
        var count: Int32 = 0
        unsafe dbus_message_iter_get_fixed_array(&inner, &start, &count)
        return unsafe UnsafeBufferPointer(start: start, count: start == nil ? 0 : Int(count))
    }

    /// `iterator` stands on an array: the signature without its leading `a`.
    private static func elementSignature(_ iterator: inout DBusMessageIter) -> String {
        guard let whole = unsafe dbus_message_iter_get_signature(&iterator) else { return "" }
        defer { unsafe dbus_free(whole) }
        return unsafe String(cString: whole + 1)
    }

    private static func basic<Basic: BitwiseCopyable>(_ iterator: inout DBusMessageIter, _ initial: Basic) -> Basic {
        var value = initial
        unsafe dbus_message_iter_get_basic(&iterator, &value)
        return value
    }

    private static func text(_ iterator: inout DBusMessageIter) -> String {
        var characters: UnsafePointer<CChar>?
        unsafe dbus_message_iter_get_basic(&iterator, &characters)
        return unsafe characters.map { unsafe String(cString: $0) } ?? ""
    }

    private static func descriptor(_ iterator: inout DBusMessageIter) throws(DBusError) -> DBusDescriptor {
        let number = unsafe basic(&iterator, Int32(-1))
        guard number >= 0 else {
            throw DBusError(name: DBusError.failedName, message: "no file descriptor left for one from the bus")
        }
        return DBusDescriptor(owning: number)
    }
}
