public import GattherdLog
public import GattherdMachines
public import GattherdModel
public import GattherdSync

/// Publishes every reading of the journal and the devices' state by MQTT, and answers requests.
///
/// The delivery has a thread of its own, shared with its connection. Readings come only from the journal, after their
/// commit. They are published in its order with QoS 1; see ``DeliveryMachine`` for the guarantees. A new session is a
/// new connection: nothing is resent below this layer.
///
/// After a reconnect, and at a start with a backlog, readings wait for ``DeliveryMachine/Options/settle``, so that
/// subscribers of the same broker return first. With MQTT 5 the broker reports readings without a receiver. If no
/// subscriber of the session before has returned, readings wait up to ``DeliveryMachine/Options/subscriberPatience``. A
/// later subscriber without a session of its own at the broker misses the readings published meanwhile.
public actor MQTTDelivery {
    public typealias ControlHandler = @Sendable (ControlRequest) async -> Result<ControlValue, ControlError>
    /// Receives the members of a ``LifecycleEvent`` about the broker connection; never blocks.
    public typealias EventHandler = @Sendable (KeyValuePairs<String, SampleValue?>) -> Void
    public typealias BridgeHandler = @Sendable (BridgeRequest) async -> Result<BridgeReply, BridgeFailure>

    /// The state of the session, to be watched.
    public nonisolated let session = LatestValue(DeliveryMachine.Session.idle)
    public nonisolated let counters = DeliveryCounters()
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    nonisolated let loop = EventLoop(name: "mqtt")
    nonisolated let settings: DeliverySettings
    nonisolated let topics: Topics
    nonisolated let home: HomeAssistant
    nonisolated let readings: any ReadingJournal
    nonisolated let permissions: Locked<ControlPermissions>
    nonisolated let log: Log
    nonisolated let setControl: ControlHandler
    nonisolated let askBridge: BridgeHandler
    nonisolated let record: EventHandler
    nonisolated let inbox = Locked(DeliveryInbox())
    private var reportedState: DeliveryMachine.Session?
    private nonisolated let lastStatus = Locked(DeliveryStatus())
    /// Requests on their way to their handlers; never full, as ``load`` is bounded as well.
    nonisolated let requests = AsyncStream.makeStream(
        of: Request.self,
        bufferingPolicy: .bufferingOldest(RequestLoad.maximumCount)
    )
    private nonisolated let origin = SuspendingClock.now

    var publishing: PublishingRules {
        didSet { isSelective = !publishing.isEverything }
    }
    /// True if a stream's policy suppresses readings.
    private(set) var isSelective: Bool
    var machine: DeliveryMachine
    var link: BrokerLink?
    var outbox = PublishQueue()
    var devices: [String: LinkStatus] = [:]
    /// The devices removed lately, the newest last; at most ``maximumRemoved``.
    var removed: [String] = []
    /// Devices with a removed device's name, whose old messages could not be cleared for lack of a session.
    var successors: Set<String> = []
    var descriptions: [String: DeviceDescription] = [:]
    /// The addresses of all devices, by name; `nil` until they are known.
    var enrolled: [String: String]?
    var info: [UInt8]?
    var load = RequestLoad()
    var filter = DeliveryFilter()
    var busyTopics: BusyTopics
    var refusals: TopicRefusals
    /// States and subscriptions whose topics are set aside, by topic; at most as many as there are refusals.
    var heldStates: [String: PublishQueue.State] = [:]
    /// The timer of the next attempt at one of ``heldStates``.
    var retryTimer: (timer: LoopTimer, deadline: Duration)?
    /// The time until which responses use the gateway's own topics only.
    var chosenTopicsRefusedUntil: Duration?
    /// Dialling attempts whose thread has not ended.
    var dials = 0
    /// True if the broker refused the session because of its retained will.
    var isRetainedWillRefused = false
    /// The index of the broker's address to try next.
    var nextAddress = 0
    var deliveryLogger = DeliveryLogger()
    private var events: [DeliveryMachine.Event] = []
    private var isStepping = false
    private var timer: (timer: LoopTimer, deadline: Duration)?
    private var jobs: [Job] = []
    private var jobWaiter: CheckedContinuation<Void, Never>?
    /// True after the last session; nothing is published any more.
    private(set) var isFinished = false

    /// Creates the delivery without a connection; see ``run()``.
    ///
    /// - Parameters:
    /// - settings: The broker and the publishing rules.
    /// - readings: The journal.
    /// - log: The log for people.
    /// - setControl: Sets a control; may suspend while others are served.
    /// - askBridge: Handles a request to the gateway.
    /// - record: Records the events of the broker connection.
    public init(
        _ settings: DeliverySettings,
        readings: any ReadingJournal,
        log: Log,
        setControl: @escaping ControlHandler,
        askBridge: @escaping BridgeHandler,
        record: @escaping EventHandler
    ) {
        self.settings = settings
        self.readings = readings
        self.log = log
        self.setControl = setControl
        self.askBridge = askBridge
        self.record = record
        publishing = settings.publishing
        isSelective = !settings.publishing.isEverything
        permissions = Locked(settings.permissions)
        topics = Topics(gateway: settings.gateway)
        home = HomeAssistant(
            topics: topics,
            prefix: settings.homeAssistant.prefix,
            version: settings.homeAssistant.version
        )
        machine = DeliveryMachine(options: settings.options, seed: .random(in: .min ... .max))
        refusals = TopicRefusals(settings.options.topics)
        busyTopics = BusyTopics(patience: settings.options.busyPatience)
    }

    deinit {
        loop.stop()
    }

    /// Delivers until ``stop(within:)`` or until its task is cancelled; once only.
    ///
    /// A cancelled task publishes no backlog, but disconnects cleanly within a bound.
    public func run() async {
        let executor = LoopTaskExecutor(loop)
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                step(.start)
                group.addTask(executorPreference: executor) { await self.followHead() }
                group.addTask { await self.serve() }
                while let job = await nextJob() {
                    group.addTask(executorPreference: executor) { await self.run(job) }
                }
                group.cancelAll()
            }
        } onCancel: {
            requestStop(drain: .zero)
        }
    }

    /// Publishes the backlog for at most `limit`, disconnects, and makes ``run()`` end.
    ///
    /// Returns after that; disconnecting adds at most twice ``DeliveryMachine/Options/stopLimit``.
    public nonisolated func stop(within limit: Duration) async {
        requestStop(drain: limit)
        for await state in session.watch() where state == .stopped { return }
    }

    public func roundTrip() {}

    /// The current state of delivery; callable from any thread.
    public nonisolated var status: DeliveryStatus { lastStatus.withLock { $0 } }

    private nonisolated func requestStop(drain: Duration) {
        loop.execute { self.assumeIsolated { $0.step(.stop(drain: drain)) } }
    }

    var now: Duration { SuspendingClock.now - origin }

    /// Passes an event to the machine and performs its effects; events caused by them follow.
    func step(_ event: DeliveryMachine.Event) {
        events.append(event)
        guard !isStepping else { return }
        isStepping = true
        while !events.isEmpty {
            for effect in machine.handle(events.removeFirst(), at: now) { perform(effect) }
        }
        isStepping = false
        watchLink()
        armTimer()
        report()
    }

    private func perform(_ effect: DeliveryMachine.Effect) {
        switch effect {
        case .loadCursor: enqueue(.load)
        case .fetch(let after, let limit): fetchNow(after: after, limit: limit)
        case .save(let seq): enqueue(.save(seq))
        case .connect(let session): enqueue(.dial(session: session))
        case .open: open()
        case .publish(let session, let readings, let again): publish(readings, again: again, session: session)
        case .publishOffline: publishOffline()
        case .close(let session): close(session)
        case .report(let report): logReport(report)
        case .finish:
            isFinished = true
            counters.answersDropped.add(UInt64(outbox.responses.messageCount))
            wakeJobs()
        }
    }

    private func armTimer() {
        let deadline = machine.deadline
        guard deadline != timer?.deadline else { return }
        if let timer { loop.cancel(timer.timer) }
        timer = deadline.map { deadline in
            let timer = loop.schedule(after: deadline - now) { [weak self] in
                self?.assumeIsolated { $0.timerFired() }
            }
            return (timer, deadline)
        }
    }

    private func timerFired() {
        timer = nil
        step(.tick)
    }

    /// Publishes the current state in ``status`` and ``session``.
    func report() {
        var status = DeliveryStatus()
        status.session = machine.state
        status.lastError = deliveryLogger.lastFault?.detail
        status.cursor = machine.cursor
        status.backlog = machine.backlog
        status.inFlight = machine.inFlight
        status.pause = machine.pause(at: now)
        status.refusals = refusals.all
        lastStatus.withLock { [status] in $0 = status }
        guard machine.state != reportedState else { return }
        reportedState = machine.state
        session.set(machine.state)
    }
}

/// Asynchronous jobs, which leave the loop free meanwhile.
extension MQTTDelivery {
    enum Job: Sendable {
        case dial(session: Int)
        case load
        case fetch(after: Int64, limit: Int)
        case save(Int64)
    }

    func enqueue(_ job: Job) {
        jobs.append(job)
        wakeJobs()
    }

    private func wakeJobs() {
        jobWaiter?.resume()
        jobWaiter = nil
    }

    /// Dequeues the next job; ignores cancellation, as disconnecting needs jobs as well.
    private func nextJob() async -> Job? {
        while jobs.isEmpty {
            guard !isFinished else { return nil }
            await withCheckedContinuation { jobWaiter = $0 }
        }
        return jobs.removeFirst()
    }

    private func run(_ job: Job) async {
        switch job {
        case .dial(let session): await dial(session)
        case .load: await load()
        case .fetch(let after, let limit): await fetch(after: after, limit: limit)
        case .save(let seq): await save(seq)
        }
    }
}
