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
        listener = try Self.listen(port)
        self.port = port
        self.script = script
        _ = NamedThread(name: "scripted") { [listener, weak self] in
            var count = 0
            while true {
                let connection = acceptConnection(listener)
                guard connection >= 0 else { break }
                count += 1
                _ = NamedThread(name: "scripted-conn") { [weak self, count] in
                    ScriptedConnection(connection, count).serve(greeting) { self?.answer($0) ?? [.close] }
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

    /// Listens on a port of loopback.
    static func listen(_ port: Int) throws -> Int32 {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        _ = fcntl(listener, F_SETFD, FD_CLOEXEC)
        var on: Int32 = 1
        unsafe setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let code = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(listener, generic, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0, Glibc.listen(listener, 16) == 0 else { throw Broker.NotListening() }
        return listener
    }
}

/// Accepts a connection that blocks; negative if the listener is shut down.
func acceptConnection(_ listener: Int32) -> Int32 {
    let connection = Glibc.accept(listener, nil, nil)
    if connection >= 0 { _ = fcntl(connection, F_SETFD, FD_CLOEXEC) }
    return connection
}

/// One connection of a ``ScriptedServer``, on a thread of its own.
private struct ScriptedConnection {
    private let descriptor: Int32
    private let number: Int
    private var received: [UInt8] = []

    init(_ descriptor: Int32, _ number: Int) {
        (self.descriptor, self.number) = (descriptor, number)
    }

    /// Reads requests and answers them until one side closes the connection.
    consuming func serve(_ greeting: String, _ answer: (ScriptedServer.Request) -> [ScriptedServer.Step]) {
        var connection = self
        var isOpen = connection.send(greeting)
        while isOpen, let request = connection.read() { isOpen = connection.perform(answer(request)) }
        close(connection.descriptor)
    }

    private mutating func read() -> ScriptedServer.Request? {
        let blankLine = Array("\r\n\r\n".utf8)
        while true {
            if let end = (0..<max(0, received.count - 3)).first(where: { received[$0...].starts(with: blankLine) }) {
                return read(after: end + 4)
            }
            guard receive() else { return nil }
        }
    }

    private mutating func read(after headEnd: Int) -> ScriptedServer.Request? {
        let head = String(decoding: received[..<headEnd], as: UTF8.self)
        let length =
            head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
            .flatMap { Int($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) } ?? 0
        while received.count < headEnd + length { guard receive() else { return nil } }
        let body = Array(received[headEnd..<(headEnd + length)])
        received.removeFirst(headEnd + length)
        return ScriptedServer.Request(head: head, body: body, connection: number)
    }

    /// Returns false if the connection must be closed.
    private mutating func perform(_ steps: [ScriptedServer.Step]) -> Bool {
        for step in steps {
            switch step {
            case .send(let text): guard send(text) else { return false }
            case .sendForever(let text): while send(text) {}
            case .hang: while receive() {}
            case .close: return false
            case .reset:
                var setting = linger(l_onoff: 1, l_linger: 0)
                unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &setting, socklen_t(MemoryLayout<linger>.size))
                return false
            }
        }
        return true
    }

    private func send(_ text: String) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private mutating func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
        guard count > 0 else { return false }
        received += chunk[..<count]
        return true
    }
}
