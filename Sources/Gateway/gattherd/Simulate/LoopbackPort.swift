import Glibc

/// TCP ports of 127.0.0.1.
enum LoopbackPort {
    /// Returns a port without a listener.
    ///
    /// - Throws: ``CommandFailure`` if there is none.
    static func free() throws(CommandFailure) -> UInt16 {
        let socket = makeSocket()
        defer { close(socket) }
        var address = address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe with(&address) { unsafe bind(socket, $0, length) } == 0
        guard isBound, unsafe with(&address, { unsafe getsockname(socket, $0, &length) }) == 0 else {
            throw CommandFailure(.unavailable, "gattherd simulate: no TCP port is free on 127.0.0.1")
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// True if the port has a listener.
    static func isOpen(_ port: UInt16) -> Bool {
        let socket = makeSocket()
        defer { close(socket) }
        var address = address(port)
        return unsafe with(&address) { unsafe connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) } == 0
    }

    private static func makeSocket() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func with(
        _ address: inout sockaddr_in,
        _ body: (UnsafeMutablePointer<sockaddr>) -> Int32
    ) -> Int32 {
        unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0) }
        }
    }
}
