import GattherdDBus
import Glibc

/// The socket of an `AcquireNotify`, read as the operating system gives it.
public struct BareSocket: Sendable {
    private let descriptor: DBusDescriptor

    init(_ descriptor: DBusDescriptor) {
        self.descriptor = descriptor
    }

    /// What can be read now.
    ///
    /// An empty packet is one of these; so are the endless empty reads after the end, of which `limit` ends the row.
    public func read(limit: Int = 10_000) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        while packets.count < limit, let packet = next() { packets.append(packet) }
        return packets
    }

    /// One read; nil when there is nothing to read.
    public func next() -> [UInt8]? {
        unsafe withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { buffer in
            let count = unsafe recv(descriptor.rawValue, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            guard count >= 0 else { return nil }
            return unsafe Array(buffer.prefix(count))
        }
    }

    /// Whether bluetoothd has closed its end; what it sent before may still be read.
    public var isHungUp: Bool {
        var state = pollfd(fd: descriptor.rawValue, events: 0, revents: 0)
        return unsafe poll(&state, 1, 0) == 1 && state.revents & Int16(POLLHUP) != 0
    }

    public func close() {
        Glibc.close(descriptor.take())
    }
}
