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
///
/// A deadline that moves to a later time keeps its place in the loop, which then wakes up once in vain.
package final class DeadlineTimer {
    private let time: LoopTime
    private var deadline: Duration?
    private var action: () -> Void = {}
    /// The timer of the loop and its time, at most the deadline.
    private var scheduled: (timer: LoopTimer, time: Duration)?

    package init(_ time: LoopTime) {
        self.time = time
    }

    /// True until the deadline.
    package var isSet: Bool { deadline != nil }

    /// Calls `action` at the deadline, which replaces an earlier one; `nil` cancels the timer.
    package func set(_ deadline: Duration?, _ action: @escaping () -> Void = {}) {
        guard deadline != self.deadline else { return }
        self.deadline = deadline
        self.action = deadline == nil ? {} : action
        if let scheduled, deadline.map({ $0 < scheduled.time }) ?? true {
            time.loop.cancel(scheduled.timer)
            self.scheduled = nil
        }
        if let deadline, scheduled == nil { schedule(deadline) }
    }

    private func schedule(_ deadline: Duration) {
        let timer = time.loop.schedule(after: deadline - time.now) { [weak self] in self?.fire() }
        scheduled = (timer, deadline)
    }

    private func fire() {
        guard let scheduled, let deadline else { return }
        self.scheduled = nil
        guard deadline <= scheduled.time else { return schedule(deadline) }
        self.deadline = nil
        let action = action
        self.action = {}
        action()
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
