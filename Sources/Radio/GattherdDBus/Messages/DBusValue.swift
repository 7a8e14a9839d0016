import Glibc
import Synchronization

/// One D-Bus value of any type.
public indirect enum DBusValue: Hashable, Sendable {
    case byte(UInt8)
    case boolean(Bool)
    case int16(Int16)
    case uint16(UInt16)
    case int32(Int32)
    case uint32(UInt32)
    case int64(Int64)
    case uint64(UInt64)
    case double(Double)
    case string(String)
    case objectPath(String)
    case signature(String)
    case fileDescriptor(DBusDescriptor)
    /// `ay`, which is never an ``array(element:_:)``.
    case bytes([UInt8])
    /// `element` is the signature of each element.
    case array(element: String, [DBusValue])
    /// `key` and `value` are signatures.
    case dictionary(key: String, value: String, [DBusEntry])
    case structure([DBusValue])
    case variant(DBusValue)
}

/// One key and its value.
public struct DBusEntry: Hashable, Sendable {
    public let key: DBusValue
    public let value: DBusValue

    public init(_ key: DBusValue, _ value: DBusValue) {
        self.key = key
        self.value = value
    }
}

extension DBusValue {
    /// The value's type in D-Bus's notation, for example `a{sv}`.
    public var signature: String {
        switch self {
        case .byte: "y"
        case .boolean: "b"
        case .int16: "n"
        case .uint16: "q"
        case .int32: "i"
        case .uint32: "u"
        case .int64: "x"
        case .uint64: "t"
        case .double: "d"
        case .string: "s"
        case .objectPath: "o"
        case .signature: "g"
        case .fileDescriptor: "h"
        case .bytes: "ay"
        case .array(let element, _): "a" + element
        case .dictionary(let key, let value, _): "a{\(key)\(value)}"
        case .structure(let fields): "(" + fields.map(\.signature).joined() + ")"
        case .variant: "v"
        }
    }

    /// An `a{sv}` of these properties.
    public static func properties(_ properties: KeyValuePairs<String, DBusValue>) -> DBusValue {
        .dictionary(key: "s", value: "v", properties.map { DBusEntry(.string($0.key), .variant($0.value)) })
    }

    /// An `as`.
    public static func strings(_ strings: [String]) -> DBusValue {
        .array(element: "s", strings.map(DBusValue.string))
    }
}

extension DBusValue {
    /// The value inside any number of variants.
    public var unwrapped: DBusValue {
        var value = self
        while case .variant(let inner) = value { value = inner }
        return value
    }

    /// The text of a string or an object path.
    public var string: String? {
        switch unwrapped {
        case .string(let text), .objectPath(let text): text
        default: nil
        }
    }

    public var bool: Bool? {
        guard case .boolean(let value) = unwrapped else { return nil }
        return value
    }

    /// Any of the integer types, if it fits.
    public var int: Int? {
        switch unwrapped {
        case .byte(let value): Int(value)
        case .int16(let value): Int(value)
        case .uint16(let value): Int(value)
        case .int32(let value): Int(value)
        case .uint32(let value): Int(value)
        case .int64(let value): Int(value)
        case .uint64(let value): Int(exactly: value)
        default: nil
        }
    }

    /// The bytes of an `ay`.
    public var bytes: [UInt8]? {
        guard case .bytes(let bytes) = unwrapped else { return nil }
        return bytes
    }

    /// The elements of an array that is neither `ay` nor a dictionary.
    public var elements: [DBusValue]? {
        guard case .array(_, let elements) = unwrapped else { return nil }
        return elements
    }

    /// The texts of an `as` or `ao`.
    public var strings: [String]? {
        elements?.compactMap(\.string)
    }

    public var entries: [DBusEntry]? {
        guard case .dictionary(_, _, let entries) = unwrapped else { return nil }
        return entries
    }

    /// The value of a text key, out of its variant.
    public subscript(key: String) -> DBusValue? {
        entries?.first { $0.key.string == key }?.value.unwrapped
    }
}

/// A file descriptor that is passed through the bus; closed with its last reference.
public final class DBusDescriptor: Sendable {
    private let descriptor: Atomic<Int32>

    /// Takes ownership of `descriptor`.
    public init(owning descriptor: Int32) {
        self.descriptor = Atomic(descriptor)
    }

    deinit {
        let descriptor = release()
        if descriptor >= 0 { close(descriptor) }
    }

    /// The number, still owned here; -1 after ``release()``.
    public var rawValue: Int32 { descriptor.load(ordering: .relaxed) }

    /// Transfers ownership to the caller, which must close it; returns -1 the second time.
    public func release() -> Int32 {
        descriptor.exchange(-1, ordering: .relaxed)
    }
}

extension DBusDescriptor: Hashable {
    public static func == (left: DBusDescriptor, right: DBusDescriptor) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
