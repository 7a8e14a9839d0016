import CLinux
import GattherdSync
import Glibc

/// A connected, non-blocking TCP socket, which closes on deinitialisation.
public final class StreamSocket: Sendable {
    public let descriptor: Int32

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Connects to a numeric address.
    ///
    /// - Parameters:
    ///   - address: An address from ``HostAddresses/resolve(_:)``.
    ///   - port: The server's port.
    ///   - limit: The maximum time that the call blocks.
    /// - Returns: The connected socket.
    /// - Throws: ``MQTTConnectionError`` if there is no connection within `limit`.
    public static func connect(
        to address: String,
        _ port: UInt16,
        within limit: Duration
    ) throws(MQTTConnectionError) -> StreamSocket {
        let (family, bytes) = try socketAddress(address, port)
        let type = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        let descriptor = Glibc.socket(family, Int32(type), 0)
        guard descriptor >= 0 else { throw .system(errno) }
        let socket = StreamSocket(descriptor)
        socket.set(Int32(IPPROTO_TCP), TCP_NODELAY)
        let code = unsafe bytes.withUnsafeBytes { raw in
            let address = unsafe raw.assumingMemoryBound(to: sockaddr.self).baseAddress
            return unsafe Glibc.connect(descriptor, address, socklen_t(raw.count))
        }
        guard code != 0 else { return socket }
        guard errno == EINPROGRESS || errno == EINTR else { throw .system(errno) }
        try socket.awaitConnection(within: limit)
        return socket
    }

    /// The `sockaddr` of an address from ``HostAddresses``.
    private static func socketAddress(
        _ address: String,
        _ port: UInt16
    ) throws(MQTTConnectionError) -> (family: Int32, bytes: [UInt8]) {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(address, "\(port)", &hints, &list)
        guard code == 0, let info = unsafe list?.pointee else { throw .system(EADDRNOTAVAIL) }
        defer { unsafe freeaddrinfo(list) }
        let bytes = unsafe Array(UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen)))
        return unsafe (info.ai_family, bytes)
    }

    private func awaitConnection(within limit: Duration) throws(MQTTConnectionError) {
        let deadline = ContinuousClock.now + limit
        var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        repeat {
            let left = max(.zero, deadline - ContinuousClock.now)
            let milliseconds = Int32(clamping: Int64((left / .milliseconds(1)).rounded(.up)))
            let count = unsafe poll(&state, 1, milliseconds)
            if count > 0 { break }
            guard count == 0 || errno == EINTR else { throw .system(errno) }
        } while ContinuousClock.now < deadline
        guard state.revents != 0 else { throw .system(ETIMEDOUT) }
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
        guard code == 0 else { throw .system(code) }
    }

    /// Sends as much as the kernel accepts and returns the count; `nil` if the connection has ended.
    func send(_ octets: ArraySlice<UInt8>) -> Int? {
        let count = unsafe octets.withUnsafeBytes { raw in
            unsafe Glibc.send(descriptor, raw.baseAddress, raw.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        guard count < 0 else { return count }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// Receives the available bytes; `nil` if there are none now.
    ///
    /// - Throws: ``MQTTConnectionError/ended`` at the end of the stream, or the system's error.
    func receive(into buffer: inout [UInt8]) throws(MQTTConnectionError) -> Int? {
        let count = unsafe recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 { return count }
        guard count < 0 else { throw .ended }
        guard errno == EAGAIN || errno == EINTR else { throw .system(errno) }
        return nil
    }

    /// Acknowledges received segments to the peer's kernel at once, see `tcp(7)`.
    ///
    /// Without it, Nagle's algorithm may hold back the broker's next bytes.
    func acknowledgeSegments() {
        set(Int32(IPPROTO_TCP), TCP_QUICKACK)
    }

    /// Shuts down sending, or both directions; received bytes can still be read.
    func end(both: Bool) {
        shutdown(descriptor, Int32(both ? SHUT_RDWR : SHUT_WR))
    }

    private func set(_ level: Int32, _ option: Int32) {
        var flag: Int32 = 1
        unsafe setsockopt(descriptor, level, option, &flag, socklen_t(MemoryLayout<Int32>.size))
    }
}

/// The reason why a connection cannot be made or continued.
public enum MQTTConnectionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The broker closed the connection.
    case ended
    /// An error number of the kernel.
    case system(Int32)
    /// The broker violated the protocol.
    case violation(MQTTViolation)
    /// TLS failed; ``TLSContext/explanation`` has the details.
    case security
    /// CONNECT cannot be written.
    case refusal(MQTTRefusal)
    case pingUnanswered
    /// The broker has read nothing for this time.
    case stalled(Duration)

    /// True if the peer closed or reset the connection.
    public var isEndOfConnection: Bool {
        switch self {
        case .ended, .security, .system(ECONNRESET), .system(EPIPE): true
        default: false
        }
    }

    /// True if the host is there, and no program listens on the port.
    var isRefusedConnection: Bool { self == .system(ECONNREFUSED) }

    public var description: String {
        switch self {
        case .ended: "the broker closed it"
        case .system(let code): SystemError(code).description
        case .violation(let violation): "the broker violated the protocol: \(violation)"
        case .security: "TLS failed"
        case .refusal(let refusal): "\(refusal)"
        case .pingUnanswered: "a ping was not answered in time"
        case .stalled(let time): "the broker has read nothing for \(time)"
        }
    }
}

/// The addresses of a host.
public enum HostAddresses {
    /// Resolves `host` to numeric addresses in the system's order of preference; may block for long.
    ///
    /// - Throws: The resolver's message if there are none.
    public static func resolve(_ host: String) throws(ResolverError) -> [String] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else { throw ResolverError(host: host, code: code) }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [String] = []
        var next = unsafe list
        while let info = unsafe next?.pointee {
            if let address = unsafe number(info) { addresses.append(address) }
            unsafe next = info.ai_next
        }
        return addresses
    }

    private static func number(_ info: addrinfo) -> String? {
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let length = socklen_t(text.count)
        let code = unsafe getnameinfo(info.ai_addr, info.ai_addrlen, &text, length, nil, 0, NI_NUMERICHOST)
        guard code == 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }
}

/// The error of a failed name lookup.
public struct ResolverError: Error, Hashable, CustomStringConvertible {
    let host: String
    let code: Int32

    public var description: String { "no address of '\(host)' is known: \(unsafe String(cString: gai_strerror(code)))" }
}
