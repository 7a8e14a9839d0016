import CLinux
import GattherdDBus
import GattherdModel
import GattherdSync
import Glibc

/// The socket of `AcquireNotify`: one packet is one notification.
///
/// A zero-length read is an empty packet or the end; the socket's state tells which.
final class NotificationSocket {
    private let descriptor: Int32
    private let owner: DBusDescriptor
    private let group: DescriptorGroup
    private let deliver: (Span<UInt8>, Timestamp) -> Void
    private let ended: () -> Void
    private var isOpen = true

    /// More than an attribute value can have, 512 octets: Core Specification, Vol 3, Part F, "Attribute value".
    private static let packetLimit = 1024
    /// More packets than a socket can hold, 278 of the smallest: as many empty reads are the end.
    private static let queueLimit = 512

    /// Starts to receive packets.
    ///
    /// - Parameters:
    ///   - owner: The socket; it is closed with ``close()``.
    ///   - group: The sockets that are read together.
    ///   - deliver: Receives each packet with its time.
    ///   - ended: Called once when the other end is closed and everything has been delivered.
    /// - Throws: ``WatchError`` when the kernel is out of room.
    init(
        _ owner: DBusDescriptor,
        in group: DescriptorGroup,
        deliver: @escaping (Span<UInt8>, Timestamp) -> Void,
        ended: @escaping () -> Void
    ) throws(WatchError) {
        self.owner = owner
        self.group = group
        self.deliver = deliver
        self.ended = ended
        descriptor = owner.rawValue
        try group.watch(descriptor, for: .readable) { [weak self] ready in self?.receive(ready) }
    }

    /// Delivers the remaining packets, then closes the socket.
    func close() {
        guard isOpen else { return }
        _ = drain()
        release()
    }

    /// Delivers the waiting packets without a report of the group.
    func receiveWaiting() {
        receive([])
    }

    private func receive(_ ready: DescriptorEvents) {
        guard drain() || ready.contains(.hangUp), isOpen else { return }
        release()
        ended()
    }

    private func release() {
        guard isOpen else { return }
        isOpen = false
        group.unwatch(descriptor)
        Glibc.close(owner.release())
    }

    /// Delivers the waiting packets; returns true if the socket has ended.
    private func drain() -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.packetLimit) { buffer in
            unsafe drain(buffer)
        }
    }

    private func drain(_ buffer: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        var doubtful = 0
        while isOpen {
            let count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            guard count >= 0 else {
                if errno == EINTR { continue }
                return errno != EAGAIN
            }
            if count == 0, otherEndIsClosed {
                // An empty packet, or the end: a packet behind it shows which.
                doubtful += 1
                guard doubtful <= Self.queueLimit else { return true }
                continue
            }
            for _ in 0..<doubtful { deliver(Span(), .now) }
            doubtful = 0
            deliver(unsafe Span(_unsafeElements: buffer.extracting(0..<count)), .now)
        }
        return false
    }

    private var otherEndIsClosed: Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return unsafe poll(&state, 1, 0) == 1 && state.revents & Int16(POLLHUP | POLLERR) != 0
    }
}

extension Timestamp {
    /// The wall clock.
    static var now: Timestamp { Timestamp(microseconds: WallClock.microseconds) }
}
