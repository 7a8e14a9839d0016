import GattherdDBus
import GattherdSync
import Glibc

/// bluetoothd's ends of the socket pairs of `AcquireNotify` and `AcquireWrite`.
///
/// Confined to the loop's thread.
final class AcquiredSockets {
    private let loop: EventLoop
    private var sockets: [SocketID: AcquiredSocket] = [:]

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Opens a pair and returns the client's end; `nil` without free descriptors.
    ///
    /// `handle` receives the packets, if `isRead`, and the client's close.
    func open(
        _ id: SocketID,
        isRead: Bool,
        _ handle: @escaping (VirtualBlueZ.Event) -> Void
    ) -> DBusDescriptor? {
        guard let (ours, theirs) = AcquiredSocket.pair() else { return nil }
        sockets[id] = ours
        try? loop.watch(ours.descriptor, for: isRead ? .readable : []) { [weak self] ready in
            if ready.contains(.readable) { self?.receive(from: id, handle) }
            guard !ready.isDisjoint(with: [.hangUp, .error]) else { return }
            self?.close(id)
            handle(.socketClosed(id))
        }
        return theirs
    }

    /// Sends one packet.
    ///
    /// Returns false if the socket is closed, the reader is gone or its buffer is full.
    func send(_ payload: [UInt8], to id: SocketID) -> Bool {
        sockets[id]?.send(payload) ?? false
    }

    /// Reads a client's packets.
    ///
    /// Like bluetoothd, stops reading after an empty packet.
    private func receive(from id: SocketID, _ handle: (VirtualBlueZ.Event) -> Void) {
        guard let socket = sockets[id] else { return }
        while let packet = socket.receive() {
            guard !packet.isEmpty else {
                try? loop.rewatch(socket.descriptor, for: [])
                return
            }
            handle(.packet(packet, id))
        }
    }

    func close(_ id: SocketID) {
        guard let socket = sockets.removeValue(forKey: id) else { return }
        loop.unwatch(socket.descriptor)
        socket.close()
    }

    func closeAll() {
        for id in sockets.keys { close(id) }
    }
}

/// One end of a socket pair.
private struct AcquiredSocket {
    let descriptor: Int32

    /// Creates a pair: bluetoothd's end and the client's end.
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
