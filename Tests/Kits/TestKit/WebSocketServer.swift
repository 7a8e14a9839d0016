import CLinux
import GattherdHTTPClient
import GattherdSync
import Glibc

/// A WebSocket server on loopback that answers each text by a script, correctly or not.
public final class WebSocketServer: Sendable {
    /// A step of an answer.
    public enum Step: Hashable, Sendable {
        case text(String)
        /// Sends bytes as they are, for example a malformed frame.
        case bytes([UInt8])
        /// Sends bytes again and again, until the client closes the connection.
        case bytesForever([UInt8])
        case close
    }

    /// Answers a text of the client; `nil` stands for the end of the handshake.
    public typealias Script = @Sendable (_ text: String?) -> [Step]

    public let port: Int
    private let listener: Int32
    private let opcodes = Locked<[UInt8]>([])

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - handshake: Returns the response to the request's head; by default the right one.
    ///   - script: Answers the client; called on a thread of the connection.
    /// - Throws: ``Broker/NotListening`` without a free port.
    public init(
        handshake: @escaping @Sendable (String) -> String = { WebSocketServer.response(to: $0) },
        _ script: @escaping Script
    ) throws {
        port = try Broker.freePort()
        listener = try ServerConnection.listen(port)
        _ = NamedThread(name: "websocket") { [listener, opcodes] in
            while let connection = ServerConnection.accept(listener) {
                _ = NamedThread(name: "websocket-conn") {
                    var scripted = WebSocketServerConnection(connection)
                    scripted.serve(handshake, script) { opcode in opcodes.withLock { $0.append(opcode) } }
                    close(connection.descriptor)
                }
            }
            close(listener)
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    /// The opcodes of the frames that clients have sent.
    public var receivedOpcodes: [UInt8] { opcodes.withLock { $0 } }

    /// Returns the right response to a request.
    public static func response(to head: String) -> String {
        let line = head.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }
        let key = line.map { String($0.dropFirst("Sec-WebSocket-Key: ".count)) } ?? ""
        return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nconnection: keep-alive, Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(WebSocketHandshake.acceptance(of: key))\r\n\r\n"
    }

    /// Returns an unmasked frame, as a server sends it.
    public static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        var bytes = [opcode | (isFinal ? 0x80 : 0)]
        switch payload.count {
        case ...125: bytes.append(UInt8(payload.count))
        case ...0xFFFF: bytes += [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default: bytes += [127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> (8 * $0)) }
        }
        return bytes + payload
    }
}

/// One connection of a ``WebSocketServer``.
private struct WebSocketServerConnection {
    private var connection: ServerConnection

    init(_ connection: ServerConnection) {
        self.connection = connection
    }

    mutating func serve(
        _ handshake: (String) -> String,
        _ script: WebSocketServer.Script,
        _ record: (UInt8) -> Void
    ) {
        guard let head = connection.removeHead(), connection.send(Array(handshake(head).utf8)), perform(script(nil))
        else { return }
        while let (opcode, payload) = frame() {
            record(opcode)
            if opcode == 1, !perform(script(String(decoding: payload, as: UTF8.self))) { return }
        }
    }

    /// Reads a frame of the client; `nil` at the end of the connection, or if the frame is not masked.
    private mutating func frame() -> (opcode: UInt8, payload: [UInt8])? {
        guard let start = connection.removeFirst(2), start[1] & 0x80 != 0 else { return nil }
        var length = Int(start[1] & 0x7F)
        if length >= 126 {
            guard let long = connection.removeFirst(length == 126 ? 2 : 8) else { return nil }
            length = long.reduce(0) { $0 << 8 | Int($1) }
        }
        guard let mask = connection.removeFirst(4), let payload = connection.removeFirst(length) else { return nil }
        return (start[0] & 0x0F, payload.enumerated().map { $1 ^ mask[$0 % 4] })
    }

    /// Returns false if the connection must be closed.
    private func perform(_ steps: [WebSocketServer.Step]) -> Bool {
        for step in steps {
            switch step {
            case .text(let text):
                guard connection.send(WebSocketServer.frame(1, Array(text.utf8))) else { return false }
            case .bytes(let bytes): guard connection.send(bytes) else { return false }
            case .bytesForever(let bytes): while connection.send(bytes) {}
            case .close: return false
            }
        }
        return true
    }
}
