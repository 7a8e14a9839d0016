import CLinux
import Glibc

/// A TCP connection to a port of 127.0.0.1 that sends arbitrary text.
public final class RawClient {
    public struct NotConnected: Error {}

    private let socket: Int32
    /// The received bytes that were not read yet.
    private var received: [UInt8] = []

    /// Connects to a port of 127.0.0.1.
    ///
    /// - Parameters:
    ///   - port: The server's port.
    ///   - receiveBuffer: The kernel's receive buffer in bytes; `nil` for the default.
    /// - Throws: ``NotConnected`` if nothing listens on the port.
    public init(_ port: UInt16, receiveBuffer: Int32? = nil) throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var size = receiveBuffer {
            unsafe setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var timeout = timeval(tv_sec: 20, tv_usec: 0)
        unsafe setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw NotConnected() }
    }

    deinit {
        close(socket)
    }

    /// Closes the connection.
    public func end() {
        shutdown(socket, Int32(SHUT_RDWR))
    }

    /// Discards everything that arrives, unacknowledged, as if the client had lost its network.
    public func loseNetwork() {
        /// A program of the kernel's packet filter, in the layout of `sock_fprog`.
        struct Filter {
            var count: UInt16
            var instructions: UInt
        }
        // The instruction "return 0", in the layout of `sock_filter`.
        var instruction = UInt64(littleEndian: 6)
        unsafe withUnsafeMutablePointer(to: &instruction) { pointer in
            var filter = Filter(count: 1, instructions: UInt(bitPattern: pointer))
            let size = socklen_t(MemoryLayout<Filter>.size)
            _ = unsafe setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, size)
        }
    }

    /// Sends text.
    ///
    /// Returns false if the connection has ended.
    @discardableResult
    public func send(_ text: String) -> Bool {
        let octets = Array(text.utf8)
        return unsafe Glibc.send(socket, octets, octets.count, Int32(MSG_NOSIGNAL)) == octets.count
    }

    /// Reads up to and including `end`, or to the end of the connection.
    public func read(through end: String) -> String {
        let end = Array(end.utf8)
        var searched = 0
        while true {
            while searched + end.count <= received.count {
                if received[searched] == end[0], received[searched...].starts(with: end) {
                    return take(searched + end.count)
                }
                searched += 1
            }
            guard receive() else { return take(received.count) }
        }
    }

    /// Reads to the end of the connection.
    public func readToEnd() -> String {
        while receive() {}
        return take(received.count)
    }

    private func take(_ count: Int) -> String {
        defer { received.removeFirst(count) }
        return String(decoding: received.prefix(count), as: UTF8.self)
    }

    /// Receives bytes.
    ///
    /// Returns false at the end of the connection.
    private func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(socket, &chunk, chunk.count, 0)
        received += chunk.prefix(max(0, count))
        return count > 0
    }

    /// Sends a GET request and returns the response.
    public func get(_ path: String) -> HTTPAnswer {
        send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        return readAnswer()
    }

    /// Reads one response with a `Content-Length`.
    public func readAnswer() -> HTTPAnswer {
        let head = read(through: "\r\n\r\n")
        let length = HTTPAnswer(head: head, body: "").header("Content-Length").flatMap { Int($0) } ?? 0
        while received.count < length, receive() {}
        return HTTPAnswer(head: head, body: take(min(length, received.count)))
    }
}

/// A port of 127.0.0.1 that is in use.
public final class ListeningPort {
    public let port: UInt16
    private let socket: Int32

    public init() throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        let code = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(socket, $0, length) + listen(socket, 1) + getsockname(socket, $0, &length)
            }
        }
        guard code == 0 else { throw RawClient.NotConnected() }
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit {
        close(socket)
    }
}

/// A response of an HTTP server.
public struct HTTPAnswer: Sendable {
    public let head: String
    public let body: String

    /// The status code; 0 without a response.
    public var status: Int {
        let words = head.split(separator: " ")
        return words.count > 1 ? Int(words[1]) ?? 0 : 0
    }

    public func header(_ name: String) -> String? {
        let lines = head.split(separator: "\r\n")
        let line = lines.first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
        return line.map { String($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) }
    }
}
