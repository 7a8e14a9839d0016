import GattherdDBus
import Glibc

/// The socket of an `AcquireNotify`, read with plain system calls.
public struct BareSocket: Sendable {
    private let descriptor: DBusDescriptor

    init(_ descriptor: DBusDescriptor) {
        self.descriptor = descriptor
    }

    /// Reads the available packets, at most `limit`.
    ///
    /// Empty packets are included. At the end of the socket, reads return empty packets endlessly.
    public func read(limit: Int = 10_000) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        while packets.count < limit, let packet = next() { packets.append(packet) }
        return packets
    }

    /// Reads one packet; nil if none is available.
    public func next() -> [UInt8]? {
        unsafe withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { buffer in
            let count = unsafe recv(descriptor.rawValue, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            guard count >= 0 else { return nil }
            return unsafe Array(buffer.prefix(count))
        }
    }

    /// True if bluetoothd has closed its end.
    ///
    /// Earlier packets can still be read.
    public var isHungUp: Bool {
        var state = pollfd(fd: descriptor.rawValue, events: 0, revents: 0)
        return unsafe poll(&state, 1, 0) == 1 && state.revents & Int16(POLLHUP) != 0
    }

    public func close() {
        Glibc.close(descriptor.take())
    }
}
