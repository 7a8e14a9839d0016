/// The reason why bytes are not a protobuf message of the expected type.
enum ProtobufError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The bytes end within a field.
    case truncated
    /// A variable-length integer of more than ten bytes.
    case longInteger
    /// A field with the number 0, or with a number beyond the limit of protobuf.
    case invalidField
    /// A wire type that proto2 does not have, or a group, which Sparkplug never uses.
    case invalidWireType(UInt8)
    /// The field has another wire type than its definition.
    case wrongType(field: UInt64)
    /// A text that is not UTF-8.
    case invalidText
    case tooManyMetrics

    var description: String {
        switch self {
        case .truncated: "the payload is cut off"
        case .longInteger: "an integer has more than ten bytes"
        case .invalidField: "a field has an invalid number"
        case .invalidWireType(let type): "a field has the wire type \(type)"
        case .wrongType(let field): "field \(field) has the wrong type"
        case .invalidText: "a text is not UTF-8"
        case .tooManyMetrics: "more than \(SparkplugPayload.maximumMetrics) metrics"
        }
    }
}

/// Reads the fields of one protobuf message; every read is checked.
struct ProtobufReader {
    enum Value: Hashable {
        case varint(UInt64)
        case fixed64(UInt64)
        case fixed32(UInt32)
        /// A text, bytes or a nested message.
        case bytes(ArraySlice<UInt8>)
    }

    struct Field: Hashable {
        let number: UInt64
        let value: Value
    }

    /// The highest field number of protobuf.
    private static let highestField: UInt64 = 1 << 29 - 1

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    /// Reads the next field; `nil` at the end.
    mutating func next() throws(ProtobufError) -> Field? {
        guard !rest.isEmpty else { return nil }
        let tag = try varint()
        let number = tag >> 3
        guard (1...Self.highestField).contains(number) else { throw .invalidField }
        return Field(number: number, value: try value(UInt8(truncatingIfNeeded: tag & 7)))
    }

    private mutating func value(_ wireType: UInt8) throws(ProtobufError) -> Value {
        switch wireType {
        case 0: .varint(try varint())
        case 1: .fixed64(try fixed(8))
        case 2: .bytes(try bytes(try varint()))
        case 5: .fixed32(UInt32(truncatingIfNeeded: try fixed(4)))
        default: throw .invalidWireType(wireType)
        }
    }

    private mutating func varint() throws(ProtobufError) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            guard let byte = rest.popFirst() else { throw .truncated }
            number |= UInt64(byte & 0x7F) &<< shift
            if byte < 0x80 { return number }
        }
        throw .longInteger
    }

    /// Reads a little-endian integer.
    private mutating func fixed(_ count: UInt64) throws(ProtobufError) -> UInt64 {
        try bytes(count).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func bytes(_ count: UInt64) throws(ProtobufError) -> ArraySlice<UInt8> {
        guard count <= UInt64(rest.count) else { throw .truncated }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }
}

/// Writes the fields of a protobuf message; `nil` writes nothing.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ field: UInt64, varint number: UInt64?) {
        guard let number else { return }
        append(field << 3)
        append(number)
    }

    mutating func write(_ field: UInt64, fixed32 bits: UInt32) {
        append(field << 3 | 5)
        for shift in stride(from: UInt32(0), to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
    }

    mutating func write(_ field: UInt64, fixed64 bits: UInt64) {
        append(field << 3 | 1)
        for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
    }

    mutating func write(_ field: UInt64, _ text: String?) {
        guard let text else { return }
        append(field << 3 | 2)
        append(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func write(_ field: UInt64, bytes body: [UInt8]) {
        append(field << 3 | 2)
        append(UInt64(body.count))
        bytes.append(contentsOf: body)
    }

    /// Writes a nested message with the fields of `body`.
    mutating func write(_ field: UInt64, _ body: (inout ProtobufWriter) -> Void) {
        var message = ProtobufWriter()
        body(&message)
        write(field, bytes: message.bytes)
    }

    private mutating func append(_ varint: UInt64) {
        var rest = varint
        while rest > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }
}
