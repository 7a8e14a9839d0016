import GattherdDBus
import GattherdModel
import GattherdSync

/// The open sockets of `AcquireNotify`; on the Bluetooth thread only.
///
/// Waking up costs more than reading a packet. Sockets with frequent packets are therefore read together, after pauses
/// in which several collect.
final class NotificationSockets {
    /// The packets that a read has found.
    private struct Found {
        private(set) var total = 0
        /// The number in the fullest socket.
        private(set) var most = 0
        /// The socket of the last packet, and the number of its packets.
        private var last = (socket: 0, count: 0)

        mutating func add(of socket: Int) {
            last = (socket, socket == last.socket ? last.count + 1 : 1)
            (total, most) = (total + 1, max(most, last.count))
        }
    }

    private let loop: EventLoop
    /// The pauses: a socket holds 278 small packets, of which about 125 collect in the fullest one.
    private var pacing: ReadPacing
    private let longestPause: Duration
    /// The watch of all sockets; `nil` before the first one.
    private var group: DescriptorGroup?
    /// The number of opened sockets.
    private var opened = 0
    private var found = Found()

    init(on loop: EventLoop, longestPause: Duration) {
        (self.loop, self.longestPause) = (loop, longestPause)
        pacing = ReadPacing(longest: longestPause)
    }

    /// True while packets are left in the sockets, to be read together.
    var isPausing: Bool { group?.isPaused ?? false }

    /// Starts to receive the packets of a socket; see ``NotificationSocket``.
    ///
    /// - Throws: ``WatchError`` if the kernel is out of room.
    func open(
        _ descriptor: DBusDescriptor,
        deliver: @escaping (Span<UInt8>, Timestamp) -> Void,
        ended: @escaping () -> Void
    ) throws(WatchError) -> NotificationSocket {
        opened += 1
        let counted: (Span<UInt8>, Timestamp) -> Void = { [weak self, opened] octets, time in
            self?.found.add(of: opened)
            deliver(octets, time)
        }
        let group = group ?? DescriptorGroup(on: loop) { [weak self] in self?.receive() }
        let socket = try NotificationSocket(descriptor, in: group, deliver: counted, ended: ended)
        self.group = group
        return socket
    }

    /// Reads the sockets that are ready, and leaves all unread for a while if packets are frequent.
    private func receive() {
        guard let group else { return }
        found = Found()
        let isAll = group.callHandlers()
        let pause = pacing.read(found.most, of: found.total, isAll: isAll, at: .now)
        do throws(WatchError) {
            guard let pause else { return try group.resume() }
            try group.pause()
            receiveLater(after: pause)
        } catch {
            // Without the watch of the kernel the sockets are read by the clock.
            if group.isPaused { receiveLater(after: longestPause) }
        }
    }

    private func receiveLater(after pause: Duration) {
        loop.schedule(after: pause) { [weak self] in self?.receive() }
    }
}
