/// The header of a received message; texts are ranges of the message.
///
/// D-Bus specification, "Message Format".
struct MessageHeader {
    enum Kind: UInt8 {
        case call = 1
        case reply, error, signal
    }

    /// The size of the header before its fields, in bytes.
    static let fixedSize = 16
    /// The longest message that the specification allows, in bytes.
    static let sizeLimit = 128 << 20

    /// True if the byte order is not this machine's.
    let isSwapped: Bool
    /// The kind of message; `nil` for kinds of later versions of D-Bus.
    let kind: Kind?
    let expectsReply: Bool
    let serial: UInt32
    let body: Range<Int>
    private(set) var replySerial: UInt32 = 0
    private(set) var descriptorCount: UInt32 = 0
    private(set) var path = MessageReader.Place.nowhere
    private(set) var interface = MessageReader.Place.nowhere
    private(set) var member = MessageReader.Place.nowhere
    private(set) var errorName = MessageReader.Place.nowhere
    private(set) var sender = MessageReader.Place.nowhere
    private(set) var signature = MessageReader.Place.nowhere

    /// - Parameter bytes: A complete message.
    /// - Throws: ``DBusError`` if `bytes` is not a message.
    init(_ bytes: UnsafeRawBufferPointer) throws(DBusError) {
        isSwapped = try unsafe Self.isSwapped(bytes)
        var reader = unsafe MessageReader(bytes, 1..<bytes.count, isSwapped: isSwapped)
        kind = Kind(rawValue: try reader.number())
        let flags: UInt8 = try reader.number()
        expectsReply = flags & 1 == 0
        reader = unsafe MessageReader(bytes, 8..<bytes.count, isSwapped: isSwapped)
        serial = try reader.number()
        let fields = try reader.array(alignedTo: 8)
        let end = Int(fields.start) + Int(fields.count)
        body = min((end + 7) & ~7, bytes.count)..<bytes.count
        while reader.position < end { try readField(&reader) }
    }

    /// A field of another type than the specification's is passed over, as an unknown one is.
    private mutating func readField(_ reader: inout MessageReader) throws(DBusError) {
        try reader.align(to: 8)
        let code: UInt8 = try reader.number()
        let type = try reader.signature()
        switch (code, reader.letter(type)) {
        case (1, UInt8(ascii: "o")): path = try reader.text()
        case (2, UInt8(ascii: "s")): interface = try reader.text()
        case (3, UInt8(ascii: "s")): member = try reader.text()
        case (4, UInt8(ascii: "s")): errorName = try reader.text()
        case (5, UInt8(ascii: "u")): replySerial = try reader.number()
        case (7, UInt8(ascii: "s")): sender = try reader.text()
        case (8, UInt8(ascii: "g")): signature = try reader.signature()
        case (9, UInt8(ascii: "u")): descriptorCount = try reader.number()
        default: _ = try reader.values(reader[type][...])
        }
    }

    /// The length of the message that begins with `bytes`, which has at least ``fixedSize`` bytes.
    ///
    /// - Throws: ``DBusError`` if `bytes` is not a message.
    static func messageLength(_ bytes: UnsafeRawBufferPointer) throws(DBusError) -> Int {
        let isSwapped = try unsafe isSwapped(bytes)
        var reader = unsafe MessageReader(bytes, 4..<bytes.count, isSwapped: isSwapped)
        let bodyLength: UInt32 = try reader.number()
        reader = unsafe MessageReader(bytes, 12..<bytes.count, isSwapped: isSwapped)
        let fieldsLength: UInt32 = try reader.number()
        let length = fixedSize + (Int(fieldsLength) + 7) & ~7 + Int(bodyLength)
        guard length <= sizeLimit else { throw .invalid("a message of \(length) bytes is too long") }
        return length
    }

    /// Checks D-Bus's version; returns true if the byte order is not this machine's.
    private static func isSwapped(_ bytes: UnsafeRawBufferPointer) throws(DBusError) -> Bool {
        guard bytes.count >= fixedSize, unsafe bytes[3] == 1 else { throw .invalid("no D-Bus message") }
        let littleEndian = 1.littleEndian == 1
        switch unsafe bytes[0] {
        case UInt8(ascii: "l"): return !littleEndian
        case UInt8(ascii: "B"): return littleEndian
        default: throw .invalid("no D-Bus message")
        }
    }
}
