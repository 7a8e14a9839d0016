import Glibc
import Synchronization

/// A file descriptor that came, or shall go, through the bus; closed when the last holder lets go.
public final class DBusDescriptor: Sendable {
    private let descriptor: Atomic<Int32>

    /// Takes ownership of `descriptor`.
    public init(owning descriptor: Int32) {
        self.descriptor = Atomic(descriptor)
    }

    deinit {
        let descriptor = take()
        if descriptor >= 0 { close(descriptor) }
    }

    /// The number, still owned here; -1 after ``take()``.
    public var rawValue: Int32 { descriptor.load(ordering: .relaxed) }

    /// Transfers ownership to the caller, which must close it; returns -1 the second time.
    public func take() -> Int32 {
        descriptor.exchange(-1, ordering: .relaxed)
    }
}

extension DBusDescriptor: Hashable {
    public static func == (left: DBusDescriptor, right: DBusDescriptor) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
