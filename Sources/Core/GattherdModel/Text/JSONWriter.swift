/// A precomputed member name: quoted, escaped and followed by a colon.
public struct JSONKey: Hashable, Sendable {
    let bytes: [UInt8]

    public init(_ name: String) {
        var writer = JSONWriter()
        writer.key(name)
        bytes = writer.bytes
    }
}

/// Writes JSON into a byte buffer, without a tree or intermediate strings.
public struct JSONWriter: Sendable {
    /// The bytes written so far.
    public private(set) var bytes: [UInt8] = []
    /// True if the next element of the innermost container needs a comma.
    private var needsComma = false

    public init() {}

    /// - Parameter count: The expected number of bytes.
    public init(reserving count: Int) {
        bytes.reserveCapacity(count)
    }

    /// Removes all bytes and keeps the capacity.
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    public mutating func beginObject() { open("{") }
    public mutating func endObject() { close("}") }
    public mutating func beginArray() { open("[") }
    public mutating func endArray() { close("]") }

    /// Writes a member's name; its value must follow.
    public mutating func key(_ name: some StringProtocol) {
        separate()
        quote(name.utf8)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// Writes a member's name; its value must follow.
    public mutating func key(_ key: JSONKey) {
        separate()
        bytes.append(contentsOf: key.bytes)
        needsComma = false
    }

    public mutating func string(_ value: some StringProtocol) {
        separate()
        quote(value.utf8)
        needsComma = true
    }

    public mutating func integer(_ value: some FixedWidthInteger) {
        separate()
        writeDecimal(value)
        needsComma = true
    }

    /// Writes the shortest number that reads back as `value`; `null` if it is not finite.
    public mutating func real(_ value: Double) {
        guard value.isFinite else { return null() }
        raw(value.description.utf8)
    }

    public mutating func boolean(_ value: Bool) { raw(value ? "true".utf8 : "false".utf8) }
    public mutating func null() { raw("null".utf8) }

    /// Writes an instant as an RFC 3339 string.
    public mutating func timestamp(_ value: Timestamp) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        value.writeRFC3339(to: &bytes)
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    /// Writes a sample's value.
    public mutating func value(_ value: SampleValue) {
        switch value {
        case .integer(let number): integer(number)
        case .real(let number): real(number)
        case .boolean(let flag): boolean(flag)
        case .text(let text): string(text)
        case .null: null()
        }
    }

    /// Writes text that is JSON already.
    public mutating func raw(_ json: some Sequence<UInt8>) {
        separate()
        bytes.append(contentsOf: json)
        needsComma = true
    }

    private mutating func open(_ bracket: Unicode.Scalar) {
        separate()
        bytes.append(UInt8(ascii: bracket))
        needsComma = false
    }

    private mutating func close(_ bracket: Unicode.Scalar) {
        bytes.append(UInt8(ascii: bracket))
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    private mutating func writeDecimal(_ value: some FixedWidthInteger) {
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        let start = bytes.count
        var rest = UInt64(value.magnitude)
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    /// Writes a string; escapes quotation mark, reverse solidus and control characters (RFC 8259, section 7).
    private mutating func quote(_ utf8: some Sequence<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        for byte in utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(hexadecimalDigit(byte >> 4))
                bytes.append(hexadecimalDigit(byte & 15))
            default:
                bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private func hexadecimalDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}

extension JSONWriter {
    /// Returns the bytes that `body` writes; `count` is the expected number.
    public static func bytes(reserving count: Int = 0, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter(reserving: count)
        body(&writer)
        return writer.bytes
    }
    /// Returns the text that `body` writes.
    package static func text(_ body: (inout JSONWriter) -> Void) -> String {
        String(decoding: bytes(body), as: UTF8.self)
    }

    /// Writes an array; `write` writes each element.
    package mutating func array<Element>(
        _ elements: some Sequence<Element>,
        _ write: (inout JSONWriter, Element) -> Void
    ) {
        beginArray()
        for element in elements { write(&self, element) }
        endArray()
    }
}
