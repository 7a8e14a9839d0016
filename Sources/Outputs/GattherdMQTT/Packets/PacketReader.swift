/// A reader of MQTT's types (MQTT 5, section 1.5) in a packet's bytes.
struct PacketReader {
    /// The packet's name, for errors.
    let packet: StaticString
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>, of packet: StaticString) {
        rest = bytes
        self.packet = packet
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() throws(MQTTViolation) -> UInt8 {
        guard let byte = rest.popFirst() else { throw tooShort() }
        return byte
    }

    mutating func word() throws(MQTTViolation) -> UInt16 {
        try UInt16(byte()) << 8 | UInt16(byte())
    }

    mutating func long() throws(MQTTViolation) -> UInt32 {
        try UInt32(word()) << 16 | UInt32(word())
    }

    mutating func variableInteger() throws(MQTTViolation) -> Int {
        guard let (value, size) = try Self.variableInteger(rest, of: packet) else { throw tooShort() }
        rest = rest.dropFirst(size)
        return value
    }

    /// Reads a packet identifier, which is never 0.
    mutating func identifier() throws(MQTTViolation) -> UInt16 {
        let identifier = try word()
        guard identifier != 0 else { throw .protocolError("\(packet) has the packet identifier 0") }
        return identifier
    }

    mutating func binary() throws(MQTTViolation) -> ArraySlice<UInt8> {
        try bytes(Int(word()))
    }

    mutating func text() throws(MQTTViolation) -> String {
        let bytes = try binary()
        guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            throw .malformed("\(packet) has a text that is not UTF-8 or has a NUL")
        }
        return text
    }

    mutating func bytes(_ count: Int) throws(MQTTViolation) -> ArraySlice<UInt8> {
        guard count <= rest.count else { throw tooShort() }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// Throws unless everything has been read.
    func end() throws(MQTTViolation) {
        guard rest.isEmpty else { throw .malformed("\(packet) has \(rest.count) bytes too many") }
    }

    private func tooShort() -> MQTTViolation {
        .malformed("\(packet) ends too early")
    }

    /// The variable byte integer at the beginning of `bytes` and its size; `nil` if it is incomplete.
    ///
    /// Superfluous bytes, which MQTT 5 forbids, are accepted: MQTT 3.1.1 allows them, and they are unambiguous.
    ///
    /// - Throws: ``MQTTViolation`` if it has more than four bytes.
    static func variableInteger(
        _ bytes: ArraySlice<UInt8>,
        of packet: StaticString
    ) throws(MQTTViolation) -> (value: Int, size: Int)? {
        var value = 0
        for (index, byte) in bytes.prefix(4).enumerated() {
            value |= Int(byte & 0x7F) << (7 * index)
            if byte < 0x80 { return (value, index + 1) }
        }
        guard bytes.count < 4 else { throw .malformed("\(packet) has a length or number of more than four bytes") }
        return nil
    }
}
