import CLinux
import GattherdDBus
import GattherdSync
import Glibc

/// The socket of `AcquireWrite`: one packet is one write command.
final class WriteSocket {
    enum Outcome {
        case sent
        /// The socket is full; `hasRoom` will be called.
        case full
        case closed
    }

    private let owner: DBusDescriptor
    private let loop: EventLoop
    private let hasRoom: () -> Void
    private(set) var isOpen = true

    /// Takes ownership of the socket.
    ///
    /// - Parameters:
    ///   - owner: The socket; it is closed with ``close()``.
    ///   - loop: The loop of this thread.
    ///   - hasRoom: Called when there is room again after ``Outcome/full``, and when BlueZ closes its end.
    /// - Throws: ``WatchError`` if the kernel is out of room.
    init(_ owner: DBusDescriptor, on loop: EventLoop, hasRoom: @escaping () -> Void) throws(WatchError) {
        self.owner = owner
        self.loop = loop
        self.hasRoom = hasRoom
        try loop.watch(owner.rawValue, for: []) { [weak self] ready in self?.wake(ready) }
    }

    func send(_ octets: [UInt8]) -> Outcome {
        guard isOpen else { return .closed }
        let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        while true {
            let descriptor = owner.rawValue
            let count = unsafe octets.withUnsafeBytes { unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
            guard count < 0 else { return .sent }
            if errno == EINTR { continue }
            guard errno == EAGAIN else { return .closed }
            return (try? loop.rewatch(descriptor, for: .writable)) == nil ? .closed : .full
        }
    }

    /// Closes the socket; BlueZ still sends its content.
    func close() {
        guard isOpen else { return }
        isOpen = false
        loop.unwatch(owner.rawValue)
        Glibc.close(owner.release())
    }

    private func wake(_ ready: DescriptorEvents) {
        guard isOpen else { return }
        if ready.contains(.hangUp) || ready.contains(.error) {
            close()
        } else {
            try? loop.rewatch(owner.rawValue, for: [])
        }
        hasRoom()
    }
}
