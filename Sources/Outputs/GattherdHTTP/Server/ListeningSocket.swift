import CLinux
import Glibc

/// The reason why a server cannot listen.
package struct ListenError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
}

/// A listening TCP socket.
struct ListeningSocket {
    let descriptor: Int32
    let port: UInt16

    /// Listens on the first address of `host`; blocks while a name is resolved.
    ///
    /// - Parameters:
    ///   - host: A name, or an IPv4 or IPv6 address.
    ///   - port: The port; 0 for any free one.
    /// - Throws: ``ListenError``, for example if another program uses the port.
    init(host: String, port: UInt16) throws(ListenError) {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, "\(port)", &hints, &list)
        defer { if let list = unsafe list { unsafe freeaddrinfo(list) } }
        guard code == 0, let first = unsafe list?.pointee else {
            throw ListenError(description: "cannot resolve '\(host)': \(unsafe String(cString: gai_strerror(code)))")
        }
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let socket = unsafe Glibc.socket(first.ai_family, kind, 0)
        var yes: Int32 = 1
        unsafe setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        guard unsafe bind(socket, first.ai_addr, first.ai_addrlen) == 0, listen(socket, SOMAXCONN) == 0 else {
            let reason = unsafe String(cString: strerror(errno))
            close(socket)
            throw ListenError(description: "cannot listen on \(host), port \(port): \(reason)")
        }
        descriptor = socket
        self.port = Self.port(of: socket) ?? port
    }

    private static func port(of socket: Int32) -> UInt16? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutablePointer(to: &address) { storage in
            unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                guard unsafe getsockname(socket, generic, &length) == 0 else { return nil }
                // The port is at the same offset for IPv4 and IPv6.
                return unsafe storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    unsafe UInt16(bigEndian: $0.pointee.sin_port)
                }
            }
        }
    }
}
