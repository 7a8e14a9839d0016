import GattherdDBus
import GattherdModel
import GattherdSync

/// The open sockets of `AcquireNotify`; on the Bluetooth thread only.
///
/// Waking up costs more than reading a packet. Sockets with frequent packets are therefore read together, after pauses
/// in which several collect.
final class NotificationSockets {
    /// The longest pause: a socket holds 278 small packets, more than any device sends in this time.
    private static let longestPause = Duration.milliseconds(20)

    private let loop: EventLoop
    private var pacing: ReadPacing
    /// The watch of all sockets; `nil` before the first one.
    private var group: DescriptorGroup?
    /// The number of packets that the present read has found.
    private var received = 0

    init(on loop: EventLoop, longestPause: Duration) {
        self.loop = loop
        pacing = ReadPacing(longest: min(longestPause, Self.longestPause))
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
        let counted: (Span<UInt8>, Timestamp) -> Void = { [weak self] octets, time in
            self?.received += 1
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
        received = 0
        let isAll = group.callHandlers()
        let pause = pacing.read(received, isAll: isAll, at: .now)
        do throws(WatchError) {
            guard let pause else { return try group.resume() }
            try group.pause()
            receiveLater(after: pause)
        } catch {
            // Without the watch of the kernel the sockets are read by the clock.
            if group.isPaused { receiveLater(after: Self.longestPause) }
        }
    }

    private func receiveLater(after pause: Duration) {
        loop.schedule(after: pause) { [weak self] in self?.receive() }
    }
}
