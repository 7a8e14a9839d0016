import Testing

@testable import GattherdHTTPClient

/// Frames and the handshake, with the examples of RFC 6455 and with hostile input.
@Suite struct WebSocketDecoderTests {
    private static let hello = Array("Hello".utf8)

    /// Decodes bytes that arrive in chunks of a size.
    private func events(
        _ bytes: [UInt8],
        chunk: Int = .max,
        maximum: Int = 1 << 20
    ) throws(WebSocketError) -> [WebSocketEvent] {
        var decoder = WebSocketDecoder(maximum: maximum)
        var events: [WebSocketEvent] = []
        var rest = bytes[...]
        repeat {
            decoder.append(rest.prefix(chunk))
            rest = rest.dropFirst(chunk)
            while let event = try decoder.next() { events.append(event) }
        } while !rest.isEmpty
        return events
    }

    @Test func `the examples of the specification are decoded`() throws {
        #expect(try events([0x81, 0x05] + Self.hello) == [.text(Self.hello)])
        #expect(try events([0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F]) == [.text(Self.hello)])
        #expect(try events([0x89, 0x05] + Self.hello) == [.ping(Self.hello)])
        let middle = [UInt8](repeating: 7, count: 256)
        #expect(try events([0x82, 0x7E, 0x01, 0x00] + middle) == [.binary(middle)])
        let long = [UInt8](repeating: 8, count: 65_536)
        #expect(try events([0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + long) == [.binary(long)])
    }

    @Test func `a client's frames are masked as in the specification`() {
        let mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        let frame = WebSocketFrame(opcode: .text, payload: Self.hello).encoded(mask: mask)
        #expect(frame == [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
        for (count, start) in [(125, [0xFD]), (126, [0xFE, 0, 126]), (65_536, [0xFF, 0, 0, 0, 0, 0, 1, 0, 0])] {
            let frame = WebSocketFrame(opcode: .text, payload: [UInt8](repeating: 0, count: count)).encoded(mask: mask)
            #expect(frame.dropFirst().prefix(start.count) == start.map { UInt8($0) }[...])
            #expect(frame.count == 1 + start.count + 4 + count)
        }
        #expect(WebSocketFrame.randomMask() != WebSocketFrame.randomMask())
    }

    @Test func `control frames stand between the fragments of a message`() throws {
        let bytes: [UInt8] = [0x01, 1, 0x61, 0x8A, 0, 0x00, 0, 0x89, 1, 0x62, 0x80, 1, 0x63, 0x88, 2, 3, 0xE8, 0x81, 0]
        let expected: [WebSocketEvent] = [
            .pong([]), .ping([0x62]), .text(Array("ac".utf8)), .close(code: 1000, reason: ""),
        ]
        for chunk in [1, 2, 3, .max] { #expect(try events(bytes, chunk: chunk) == expected) }
    }

    @Test func `a truncated message gives no event`() throws {
        let fragments: [UInt8] = [0x01, 0x7E, 0, 126] + [UInt8](repeating: 0x61, count: 126) + [0x80, 2, 0xC3, 0xA9]
        for count in fragments.indices { #expect(try events(Array(fragments.prefix(count)), chunk: 7).isEmpty) }
        #expect(try events(fragments).count == 1)
    }

    @Test(
        arguments: [
            [0xC1, 0], [0x83, 0], [0x8B, 0], [0x81, 0x80, 1, 2, 3, 4], [0x09, 0], [0x89, 0x7E, 0, 126], [0x80, 0],
            [0x01, 0, 0x81, 0], [0x81, 0x7E, 0, 125], [0x81, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF],
            [0x81, 0x7F, 0xFF, 0, 0, 0, 0, 0, 0, 0], [0x81, 0x7F, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            [0x81, 2, 0xC3, 0x28], [0x88, 1, 3], [0x88, 2, 0x03, 0xED], [0x88, 2, 0x00, 0x00],
            [0x88, 3, 0x03, 0xE8, 0xFF],
        ] as [[UInt8]]
    )
    func `frames that violate the protocol are refused`(bytes: [UInt8]) {
        for chunk in [1, .max] {
            #expect(throws: WebSocketError.self) { try events(bytes, chunk: chunk) }
        }
    }

    @Test func `a message above the limit is refused before it arrives`() throws {
        #expect(try events([0x82, 4, 1, 2, 3, 4], maximum: 4) == [.binary([1, 2, 3, 4])])
        #expect(throws: WebSocketError.self) { try events([0x82, 5], maximum: 4) }
        #expect(throws: WebSocketError.self) { try events([0x02, 3, 1, 2, 3, 0x80, 2], maximum: 4) }
    }

    @Test func `random bytes give events or an error`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let count = Int.random(in: 0..<40, using: &generator)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
            // Half of them begin with a valid frame.
            if Bool.random() { bytes = [0x81, 1, 0x61] + bytes.map { $0 & 0x8F } }
            _ = try? events(bytes, chunk: Int.random(in: 1...5), maximum: 64)
        }
    }

    // MARK: - Handshake

    private static let handshake = WebSocketHandshake(
        host: "server.example.com",
        path: "/chat",
        key: "dGhlIHNhbXBsZSBub25jZQ=="
    )
    private static let response = """
        HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n
        """

    @Test func `the handshake equals the example in RFC 6455`() throws {
        let request = String(decoding: Self.handshake.request, as: UTF8.self)
        #expect(request.hasPrefix("GET /chat HTTP/1.1\r\nHost: server.example.com\r\n"))
        #expect(request.contains("\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"))
        #expect(request.hasSuffix("\r\n\r\n"))
        let bytes = Array(Self.response.utf8)
        #expect(try Self.handshake.responseLength(in: bytes + [0x81, 0]) == bytes.count)
        for count in bytes.indices { #expect(try Self.handshake.responseLength(in: Array(bytes.prefix(count))) == nil) }
    }

    @Test func `the date of a response is that of its header`() {
        func date(_ text: String) -> Int64? {
            WebSocketHandshake.date(in: Array(Self.response.replacing("\r\n\r\n", with: text).utf8))
        }
        #expect(date("\r\ndate: Sat, 21 Nov 2026 03:20:05 GMT\r\n\r\n") == 1_795_231_205)
        #expect(date("\r\nDate: soon\r\n\r\n") == nil)
        #expect(date("\r\nX-Date: Sat, 21 Nov 2026 03:20:05 GMT\r\n\r\n") == nil)
    }

    @Test func `a response without end is refused`() {
        let response = Self.response.dropLast(2) + String(repeating: "x", count: 20_000)
        #expect(throws: WebSocketError.self) { try Self.handshake.responseLength(in: Array(response.utf8)) }
    }

    @Test(arguments: [
        ("101 Switching", "404 Not"), ("HTTP/1.1", "HTTP/1.0"), ("websocket", "h2c"), ("n: Upgrade", "n: close"),
        ("s3pP", "S3pP"), ("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
        ("\r\n\r\n", "\r\nSec-WebSocket-Protocol: chat\r\n\r\n"),
    ])
    func `a wrong response is refused`(part: String, replacement: String) {
        let response = Self.response.replacing(part, with: replacement)
        #expect(throws: WebSocketError.self) { try Self.handshake.responseLength(in: Array(response.utf8)) }
    }
}
