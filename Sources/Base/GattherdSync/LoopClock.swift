/// Time for tasks by an event loop's timers; suspended time does not count.
///
/// What the standard clocks sleep by wakes up once a second for ever as soon as it was used, to look after its threads,
/// and keeps the timer of a sleep that is cancelled until it would have ended.
public struct LoopClock: Clock {
    private let loop: EventLoop

    /// - Parameter loop: Must not be stopped while somebody sleeps.
    public init(_ loop: EventLoop) {
        self.loop = loop
    }

    public var now: SuspendingClock.Instant { .now }

    public var minimumResolution: Duration { .nanoseconds(1) }

    /// - Parameters:
    ///   - deadline: When to wake up.
    ///   - tolerance: Of no effect: the loop's timers are exact.
    /// - Throws: `CancellationError`, at once.
    public func sleep(until deadline: SuspendingClock.Instant, tolerance: Duration? = nil) async throws {
        let nap = LoopConfined(LoopDelay(), to: loop)
        await withTaskCancellationHandler {
            await withCheckedContinuation { sleeper in
                loop.execute { [loop] in
                    nap.value.begin(sleeper, until: deadline, on: loop) { nap.value.end(on: loop) }
                }
            }
        } onCancel: {
            loop.execute { [loop] in nap.value.end(on: loop) }
        }
        try Task.checkCancellation()
    }
}

extension Clock where Self == LoopClock {
    /// The clock of ``EventLoop/tasks``.
    public static var loop: LoopClock { LoopClock(.tasks) }
}

extension EventLoop {
    /// The loop for a program's tasks that belong to no actor; never stopped.
    public static let tasks = EventLoop(name: "tasks")
}

/// One sleep.
private struct LoopDelay {
    private var sleeper: CheckedContinuation<Void, Never>?
    private var timer: LoopTimer?
    private var isOver = false

    /// Wakes the sleeper at once when the sleep was cancelled before.
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
