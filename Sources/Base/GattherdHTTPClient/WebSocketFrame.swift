/// The kinds of frames, RFC 6455, section 5.2.
enum WebSocketOpcode: UInt8 {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// True for frames that may stand between the fragments of a message.
    var isControl: Bool { rawValue >= 0x8 }
}

/// A frame as a client sends it: complete and masked.
struct WebSocketFrame {
    /// The most bytes in a control frame.
    static let longestControl = 125

    let opcode: WebSocketOpcode
    let payload: [UInt8]

    /// Returns the frame's bytes; `mask` is the masking key, four bytes that nobody can predict.
    func encoded(mask: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = [0x80 | opcode.rawValue]
        bytes.reserveCapacity(payload.count + 14)
        switch payload.count {
        case ...125: bytes.append(0x80 | UInt8(truncatingIfNeeded: payload.count))
        case ...0xFFFF:
            bytes.append(0x80 | 126)
            bytes.appendBigEndian(payload.count, bytes: 2)
        default:
            bytes.append(0x80 | 127)
            bytes.appendBigEndian(payload.count, bytes: 8)
        }
        bytes += mask
        for (index, byte) in payload.enumerated() { bytes.append(byte ^ mask[index % mask.count]) }
        return bytes
    }

    /// Returns four random bytes.
    static func randomMask() -> [UInt8] {
        var mask: [UInt8] = []
        mask.appendBigEndian(Int(UInt32.random(in: 0 ... .max)), bytes: 4)
        return mask
    }
}

extension [UInt8] {
    fileprivate mutating func appendBigEndian(_ number: Int, bytes count: Int) {
        for index in (0..<count).reversed() { append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }
}

/// A message or a control frame from the server.
enum WebSocketEvent: Hashable, Sendable {
    case text([UInt8])
    case binary([UInt8])
    case ping([UInt8])
    case pong([UInt8])
    case close(code: UInt16?, reason: String)
}

/// A violation of the protocol by the server.
struct WebSocketError: Error, Hashable, Sendable {
    /// The violation, for people.
    let detail: String

    init(_ detail: String) {
        self.detail = detail
    }
}
