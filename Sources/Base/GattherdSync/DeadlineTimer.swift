/// An event loop with a clock that starts at zero.
package struct LoopTime: Sendable {
    package let loop: EventLoop
    private let origin = SuspendingClock.now

    package init(_ loop: EventLoop) {
        self.loop = loop
    }

    /// The time since the creation; time in which the system is suspended does not count.
    package var now: Duration { SuspendingClock.now - origin }
}

/// A timer that follows a changing deadline; on the loop's thread only.
package final class DeadlineTimer {
    private let time: LoopTime
    private var scheduled: (timer: LoopTimer, deadline: Duration)?

    package init(_ time: LoopTime) {
        self.time = time
    }

    /// True until the deadline.
    package var isSet: Bool { scheduled != nil }

    /// Calls `action` at the deadline, which replaces an earlier one; `nil` cancels the timer.
    package func set(_ deadline: Duration?, _ action: @escaping () -> Void = {}) {
        guard deadline != scheduled?.deadline else { return }
        if let scheduled { time.loop.cancel(scheduled.timer) }
        scheduled = deadline.map { deadline in
            let timer = time.loop.schedule(after: deadline - time.now) { [weak self] in
                self?.scheduled = nil
                action()
            }
            return (timer, deadline)
        }
    }
}

/// Asynchronous jobs in order, for one consumer.
package final class JobQueue<Job: Sendable> {
    private var jobs: [Job] = []
    private var consumer: CheckedContinuation<Void, Never>?
    private var isFinished = false

    package init() {}

    package func append(_ job: Job) {
        jobs.append(job)
        wakeConsumer()
    }

    /// Ends the queue; jobs that are queued are still returned.
    package func finish() {
        isFinished = true
        wakeConsumer()
    }

    /// Dequeues the next job; `nil` at the end.
    ///
    /// Ignores cancellation, as disconnecting needs jobs as well.
    package func next() async -> Job? {
        while jobs.isEmpty {
            guard !isFinished else { return nil }
            await withCheckedContinuation { consumer = $0 }
        }
        return jobs.removeFirst()
    }

    private func wakeConsumer() {
        consumer?.resume()
        consumer = nil
    }
}
