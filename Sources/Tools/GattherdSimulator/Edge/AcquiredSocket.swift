import GattherdDBus
import Glibc

/// bluetoothd's end of the socket pair of `AcquireNotify` or `AcquireWrite`.
struct AcquiredSocket {
    let descriptor: Int32

    /// Makes a pair: bluetoothd's end and the client's end.
    static func pair() -> (ours: AcquiredSocket, theirs: DBusDescriptor)? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        return (AcquiredSocket(descriptor: ends[0]), DBusDescriptor(owning: ends[1]))
    }

    /// Sends one packet.
    ///
    /// Returns false if the reader is gone or its buffer is full.
    func send(_ payload: [UInt8]) -> Bool {
        let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        return unsafe payload.withUnsafeBytes { unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, flags) } >= 0
    }

    /// Reads one packet, which may be empty; `nil` if there is none.
    func receive() -> [UInt8]? {
        var packet = [UInt8](repeating: 0, count: 1024)
        let count = unsafe recv(descriptor, &packet, packet.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : Array(packet.prefix(count))
    }

    func close() {
        Glibc.close(descriptor)
    }
}
