import CLinux
import CMicroHTTPD
import GattherdSync
import Glibc

/// A daemon of libmicrohttpd without a thread of its own: ``run()`` does its work.
///
/// All calls, including the callbacks to ``HTTPConnections``, are on the thread of the loop.
@safe final class MicroHTTPDaemon {
    private let raw: OpaquePointer

    /// Creates a daemon; `nil` without memory or descriptors.
    ///
    /// - Parameters:
    ///   - socket: The listening socket; the daemon closes it.
    ///   - limits: The limits for clients.
    ///   - owner: The object that handles callbacks; must outlive the daemon.
    init?(on socket: ListeningSocket, _ limits: HTTPLimits, owner: HTTPConnections) {
        let callbacks = unsafe cmicrohttpd_callbacks(
            request: { owner, connection, url, method, _, upload, count, exchange in
                unsafe HTTPConnections.at(owner)?.receive(connection, url, method, upload, count, exchange) ?? .NO
            },
            completed: { owner, _, exchange, _ in unsafe HTTPConnections.at(owner)?.complete(exchange) },
            connection: { owner, connection, _, change in
                let descriptor = unsafe cmicrohttpd_descriptor(connection)
                unsafe HTTPConnections.at(owner)?.connection(descriptor, hasBegun: change == .CONNECTION_NOTIFY_STARTED)
            },
            context: Unmanaged.passUnretained(owner).toOpaque()
        )
        let bounds = cmicrohttpd_limits(
            head: limits.head,
            connections: UInt32(clamping: limits.connections),
            connections_per_address: UInt32(clamping: limits.connectionsPerAddress),
            stall: UInt32(clamping: limits.stallTime.components.seconds)
        )
        guard let raw = unsafe cmicrohttpd_start(socket.descriptor, callbacks, bounds) else {
            close(socket.descriptor)
            return nil
        }
        unsafe self.raw = raw
    }

    deinit {
        unsafe MHD_stop_daemon(raw)
    }

    /// A descriptor that is readable while there is work.
    var pollDescriptor: Int32 { unsafe cmicrohttpd_poll_descriptor(raw) }

    /// Does all pending work without blocking.
    func run() {
        unsafe MHD_run(raw)
    }

    /// The time until the next call of ``run()`` without an event; `nil` for never.
    var timeout: Duration? {
        var milliseconds: UInt64 = 0
        guard unsafe MHD_get_timeout(raw, &milliseconds) == .YES else { return nil }
        return .milliseconds(Int64(clamping: milliseconds))
    }
}

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
            let reason = SystemError.current.description
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
