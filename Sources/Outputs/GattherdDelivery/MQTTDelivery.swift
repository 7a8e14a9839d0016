public import GattherdLog
public import GattherdMachines
public import GattherdModel
public import GattherdSync

/// Publishes every reading of the log by MQTT, the herd's state, and answers requests.
///
/// It has a thread of its own, which its connection uses as well. Readings come from the log only, after
/// their commit, and go out in its order with QoS 1; see ``DeliveryMachine`` for what is promised. A new
/// session is a new connection: nothing hidden is sent again.
///
/// After a reconnect, and at a start with a backlog, readings wait for ``DeliveryMachine/Options/settle``, so
/// that subscribers who lost the same broker are back first. With MQTT 5 the broker says when nobody received a
/// reading; if no subscriber of the session before has returned, that lasts up to
/// ``DeliveryMachine/Options/subscriberPatience``. A subscriber that returns later, without a session of its own
/// at the broker, misses what was published meanwhile.
public actor MQTTDelivery {
    public typealias ControlHandler = @Sendable (ControlRequest) async -> Result<ControlValue, ControlError>
    /// Takes what happened between us and the broker, the members of a ``LifecycleEvent``; never blocks.
    public typealias EventHandler = @Sendable (KeyValuePairs<String, SampleValue?>) -> Void
    public typealias BridgeHandler = @Sendable (BridgeRequest) async -> Result<BridgeReply, BridgeFailure>

    /// Where the session stands, for whoever wants to watch.
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
    /// Requests on their way to whoever fulfils them; never full, for ``load`` is bounded as well.
    nonisolated let requests = AsyncStream.makeStream(
        of: Request.self,
        bufferingPolicy: .bufferingOldest(RequestLoad.maximumCount)
    )
    private nonisolated let origin = SuspendingClock.now

    var publishing: PublishingRules {
        didSet { isSelective = !publishing.isEverything }
    }
    /// Some stream's policy wants less than everything.
    private(set) var isSelective: Bool
    var machine: DeliveryMachine
    var link: BrokerLink?
    var outbox = PublishQueue()
    var devices: [String: LinkStatus] = [:]
    /// Those that were removed lately, the newest last; at most ``maximumRemoved``.
    var removed: [String] = []
    /// Devices that have the name of one that was removed while there was no session to clear what was of that one.
    var successors: Set<String> = []
    var descriptions: [String: DeviceDescription] = [:]
    /// The addresses of all devices, by name; `nil` until they are told.
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
    /// The time until which responses are published on the gateway's own topics only.
    var chosenTopicsRefusedUntil: Duration?
    /// Attempts whose thread has not ended.
    var dials = 0
    /// The broker refused us for it.
    var isRetainedWillRefused = false
    /// Which of the broker's addresses is tried next.
    var nextAddress = 0
    var narrator = DeliveryLogger()
    private var events: [DeliveryMachine.Event] = []
    private var isStepping = false
    private var timer: (timer: LoopTimer, deadline: Duration)?
    private var errands: [Errand] = []
    private var errandWaiter: CheckedContinuation<Void, Never>?
    /// True after the last session; nothing is published any more.
    private(set) var isFinished = false

    /// Connects nothing yet; see ``run()``.
    ///
    /// - Parameters:
    ///   - settings: Where and how.
    ///   - readings: The log.
    ///   - log: For people.
    ///   - setControl: Sets a control; may take its time, others are served meanwhile.
    ///   - askBridge: Does what the gateway as a whole is asked.
    ///   - record: Keeps what happens between us and the broker.
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
    /// A cancelled task does not publish what is left, but says goodbye within a bound.
    public func run() async {
        let executor = LoopTaskExecutor(loop)
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                step(.start)
                group.addTask(executorPreference: executor) { await self.followHead() }
                group.addTask { await self.serve() }
                while let errand = await nextErrand() {
                    group.addTask(executorPreference: executor) { await self.run(errand) }
                }
                group.cancelAll()
            }
        } onCancel: {
            requestStop(drain: .zero)
        }
    }

    /// Publishes what is left for at most `limit`, says goodbye, and makes ``run()`` end.
    ///
    /// Returns when that has happened; the goodbye adds at most twice ``DeliveryMachine/Options/farewell``.
    public nonisolated func stop(within limit: Duration) async {
        requestStop(drain: limit)
        for await state in session.watch() where state == .stopped { return }
    }

    public func pulse() {}

    /// Where delivery stands now; from any thread.
    public nonisolated var status: DeliveryStatus { lastStatus.withLock { $0 } }

    private nonisolated func requestStop(drain: Duration) {
        loop.execute { self.assumeIsolated { $0.step(.stop(drain: drain)) } }
    }

    var now: Duration { SuspendingClock.now - origin }

    /// Tells the machine and does what it asks for; what that leads to is told next.
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
        case .sayFarewell: sayFarewell()
        case .close(let session): close(session)
        case .report(let remark): narrate(remark)
        case .finish:
            isFinished = true
            counters.answersDropped.add(UInt64(outbox.responses.messageCount))
            wakeErrands()
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

    /// Makes the present state visible in ``status`` and ``session``.
    func report() {
        var status = DeliveryStatus()
        status.session = machine.state
        status.lastError = narrator.lastFault?.detail
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

/// What is done by awaiting others, so that the loop goes on meanwhile.
extension MQTTDelivery {
    enum Errand: Sendable {
        case dial(session: Int)
        case load
        case fetch(after: Int64, limit: Int)
        case save(Int64)
    }

    func enqueue(_ errand: Errand) {
        errands.append(errand)
        wakeErrands()
    }

    private func wakeErrands() {
        errandWaiter?.resume()
        errandWaiter = nil
    }

    /// Deaf to cancellation: the goodbye needs errands as well.
    private func nextErrand() async -> Errand? {
        while errands.isEmpty {
            guard !isFinished else { return nil }
            await withCheckedContinuation { errandWaiter = $0 }
        }
        return errands.removeFirst()
    }

    private func run(_ errand: Errand) async {
        switch errand {
        case .dial(let session): await dial(session)
        case .load: await load()
        case .fetch(let after, let limit): await fetch(after: after, limit: limit)
        case .save(let seq): await save(seq)
        }
    }
}
