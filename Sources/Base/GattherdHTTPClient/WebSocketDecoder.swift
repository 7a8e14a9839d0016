/// Decodes what a server sends after the handshake: frames, and messages in fragments.
///
/// Pure: bytes go in, events come out. Memory is bounded by the limit of a message and by one appended chunk.
struct WebSocketDecoder {
    private struct Header {
        let opcode: WebSocketOpcode
        let isFinal: Bool
        let length: Int
        /// The bytes of the header itself.
        let size: Int
    }

    /// The most bytes of a message.
    private let maximum: Int
    /// The bytes that are not decoded yet, from `start` on.
    private var buffer: [UInt8] = []
    private var start = 0
    /// The kind of the message whose fragments arrive.
    private var kind: WebSocketOpcode?
    private var message: [UInt8] = []
    private var isClosed = false

    init(maximum: Int) {
        self.maximum = maximum
    }

    mutating func append(_ bytes: some Collection<UInt8>) {
        buffer.removeFirst(start)
        start = 0
        buffer += bytes
    }

    /// Returns the next event; `nil` until more bytes arrive.
    ///
    /// Nothing follows the event `close`.
    ///
    /// - Throws: ``WebSocketError``; the connection is of no further use then.
    mutating func next() throws(WebSocketError) -> WebSocketEvent? {
        while !isClosed, let header = try header() {
            guard buffer.count - start - header.size >= header.length else { return nil }
            let first = start + header.size
            let payload = buffer[first..<(first + header.length)]
            start = first + header.length
            if header.opcode.isControl { return try control(header.opcode, Array(payload)) }
            message += payload
            if let event = try finished(header) { return event }
        }
        return nil
    }

    /// Reads the header of the next frame; `nil` if it is not complete.
    private func header() throws(WebSocketError) -> Header? {
        guard buffer.count - start >= 2 else { return nil }
        let (first, second) = (buffer[start], buffer[start + 1])
        guard first & 0x70 == 0 else { throw WebSocketError("a frame uses an extension that was not agreed on") }
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
            throw WebSocketError("a frame has the unknown opcode \(first & 0x0F)")
        }
        guard second & 0x80 == 0 else { throw WebSocketError("a frame of the server is masked") }
        let isFinal = first & 0x80 != 0
        if opcode.isControl, !isFinal || second > WebSocketFrame.longestControl {
            throw WebSocketError("a control frame is fragmented or too long")
        }
        if !opcode.isControl, (opcode == .continuation) == (kind == nil) {
            throw WebSocketError("the fragments of messages are out of order")
        }
        guard let (length, size) = try length(second) else { return nil }
        guard opcode.isControl || length <= maximum - message.count else {
            throw WebSocketError("a message is longer than \(maximum) bytes")
        }
        return Header(opcode: opcode, isFinal: isFinal, length: length, size: size)
    }

    /// Reads the length of a payload, with the size of the header.
    private func length(_ short: UInt8) throws(WebSocketError) -> (length: Int, size: Int)? {
        guard short >= 126 else { return (Int(short), 2) }
        let count = short == 126 ? 2 : 8
        guard buffer.count - start >= 2 + count else { return nil }
        let number = buffer[(start + 2)..<(start + 2 + count)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard number > (short == 126 ? 125 : 0xFFFF), let length = Int(exactly: number) else {
            throw WebSocketError("the length of a frame is malformed")
        }
        return (length, 2 + count)
    }

    /// Records a data frame; returns the message if it is complete.
    private mutating func finished(_ header: Header) throws(WebSocketError) -> WebSocketEvent? {
        let kind = self.kind ?? header.opcode
        guard header.isFinal else {
            self.kind = kind
            return nil
        }
        defer { (self.kind, message) = (nil, []) }
        guard kind == .text else { return .binary(message) }
        guard message.isUTF8 else { throw WebSocketError("a text is not UTF-8") }
        return .text(message)
    }

    private mutating func control(
        _ opcode: WebSocketOpcode,
        _ payload: [UInt8]
    ) throws(WebSocketError) -> WebSocketEvent {
        switch opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        default:
            isClosed = true
            return try close(payload)
        }
    }

    /// Reads a close frame: nothing, or a code and a text.
    private func close(_ payload: [UInt8]) throws(WebSocketError) -> WebSocketEvent {
        guard let high = payload.first else { return .close(code: nil, reason: "") }
        guard payload.count >= 2 else { throw WebSocketError("a close frame is malformed") }
        let code = UInt16(high) << 8 | UInt16(payload[1])
        // 1004 to 1006 and 1015 never appear on the wire (section 7.4.1).
        let isAllowed = (1000...1014).contains(code) && !(1004...1006).contains(code) || (3000...4999).contains(code)
        guard isAllowed, let reason = String(validating: payload[2...], as: UTF8.self) else {
            throw WebSocketError("a close frame is malformed")
        }
        return .close(code: code, reason: reason)
    }
}

extension [UInt8] {
    fileprivate var isUTF8: Bool { String(validating: self, as: UTF8.self) != nil }
}
