import Glibc

// The library's socket, between its own packets; not for a secured connection.
extension MosquittoHandle {
    var isSecured: Bool { tls != nil }

    /// Writes as much of `octets` as the kernel takes, and says how much that is; `nil` when the connection has ended,
    /// which epoll tells then as well: what the broker said before can still be read, and perhaps why.
    func transmit(_ octets: [UInt8]) -> Int? {
        let count = unsafe send(socket, octets, octets.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        guard count < 0 else { return count }
        if errno == EAGAIN || errno == EINTR { return 0 }
        shutdown(socket, Int32(SHUT_RDWR))
        return nil
    }

    /// Copies what the broker sent without taking it; `nil` when there is nothing, 0 when there will be no more.
    func peek(into octets: inout [UInt8]) -> Int? {
        let count = unsafe recv(socket, &octets, octets.count, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return nil }
        return max(0, count)
    }

    /// Takes octets that were looked at.
    func discard(_ count: Int, using octets: inout [UInt8]) {
        _ = unsafe recv(socket, &octets, min(count, octets.count), Int32(MSG_DONTWAIT))
    }

    /// Makes the socket readable only when it has `count` octets, or the connection has ended: `socket(7)`.
    func awaitOctets(_ count: Int) {
        var count = Int32(clamping: count)
        unsafe setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &count, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Tells the broker's kernel at once which segments have come, `tcp(7)`: until it knows, Nagle's algorithm may hold
    /// back what the broker wrote after them.
    func acknowledgeSegments() {
        var flag: Int32 = 1
        unsafe setsockopt(socket, Int32(IPPROTO_TCP), TCP_QUICKACK, &flag, socklen_t(MemoryLayout<Int32>.size))
    }
}
