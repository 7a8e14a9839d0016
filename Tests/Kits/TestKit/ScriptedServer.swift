import CLinux
import GattherdSync
import Glibc

/// An HTTP server on loopback that answers each request by a script, correctly or not.
public final class ScriptedServer: Sendable {
    /// A request that was received completely.
    public struct Request: Hashable, Sendable {
        /// The request line and the headers.
        public let head: String
        public let body: [UInt8]
        /// The connection's number, from 1.
        public let connection: Int
    }

    /// A step of an answer.
    public enum Step: Sendable {
        case send(String)
        /// Sends a text again and again, until the client closes the connection.
        case sendForever(String)
        /// Sends nothing, until the client closes the connection.
        case hang
        case close
        /// Closes the connection by a reset.
        case reset
    }

    public typealias Script = @Sendable (Request) -> [Step]

    public let port: Int
    private let listener: Int32
    private let script: Script
    private let received = Locked<[Request]>([])
    private let closed = LatestValue(0)

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - greeting: The text that is sent before the first request.
    ///   - script: Answers a request; called on a thread of the connection.
    /// - Throws: ``Broker/NotListening`` without a free port.
    public init(greeting: String = "", _ script: @escaping Script) throws {
        let port = try Broker.freePort()
        listener = try ServerConnection.listen(port)
        self.port = port
        self.script = script
        _ = NamedThread(name: "scripted") { [listener, weak self] in
            var count = 0
            while let connection = ServerConnection.accept(listener) {
                count += 1
                _ = NamedThread(name: "scripted-conn") { [weak self, count] in
                    var scripted = ScriptedConnection(connection, count)
                    scripted.serve(greeting) { self?.answer($0) ?? [.close] }
                    close(connection.descriptor)
                    self?.closed.update { $0 += 1 }
                }
            }
            close(listener)
        }
    }

    deinit {
        // Ends the thread's accept(2).
        shutdown(listener, Int32(SHUT_RDWR))
    }

    /// The requests so far.
    public var requests: [Request] { received.withLock { $0 } }

    /// Waits until a number of connections has ended.
    public func waitForEnd(ofConnections number: Int) async {
        for await count in closed.watch() where count >= number { return }
    }

    private func answer(_ request: Request) -> [Step] {
        received.withLock { $0.append(request) }
        return script(request)
    }
}

/// One connection of a ``ScriptedServer``.
private struct ScriptedConnection {
    private var connection: ServerConnection
    private let number: Int

    init(_ connection: ServerConnection, _ number: Int) {
        (self.connection, self.number) = (connection, number)
    }

    /// Reads requests and answers them until the connection has ended or must be closed.
    mutating func serve(_ greeting: String, _ answer: (ScriptedServer.Request) -> [ScriptedServer.Step]) {
        var isOpen = send(greeting)
        while isOpen, let request = read() { isOpen = perform(answer(request)) }
    }

    private mutating func read() -> ScriptedServer.Request? {
        guard let head = connection.removeHead() else { return nil }
        let length =
            head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
            .flatMap { Int($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) } ?? 0
        guard let body = connection.removeFirst(length) else { return nil }
        return ScriptedServer.Request(head: head, body: body, connection: number)
    }

    /// Returns false if the connection must be closed.
    private mutating func perform(_ steps: [ScriptedServer.Step]) -> Bool {
        for step in steps {
            switch step {
            case .send(let text): guard send(text) else { return false }
            case .sendForever(let text): while send(text) {}
            case .hang: while connection.receive() {}
            case .close: return false
            case .reset:
                connection.resetOnClose()
                return false
            }
        }
        return true
    }

    private func send(_ text: String) -> Bool { connection.send(Array(text.utf8)) }
}
