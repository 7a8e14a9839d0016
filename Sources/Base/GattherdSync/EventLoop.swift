import CLinux
import Glibc
import Synchronization

/// Ends the sleep of a loop's thread; lives on until all who ring have, even when the loop is gone.
private final class Wakeup: Sendable {
    /// Negative when there was none left.
    let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    deinit {
        close(descriptor)
    }

    func ring() {
        eventfd_write(descriptor, 1)
    }

    func hush() {
        var count: UInt64 = 0
        unsafe eventfd_read(descriptor, &count)
    }
}

/// One thread that waits for descriptors, timers and jobs: a run loop that is also an actor's executor.
///
/// An actor whose `unownedExecutor` is a loop shares the thread with the loop's handlers: what they
/// call is already on the actor; for tasks there is ``LoopTaskExecutor``. Nothing wakes up periodically.
///
/// `@unchecked Sendable` is safe: `watchers`, `nextGeneration` and `timers` are touched on the loop's thread only,
/// which each of their entrances checks.
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

        /// For the first who comes after the thread went to sleep: that one has to ring.
        mutating func takeAsleep() -> Wakeup? {
            defer { isAsleep = false }
            return isAsleep ? wakeup : nil
        }

        /// True for the first who comes after the thread has ended: that one has to start another.
        mutating func takeEnded() -> Bool {
            defer { hasThread = true }
            return !hasThread
        }
    }

    private let name: String
    private let inbox: Locked<Inbox>
    private let wakeup: Wakeup
    let poll: Int32
    private let thread = Atomic<UInt>(0)
    var watchers: [Int32: Watcher] = [:]
    var nextGeneration: UInt32 = 0
    var timers = TimerQueue()

    /// Starts the thread.
    ///
    /// - Parameter name: What `top -H` and debuggers show; at most 15 octets.
    public init(name: String) {
        self.name = name
        poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        wakeup = Wakeup()
        inbox = Locked(Inbox(wakeup: wakeup))
        precondition(poll >= 0 && wakeup.descriptor >= 0, "no descriptors left for an event loop: \(errno)")
        var event = unsafe epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: Self.wakeupKey))
        unsafe epoll_ctl(poll, EPOLL_CTL_ADD, wakeup.descriptor, &event)
        startThread()
    }

    deinit {
        Glibc.close(poll)
    }

    /// True on the loop's own thread.
    public var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Runs `body` on the loop, after what was enqueued before; may be called from any thread.
    public func execute(_ body: @escaping @Sendable () -> Void) {
        enqueue(.closure(body))
    }

    /// Ends the thread once everything that is enqueued has run; may be called from any thread.
    ///
    /// Descriptors and timers are forgotten. Jobs that come later are still done, on a thread that ends with them,
    /// so that nobody waits for ever.
    public func stop() {
        let wakeup = inbox.withLock { inbox in
            inbox.isStopping = true
            return inbox.takeAsleep()
        }
        wakeup?.ring()
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

    /// Adds work for the thread.
    ///
    /// The run-time does not keep an executor alive: as soon as the lock is free, the thread may have done the work, and
    /// the loop may be gone with who owned it. Only a thread that has to be started has not.
    func enqueue(_ work: Work) {
        let (wakeup, hadEnded) = inbox.withLock { inbox in
            inbox.work.append(work)
            return (inbox.takeAsleep(), inbox.takeEnded())
        }
        wakeup?.ring()
        if hadEnded { startThread() }
    }

    private func startThread() {
        _ = NamedThread(name: name) { [self] in run() }
    }
}

extension EventLoop {
    static let wakeupKey = UInt64.max
    /// Jobs often lead to others at once; so many times these go before descriptors and timers.
    private static let roundsPerTurn = 16

    private func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        repeat {
            runTurns()
            letGo()
        } while !mayEnd()
    }

    /// Frees all handlers, outside of any access to their tables: what they held may call ``unwatch(_:)`` as it goes.
    private func letGo() {
        withExtendedLifetime((watchers, timers)) {
            watchers.removeAll()
            timers.removeAll()
        }
    }

    private func runTurns() {
        var batch: [Work] = []
        var events = unsafe [epoll_event](repeating: epoll_event(), count: 64)
        while true {
            for _ in 0..<Self.roundsPerTurn where !runJobs(&batch) { break }
            fireTimers()
            guard let timeout = prepareToSleep() else { break }
            let count = unsafe clinux_epoll_wait(poll, &events, Int32(events.count), timeout)
            inbox.withLock { $0.isAsleep = false }
            for index in 0..<max(0, Int(count)) { unsafe handle(events[index]) }
        }
    }

    private func mayEnd() -> Bool {
        inbox.withLock { inbox in
            guard inbox.work.isEmpty else { return false }
            inbox.hasThread = false
            return true
        }
    }

    /// Runs what was enqueued until now, and says whether that was anything; what it enqueues waits for the next round.
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

    /// The nanoseconds until the nearest timer, -1 without one; `nil` ends the loop.
    private func prepareToSleep() -> Int64? {
        let untilTimer = nanosecondsUntilTimer()
        return inbox.withLock { inbox in
            guard inbox.work.isEmpty else { return 0 }
            guard !inbox.isStopping else { return nil }
            inbox.isAsleep = untilTimer != 0
            return untilTimer
        }
    }

    private func handle(_ event: epoll_event) {
        let key = unsafe event.data.u64
        guard key != Self.wakeupKey else { return wakeup.hush() }
        unsafe dispatch(DescriptorEvents(events: event.events), key: key)
    }
}
