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
    /// Always reported, as is ``error``.
    public static let hangUp = Self(rawValue: 4)
    public static let error = Self(rawValue: 8)

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
            | EPOLLRDHUP.rawValue
    }
}

/// The reason why the kernel cannot watch a descriptor.
public struct WatchError: Error, Hashable, Sendable, CustomStringConvertible {
    public let descriptor: Int32
    public let code: Int32

    public var description: String {
        "cannot watch descriptor \(descriptor): \(unsafe String(cString: strerror(code)))"
    }
}

extension EventLoop {
    struct Watcher {
        let generation: UInt32
        let handler: (DescriptorEvents) -> Void
    }

    /// Calls `handler` on the loop whenever `descriptor` is ready, level-triggered, until ``unwatch(_:)``.
    ///
    /// On the loop's thread only. A descriptor has at most one watcher. Unwatch it before closing it.
    ///
    /// - Throws: ``WatchError`` if epoll refuses, for example for a plain file.
    public func watch(
        _ descriptor: Int32,
        for interest: DescriptorEvents,
        handler: @escaping (DescriptorEvents) -> Void
    ) throws(WatchError) {
        checkIsolated()
        precondition(watchers[descriptor] == nil, "a descriptor has one watcher at most")
        nextGeneration &+= 1
        let watcher = Watcher(generation: nextGeneration & 0x7FFF_FFFF, handler: handler)
        try control(EPOLL_CTL_ADD, descriptor, interest, watcher)
        watchers[descriptor] = watcher
    }

    /// Changes the events that a descriptor is watched for; on the loop's thread only.
    public func rewatch(_ descriptor: Int32, for interest: DescriptorEvents) throws(WatchError) {
        checkIsolated()
        guard let watcher = watchers[descriptor] else { return }
        try control(EPOLL_CTL_MOD, descriptor, interest, watcher)
    }

    /// Stops watching a descriptor; its handler is not called again.
    ///
    /// On the loop's thread only.
    public func unwatch(_ descriptor: Int32) {
        checkIsolated()
        guard watchers.removeValue(forKey: descriptor) != nil else { return }
        var event = unsafe epoll_event()
        unsafe epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, &event)
    }

    /// Calls the handler of an event, unless its watcher was removed earlier in the same turn.
    func dispatch(_ ready: DescriptorEvents, key: UInt64) {
        let watcher = watchers[Int32(truncatingIfNeeded: key)]
        guard let watcher, watcher.generation == UInt32(truncatingIfNeeded: key >> 32) else { return }
        watcher.handler(ready)
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
