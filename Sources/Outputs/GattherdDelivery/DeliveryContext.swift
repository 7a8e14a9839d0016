import GattherdMachines
import GattherdSync

/// The constants that all parts of a delivery share, with its event loop and clock.
final class DeliveryContext: Sendable {
    let settings: DeliverySettings
    let topics: Topics
    let home: HomeAssistant
    let counters: DeliveryCounters
    let logger: DeliveryLogger
    /// The controls that MQTT may set; a reload replaces them.
    let permissions: Locked<ControlPermissions>
    /// The publishing rules; a reload replaces them.
    let publishing: Locked<PublishingRules>
    let loop = EventLoop(name: "mqtt")
    private let origin = SuspendingClock.now

    init(_ settings: DeliverySettings, _ counters: DeliveryCounters, _ logger: DeliveryLogger) {
        self.settings = settings
        self.counters = counters
        self.logger = logger
        permissions = Locked(settings.permissions)
        publishing = Locked(settings.publishing)
        topics = Topics(base: settings.baseTopic)
        home = HomeAssistant(
            topics: topics,
            gateway: settings.gateway,
            prefix: settings.homeAssistant.prefix,
            version: settings.homeAssistant.version
        )
    }

    /// The time since the creation; time in which the system is suspended does not count.
    var now: Duration { SuspendingClock.now - origin }
}

/// A timer that follows a changing deadline; on the loop's thread only.
final class DeadlineTimer {
    private let context: DeliveryContext
    private var scheduled: (timer: LoopTimer, deadline: Duration)?

    init(_ context: DeliveryContext) {
        self.context = context
    }

    /// True until the deadline.
    var isSet: Bool { scheduled != nil }

    /// Calls `action` at the deadline, which replaces an earlier one; `nil` cancels the timer.
    func set(_ deadline: Duration?, _ action: @escaping () -> Void = {}) {
        guard deadline != scheduled?.deadline else { return }
        if let scheduled { context.loop.cancel(scheduled.timer) }
        scheduled = deadline.map { deadline in
            let timer = context.loop.schedule(after: deadline - context.now) { [weak self] in
                self?.scheduled = nil
                action()
            }
            return (timer, deadline)
        }
    }
}

/// Asynchronous jobs in order, for one consumer.
final class JobQueue<Job: Sendable> {
    private var jobs: [Job] = []
    private var consumer: CheckedContinuation<Void, Never>?
    private var isFinished = false

    func append(_ job: Job) {
        jobs.append(job)
        wakeConsumer()
    }

    /// Ends the queue; jobs that are queued are still returned.
    func finish() {
        isFinished = true
        wakeConsumer()
    }

    /// Dequeues the next job; `nil` at the end.
    ///
    /// Ignores cancellation, as disconnecting needs jobs as well.
    func next() async -> Job? {
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
