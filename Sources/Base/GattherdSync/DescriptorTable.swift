import CLinux
import Glibc

/// Events of a file descriptor.
public struct DescriptorEvents: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    public static let readable = Self(rawValue: 1)
    public static let writable = Self(rawValue: 2)
    /// The other end closed; data that it sent before can still be read.
    ///
    /// Always reported, as is ``error``; with ``halfClosed`` as an interest, only after both directions are closed.
    public static let hangUp = Self(rawValue: 4)
    public static let error = Self(rawValue: 8)
    /// An interest that leaves the end of the other side's data unreported; epoll would report it again and again.
    public static let halfClosed = Self(rawValue: 16)

    init(events: UInt32) {
        var ready: DescriptorEvents = []
        if events & EPOLLIN.rawValue != 0 { ready.insert(.readable) }
        if events & EPOLLOUT.rawValue != 0 { ready.insert(.writable) }
        if events & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0 { ready.insert(.hangUp) }
        if events & EPOLLERR.rawValue != 0 { ready.insert(.error) }
        self = ready
    }

    var events: UInt32 {
        (contains(.readable) ? EPOLLIN.rawValue : 0) | (contains(.writable) ? EPOLLOUT.rawValue : 0)
            | (contains(.halfClosed) ? 0 : EPOLLRDHUP.rawValue)
    }
}

/// The reason why the kernel cannot watch a descriptor.
public struct WatchError: Error, Hashable, Sendable, CustomStringConvertible {
    public let descriptor: Int32
    public let code: Int32

    public var description: String {
        "cannot watch descriptor \(descriptor): \(SystemError(code))"
    }
}

/// The watched descriptors of a loop, in an epoll instance.
struct DescriptorTable {
    private struct Watcher {
        let generation: UInt32
        let handler: (DescriptorEvents) -> Void
    }

    /// The epoll descriptor; negative if none was left.
    let poll = epoll_create1(Int32(EPOLL_CLOEXEC))
    private var watchers: [Int32: Watcher] = [:]
    private var nextGeneration: UInt32 = 0

    var isEmpty: Bool { watchers.isEmpty }

    mutating func insert(
        _ descriptor: Int32,
        for interest: DescriptorEvents,
        handler: @escaping (DescriptorEvents) -> Void
    ) throws(WatchError) {
        precondition(watchers[descriptor] == nil, "a descriptor has one watcher at most")
        nextGeneration &+= 1
        let watcher = Watcher(generation: nextGeneration & 0x7FFF_FFFF, handler: handler)
        try control(EPOLL_CTL_ADD, descriptor, interest, watcher)
        watchers[descriptor] = watcher
    }

    /// Changes the events that a descriptor is watched for.
    func update(_ descriptor: Int32, for interest: DescriptorEvents) throws(WatchError) {
        guard let watcher = watchers[descriptor] else { return }
        try control(EPOLL_CTL_MOD, descriptor, interest, watcher)
    }

    mutating func remove(_ descriptor: Int32) {
        guard watchers.removeValue(forKey: descriptor) != nil else { return }
        var event = unsafe epoll_event()
        unsafe epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, &event)
    }

    mutating func removeAll() {
        watchers.removeAll()
    }

    /// Returns the handler of an event, unless its watcher was removed earlier in the same turn.
    func handler(of key: UInt64) -> ((DescriptorEvents) -> Void)? {
        let watcher = watchers[Int32(truncatingIfNeeded: key)]
        guard let watcher, watcher.generation == UInt32(truncatingIfNeeded: key >> 32) else { return nil }
        return watcher.handler
    }

    private func control(
        _ operation: Int32,
        _ descriptor: Int32,
        _ interest: DescriptorEvents,
        _ watcher: Watcher
    ) throws(WatchError) {
        let key = UInt64(watcher.generation) << 32 | UInt64(UInt32(bitPattern: descriptor))
        var event = unsafe epoll_event(events: interest.events, data: epoll_data_t(u64: key))
        guard unsafe epoll_ctl(poll, operation, descriptor, &event) == 0 else {
            throw WatchError(descriptor: descriptor, code: errno)
        }
    }
}
