import CLinux
import Glibc

/// Descriptors whose handlers are called together, when the owner of the group asks for it.
///
/// A loop watches them as one descriptor. Its watch can be paused without a system call for each of them. On the loop's
/// thread only.
public final class DescriptorGroup {
    /// The maximum number of handlers that one call of ``callHandlers()`` calls.
    private static let handlersPerCall = 128

    private let loop: EventLoop
    private let ready: () -> Void
    private var descriptors = DescriptorTable()
    /// True while nothing is reported.
    public private(set) var isPaused = false

    /// Creates an empty group on a loop; `ready` is called while a descriptor is ready, unless the group is paused.
    public init(on loop: EventLoop, ready: @escaping () -> Void) {
        (self.loop, self.ready) = (loop, ready)
    }

    deinit {
        if descriptors.poll >= 0 { close(descriptors.poll) }
    }

    /// Adds a descriptor; remove it before it is closed, and before the group is released.
    ///
    /// - Throws: ``WatchError`` if the kernel is out of room.
    public func watch(
        _ descriptor: Int32,
        for interest: DescriptorEvents,
        handler: @escaping (DescriptorEvents) -> Void
    ) throws(WatchError) {
        loop.checkIsolated()
        let isFirst = descriptors.isEmpty
        try descriptors.insert(descriptor, for: interest, handler: handler)
        guard isFirst else { return }
        do throws(WatchError) {
            try loop.watch(descriptors.poll, for: isPaused ? [] : .readable) { [weak self] _ in self?.ready() }
        } catch {
            descriptors.remove(descriptor)
            throw error
        }
    }

    /// Removes a descriptor; its handler is not called again.
    public func unwatch(_ descriptor: Int32) {
        loop.checkIsolated()
        guard !descriptors.isEmpty else { return }
        descriptors.remove(descriptor)
        if descriptors.isEmpty { loop.unwatch(descriptors.poll) }
    }

    /// Calls the handlers of the descriptors that are ready, also during a pause.
    ///
    /// - Returns: False if more descriptors may be ready.
    public func callHandlers() -> Bool {
        loop.checkIsolated()
        var events = unsafe [epoll_event](repeating: epoll_event(), count: Self.handlersPerCall)
        let count = unsafe clinux_epoll_wait(descriptors.poll, &events, Int32(Self.handlersPerCall), 0)
        for index in 0..<max(0, Int(count)) {
            let event = unsafe events[index]
            unsafe descriptors.handler(of: event.data.u64)?(DescriptorEvents(events: event.events))
        }
        return count < Self.handlersPerCall
    }

    /// Reports nothing until ``resume()``.
    ///
    /// - Throws: ``WatchError`` if the kernel is out of room; nothing has changed then.
    public func pause() throws(WatchError) {
        try setPaused(true)
    }

    /// Reports again, also what became ready during the pause.
    ///
    /// - Throws: ``WatchError`` if the kernel is out of room; the pause goes on then.
    public func resume() throws(WatchError) {
        try setPaused(false)
    }

    private func setPaused(_ pauses: Bool) throws(WatchError) {
        guard pauses != isPaused else { return }
        try loop.rewatch(descriptors.poll, for: pauses ? [] : .readable)
        isPaused = pauses
    }
}
