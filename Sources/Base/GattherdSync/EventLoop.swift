import CLinux
import Glibc
import Synchronization

/// An event descriptor that wakes the thread of a loop.
///
/// Callers of ``signal()`` keep it alive when the loop is gone.
private final class Wakeup: Sendable {
    /// The descriptor; negative if none was left.
    let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    deinit {
        close(descriptor)
    }

    func signal() {
        eventfd_write(descriptor, 1)
    }

    func drain() {
        var count: UInt64 = 0
        unsafe eventfd_read(descriptor, &count)
    }
}

/// A run loop on a thread of its own that waits for descriptors, timers and jobs.
///
/// The loop is also an executor for actors.
///
/// An actor whose `unownedExecutor` is a loop shares the thread with the loop's handlers, which may call the actor
/// directly. ``LoopTaskExecutor`` does the same for tasks. An idle loop never wakes up.
///
/// `@unchecked Sendable` is safe: `descriptors` and `timers` are used on the loop's thread only, which every access
/// checks.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
    enum Work: Sendable {
        case job(UnownedJob)
        case taskJob(UnownedJob, LoopTaskExecutor)
        case closure(@Sendable () -> Void)
    }

    private struct Inbox: Sendable {
        let wakeup: Wakeup
        var work: [Work] = []
        var isAsleep = false
        var isStopping = false
        var hasThread = true

        /// Returns the wakeup to signal if the thread sleeps: only the first caller has to.
        mutating func claimWakeup() -> Wakeup? {
            defer { isAsleep = false }
            return isAsleep ? wakeup : nil
        }

        /// Returns true if the thread has ended: the first caller starts another one.
        mutating func claimStart() -> Bool {
            defer { hasThread = true }
            return !hasThread
        }
    }

    private let name: String
    private let inbox: Locked<Inbox>
    private let wakeup: Wakeup
    private let thread = Atomic<UInt>(0)
    private var descriptors = DescriptorTable()
    private var timers = TimerQueue()

    /// Starts the thread.
    ///
    /// - Parameter name: The name of the thread in `top -H` and debuggers, at most 15 bytes.
    public init(name: String) {
        self.name = name
        wakeup = Wakeup()
        inbox = Locked(Inbox(wakeup: wakeup))
        let poll = descriptors.poll
        precondition(poll >= 0 && wakeup.descriptor >= 0, "no descriptors left for an event loop: \(errno)")
        var event = unsafe epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: Self.wakeupKey))
        unsafe epoll_ctl(poll, EPOLL_CTL_ADD, wakeup.descriptor, &event)
        startThread()
    }

    deinit {
        Glibc.close(descriptors.poll)
    }

    /// True on the loop's own thread.
    public var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Runs `body` on the loop after all work that was enqueued before; callable from any thread.
    public func execute(_ body: @escaping @Sendable () -> Void) {
        enqueue(.closure(body))
    }

    /// Ends the thread after all enqueued work; callable from any thread.
    ///
    /// Watchers and timers are removed. Jobs that are enqueued later still run, on a thread that ends with them. So no
    /// task waits forever.
    public func stop() {
        let wakeup = inbox.withLock { inbox in
            inbox.isStopping = true
            return inbox.claimWakeup()
        }
        wakeup?.signal()
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        enqueue(.job(UnownedJob(job)))
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    public func checkIsolated() {
        precondition(isCurrent, "must be called on the event loop's thread")
    }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// Enqueues work for the thread.
    ///
    /// The run-time does not keep an executor alive. Once the lock is released, the thread may have done the work, and
    /// the loop may be deallocated, unless its thread still has to be started.
    func enqueue(_ work: Work) {
        let (wakeup, hadEnded) = inbox.withLock { inbox in
            inbox.work.append(work)
            return (inbox.claimWakeup(), inbox.claimStart())
        }
        wakeup?.signal()
        if hadEnded { startThread() }
    }

    private func startThread() {
        _ = NamedThread(name: name) { [self] in run() }
    }
}

// Watched descriptors and timers, on the loop's thread only.
extension EventLoop {
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
        try descriptors.insert(descriptor, for: interest, handler: handler)
    }

    /// Changes the events that a descriptor is watched for; on the loop's thread only.
    public func rewatch(_ descriptor: Int32, for interest: DescriptorEvents) throws(WatchError) {
        checkIsolated()
        try descriptors.update(descriptor, for: interest)
    }

    /// Stops watching a descriptor; its handler is not called again.
    ///
    /// On the loop's thread only.
    public func unwatch(_ descriptor: Int32) {
        checkIsolated()
        descriptors.remove(descriptor)
    }

    /// Calls `action` once on the loop after `delay`.
    ///
    /// Time in which the system is suspended does not count.
    ///
    /// On the loop's thread only.
    @discardableResult
    public func schedule(after delay: Duration, _ action: @escaping () -> Void) -> LoopTimer {
        checkIsolated()
        return LoopTimer(id: timers.insert(SuspendingClock.now.advanced(by: delay), action))
    }

    /// Cancels a timer, if it has not fired.
    ///
    /// On the loop's thread only.
    public func cancel(_ timer: LoopTimer) {
        checkIsolated()
        timers.remove(timer.id)
    }
}

// The thread.
extension EventLoop {
    private static let wakeupKey = UInt64.max
    /// Rounds of jobs before descriptors and timers are handled: jobs often enqueue further jobs.
    private static let roundsPerTurn = 16

    private func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        repeat {
            runTurns()
            releaseHandlers()
        } while !mayEnd()
    }

    /// Releases all handlers outside any access to their tables: a `deinit` may call ``unwatch(_:)``.
    private func releaseHandlers() {
        withExtendedLifetime((descriptors, timers)) {
            descriptors.removeAll()
            timers.removeAll()
        }
    }

    private func runTurns() {
        var batch: [Work] = []
        var events = unsafe [epoll_event](repeating: epoll_event(), count: 64)
        while true {
            fireTimers()
            // Timers often enqueue jobs.
            for _ in 0..<Self.roundsPerTurn where !runJobs(&batch) { break }
            guard let timeout = prepareToSleep() else { break }
            let count = unsafe clinux_epoll_wait(descriptors.poll, &events, Int32(events.count), timeout)
            inbox.withLock { $0.isAsleep = false }
            for index in 0..<max(0, Int(count)) { unsafe handle(events[index]) }
        }
    }

    /// Runs the actions that are due.
    ///
    /// Timers that they schedule wait for the next turn.
    private func fireTimers() {
        guard timers.count > 0 else { return }
        let now = SuspendingClock.now
        let limit = timers.nextID
        while let action = timers.removeDue(at: now, before: limit) { action() }
    }

    private func mayEnd() -> Bool {
        inbox.withLock { inbox in
            guard inbox.work.isEmpty else { return false }
            inbox.hasThread = false
            return true
        }
    }

    /// Runs the work that is enqueued now.
    ///
    /// Returns true if there was any. Work enqueued meanwhile waits for the next round.
    private func runJobs(_ batch: inout [Work]) -> Bool {
        inbox.withLock { swap(&$0.work, &batch) }
        guard !batch.isEmpty else { return false }
        let executor = unsafe asUnownedSerialExecutor()
        for work in batch {
            switch work {
            case .job(let job): unsafe job.runSynchronously(on: executor)
            case .taskJob(let job, let task):
                unsafe job.runSynchronously(isolatedTo: executor, taskExecutor: task.asUnownedTaskExecutor())
            case .closure(let body): body()
            }
        }
        batch.removeAll(keepingCapacity: true)
        return true
    }

    /// Returns the nanoseconds until the next timer, -1 without one; `nil` ends the loop.
    private func prepareToSleep() -> Int64? {
        let untilTimer = timers.nanosecondsUntilNext()
        return inbox.withLock { inbox in
            guard inbox.work.isEmpty else { return 0 }
            guard !inbox.isStopping else { return nil }
            inbox.isAsleep = untilTimer != 0
            return untilTimer
        }
    }

    private func handle(_ event: epoll_event) {
        let key = unsafe event.data.u64
        guard key != Self.wakeupKey else { return wakeup.drain() }
        descriptors.handler(of: key)?(DescriptorEvents(events: unsafe event.events))
    }
}
