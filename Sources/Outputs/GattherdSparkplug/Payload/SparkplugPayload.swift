/// The datatypes of Sparkplug B that this edge node uses or accepts in commands (specification, section 6.4.16).
enum SparkplugDatatype: UInt32, Hashable, Sendable, CaseIterable {
    case int8 = 1
    case int16
    case int32
    case int64
    case uint8
    case uint16
    case uint32
    case uint64
    case float
    case double
    case boolean
    case string
    case dateTime
    case text
    case doubleArray = 31
    case stringArray = 33
}

/// A Sparkplug B payload; fields that this edge node does not use are left out.
struct SparkplugPayload: Hashable, Sendable {
    /// The time of publishing, in milliseconds since 1970.
    var timestamp: UInt64?
    var metrics: [SparkplugMetric] = []
    var seq: UInt64?
}

/// A metric of a payload: its definition in a birth, or a value.
struct SparkplugMetric: Hashable, Sendable {
    /// The member of the `oneof` that carries the value.
    enum Value: Hashable, Sendable {
        /// Field 10: integers of up to 32 bits; negative ones in two's complement.
        case int(UInt32)
        /// Field 11: integers of 64 bits; negative ones in two's complement.
        case long(UInt64)
        case float(Float)
        case double(Double)
        case boolean(Bool)
        case string(String)
        case bytes([UInt8])
    }

    var name: String?
    var alias: UInt64?
    /// The time of acquisition, in milliseconds since 1970.
    var timestamp: UInt64?
    /// The number of a ``SparkplugDatatype``; commands may have any.
    var datatype: UInt32?
    var isHistorical = false
    var isNull = false
    /// The unit, in the property `engUnit`.
    var unit: String?
    var value: Value?
}

extension SparkplugPayload {
    /// The payload as protobuf.
    var encoded: [UInt8] {
        var writer = ProtobufWriter()
        writer.write(1, varint: timestamp)
        for metric in metrics { writer.write(2) { metric.encode(into: &$0) } }
        writer.write(3, varint: seq)
        return writer.bytes
    }
}

extension SparkplugMetric {
    fileprivate func encode(into writer: inout ProtobufWriter) {
        writer.write(1, name)
        writer.write(2, varint: alias)
        writer.write(3, varint: timestamp)
        writer.write(4, varint: datatype.map { UInt64($0) })
        if isHistorical { writer.write(5, varint: 1) }
        if isNull { writer.write(7, varint: 1) }
        if let unit { writer.write(9) { Self.encode(unit: unit, into: &$0) } }
        switch value {
        case nil: break
        case .int(let number): writer.write(10, varint: UInt64(number))
        case .long(let number): writer.write(11, varint: number)
        case .float(let number): writer.write(12, fixed32: number.bitPattern)
        case .double(let number): writer.write(13, fixed64: number.bitPattern)
        case .boolean(let flag): writer.write(14, varint: flag ? 1 : 0)
        case .string(let text): writer.write(15, text)
        case .bytes(let bytes): writer.write(16, bytes: bytes)
        }
    }

    /// Writes a property set with one key and one value.
    private static func encode(unit: String, into writer: inout ProtobufWriter) {
        writer.write(1, "engUnit")
        writer.write(2) { value in
            value.write(1, varint: UInt64(SparkplugDatatype.string.rawValue))
            value.write(8, unit)
        }
    }
}

extension SparkplugPayload {
    /// The maximum number of metrics of a received payload.
    static let maximumMetrics = 256

    /// Reads the payload of a command.
    ///
    /// Unknown fields are skipped; of a field that occurs twice, the last one counts. The memory is bounded by the
    /// length of `bytes` and by ``maximumMetrics``.
    ///
    /// - Throws: ``ProtobufError`` if the bytes are not a payload.
    init(decoding bytes: ArraySlice<UInt8>) throws(ProtobufError) {
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch (field.number, field.value) {
            case (1, .varint(let time)): timestamp = time
            case (2, .bytes(let body)):
                guard metrics.count < Self.maximumMetrics else { throw .tooManyMetrics }
                metrics.append(try SparkplugMetric(decoding: body))
            case (3, .varint(let number)): seq = number
            case (1...3, _): throw .wrongType(field: field.number)
            default: break
            }
        }
    }
}

extension SparkplugMetric {
    init(decoding bytes: ArraySlice<UInt8>) throws(ProtobufError) {
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch (field.number, field.value) {
            case (1, .bytes(let text)): name = try Self.text(text)
            case (2, .varint(let number)): alias = number
            case (3, .varint(let time)): timestamp = time
            case (4, .varint(let number)): datatype = UInt32(truncatingIfNeeded: number)
            case (5, .varint(let flag)): isHistorical = flag != 0
            case (7, .varint(let flag)): isNull = flag != 0
            case (10...16, _): value = try Self.value(field)
            // Data sets, templates and extensions: no metric of this edge node has such a value.
            case (17...19, .bytes): value = nil
            case (1...5, _), (7, _), (17...19, _): throw .wrongType(field: field.number)
            default: break
            }
        }
    }

    private static func value(_ field: ProtobufReader.Field) throws(ProtobufError) -> Value {
        switch (field.number, field.value) {
        case (10, .varint(let number)): .int(UInt32(truncatingIfNeeded: number))
        case (11, .varint(let number)): .long(number)
        case (12, .fixed32(let bits)): .float(Float(bitPattern: bits))
        case (13, .fixed64(let bits)): .double(Double(bitPattern: bits))
        case (14, .varint(let flag)): .boolean(flag != 0)
        case (15, .bytes(let bytes)): .string(try text(bytes))
        case (16, .bytes(let bytes)): .bytes(Array(bytes))
        default: throw .wrongType(field: field.number)
        }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) throws(ProtobufError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .invalidText }
        return text
    }
}
