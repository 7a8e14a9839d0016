import CLinux
import Glibc

/// A server's side of a connection on loopback, on a thread that it may block.
struct ServerConnection {
    let descriptor: Int32
    /// The bytes that were received and not removed.
    private(set) var received: [UInt8] = []

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Accepts a connection; `nil` if the listener is shut down.
    static func accept(_ listener: Int32) -> ServerConnection? {
        let descriptor = Glibc.accept(listener, nil, nil)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return ServerConnection(descriptor)
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

    /// Sends all bytes; returns false if the connection has ended.
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Waits for further bytes; returns false if the connection has ended.
    mutating func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
        guard count > 0 else { return false }
        received += chunk[..<count]
        return true
    }

    /// Waits for a number of bytes and removes them; `nil` if the connection has ended before.
    mutating func removeFirst(_ count: Int) -> [UInt8]? {
        while received.count < count { guard receive() else { return nil } }
        defer { received.removeFirst(count) }
        return Array(received.prefix(count))
    }

    /// Waits for a text that ends with a blank line and removes it; `nil` if the connection has ended before.
    mutating func removeHead() -> String? {
        let blankLine = Array("\r\n\r\n".utf8)
        while true {
            if let end = (0..<max(0, received.count - 3)).first(where: { received[$0...].starts(with: blankLine) }) {
                return removeFirst(end + 4).map { String(decoding: $0, as: UTF8.self) }
            }
            guard receive() else { return nil }
        }
    }

    /// Makes the kernel close the connection by a reset.
    func resetOnClose() {
        var setting = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &setting, socklen_t(MemoryLayout<linger>.size))
    }
}
