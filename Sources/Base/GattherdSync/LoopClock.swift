import CLinux
import Glibc

/// A clock for tasks that uses the timers of an event loop.
///
/// Time in which the system is suspended does not count.
///
/// The standard clocks wake the process once a second after their first use, and keep the timers of cancelled sleeps
/// until their deadlines.
public struct LoopClock: Clock {
    private let loop: EventLoop

    /// - Parameter loop: The loop, which must not be stopped while a task sleeps.
    public init(_ loop: EventLoop) {
        self.loop = loop
    }

    public var now: SuspendingClock.Instant { .now }

    public var minimumResolution: Duration { .nanoseconds(1) }

    /// - Parameters:
    ///   - deadline: The end of the sleep.
    ///   - tolerance: Ignored: the timers are exact.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func sleep(until deadline: SuspendingClock.Instant, tolerance: Duration? = nil) async throws {
        let delay = LoopConfined(LoopDelay(), to: loop)
        await withTaskCancellationHandler {
            await withCheckedContinuation { sleeper in
                loop.execute { [loop] in
                    delay.value.begin(sleeper, until: deadline, on: loop) { delay.value.end(on: loop) }
                }
            }
        } onCancel: {
            loop.execute { [loop] in delay.value.end(on: loop) }
        }
        try Task.checkCancellation()
    }
}

extension Clock where Self == LoopClock {
    /// The clock of ``EventLoop/tasks``.
    public static var loop: LoopClock { LoopClock(.tasks) }
}

extension EventLoop {
    /// The loop for sleeping tasks of the whole program; never stopped.
    public static let tasks = EventLoop(name: "tasks")
}

/// One sleep of a task.
private struct LoopDelay {
    private var sleeper: CheckedContinuation<Void, Never>?
    private var timer: LoopTimer?
    private var isOver = false

    /// Starts the timer; resumes at once if the sleep was cancelled before.
    mutating func begin(
        _ sleeper: sending CheckedContinuation<Void, Never>,
        until deadline: SuspendingClock.Instant,
        on loop: EventLoop,
        end: @escaping () -> Void
    ) {
        guard !isOver else { return sleeper.resume() }
        self.sleeper = sleeper
        timer = loop.schedule(after: deadline - .now, end)
    }

    mutating func end(on loop: EventLoop) {
        isOver = true
        if let timer { loop.cancel(timer) }
        sleeper?.resume()
        sleeper = nil
    }
}

/// Runs `body` for at most `limit`, then cancels it.
public func wait(atMost limit: Duration, for body: @escaping @Sendable () async -> Void) async {
    await withTaskGroup { group in
        group.addTask { await body() }
        group.addTask { try? await Task.sleep(for: limit, clock: .loop) }
        await group.next()
        group.cancelAll()
    }
}

/// The system's time in UTC, which may be wrong and may jump.
public enum WallClock {
    /// Microseconds since 1970.
    public static var microseconds: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}
