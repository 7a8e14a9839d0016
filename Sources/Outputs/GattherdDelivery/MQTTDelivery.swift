public import GattherdLog
public import GattherdMachines
public import GattherdModel
public import GattherdSync

/// Publishes every reading of the journal and the devices' state by MQTT, and answers requests.
///
/// The delivery has a thread of its own, shared with its connection. Readings come only from the journal, after their
/// commit. They are published in its order with QoS 1; see ``DeliveryMachine`` for the guarantees. Each session has a
/// new connection, so MQTT itself resends no packet.
///
/// After a reconnect, and at a start with a backlog, readings wait for ``DeliveryMachine/Options/reconnectPause``, so
/// that subscribers of the same broker return first. With MQTT 5 the broker reports readings without a subscriber. If
/// no subscriber of the session before has returned, readings wait up to ``DeliveryMachine/Options/subscriberTimeout``.
/// A later subscriber without a persistent session misses the readings published meanwhile.
public actor MQTTDelivery {
    public typealias ControlHandler = @Sendable (ControlRequest) async -> Result<ControlValue, ControlError>
    /// Receives the members of a ``LifecycleEvent`` about the broker connection; never blocks.
    public typealias EventHandler = @Sendable (KeyValuePairs<String, SampleValue?>) -> Void
    public typealias BridgeHandler = @Sendable (BridgeRequest) async -> Result<BridgeReply, BridgeFailure>

    public nonisolated let counters = DeliveryCounters()
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe context.loop.asUnownedSerialExecutor() }

    private nonisolated let context: DeliveryContext
    private nonisolated let board = DeliveryBoard()
    private nonisolated let inbox = DeliveryInbox()
    private nonisolated let requests: RequestService
    private let runner: DeliveryRunner

    /// Creates the delivery without a connection; see ``run()``.
    ///
    /// - Parameters:
    ///   - settings: The broker and the publishing rules.
    ///   - readings: The journal.
    ///   - log: The log for people.
    ///   - setControl: Sets a control; may suspend while others are served.
    ///   - askBridge: Handles a request to the gateway.
    ///   - record: Records the events of the broker connection.
    public init(
        _ settings: DeliverySettings,
        readings: any JournalConsumer,
        log: Log,
        setControl: @escaping ControlHandler,
        askBridge: @escaping BridgeHandler,
        record: @escaping EventHandler
    ) {
        context = DeliveryContext(settings, counters, DeliveryLogger(settings, log, record))
        requests = RequestService(context, setControl: setControl, askBridge: askBridge)
        runner = DeliveryRunner(context, board, requests, readings)
    }

    deinit {
        context.loop.stop()
    }

    /// Delivers until ``stop(within:)`` or until its task is cancelled; once only.
    ///
    /// A cancelled task publishes no backlog, but disconnects cleanly within a bound.
    public func run() async {
        let executor = LoopTaskExecutor(context.loop)
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                runner.step(.start)
                group.addTask(executorPreference: executor) { await self.followHead() }
                group.addTask { await self.requests.serve { await self.post($0) } }
                while let job = await runner.nextJob() {
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

    /// The state of the session, to be watched.
    public nonisolated var session: LatestValue<DeliveryMachine.SessionState> { board.session }

    /// The current state of delivery; callable from any thread.
    public nonisolated var deliveryStatus: DeliveryStatus { board.status }

    public nonisolated var name: String { "mqtt" }

    public nonisolated var status: OutputStatus {
        var status = OutputStatus(deliveryStatus, target: context.settings.target, elapsed: context.now)
        status.delivered = counters.acknowledged.value
        status.skipped = counters.refused.value
        status.errors = counters.failures.value
        return status
    }

    nonisolated func requestStop(drain: Duration) {
        context.loop.execute { self.assumeIsolated { $0.runner.stop(drain: drain) } }
    }

    private func followHead() async {
        await runner.followHead()
    }

    private func run(_ job: DeliveryRunner.Job) async {
        await runner.run(job)
    }

    private func post(_ response: MQTTResponse) {
        runner.post(response)
    }
}

/// The entry points for the rest of the daemon, callable from any thread.
extension MQTTDelivery: Output, Announcer {
    public nonisolated func update(_ status: LinkStatus) {
        write { $0.update(status) }
    }

    public nonisolated func remove(device: String) {
        write { $0.remove(device) }
    }

    public nonisolated func describe(_ device: DeviceDescription) {
        write { $0.describe(device) }
    }

    public nonisolated func update(_ lease: DeviceLease) {
        write { $0.update(lease) }
    }

    public nonisolated func announce(_ event: LifecycleEvent) {
        write { if !$0.append(event) { counters.eventsDropped.add() } }
    }

    /// Sets the devices of the gateway and clears retained messages of all others.
    ///
    /// - Parameter addresses: The peripherals' addresses by the devices' names.
    public nonisolated func enrol(_ addresses: [String: String]) {
        write { $0.enrolled = addresses }
    }

    /// Sets the raised alerts.
    public nonisolated func setAlerts(_ alerts: [ActiveAlert]) {
        write { $0.alerts = alerts }
    }

    /// Sets the payload of `bridge/health`, a JSON object.
    public nonisolated func setHealth(_ json: [UInt8]) {
        write { $0.health = json }
    }

    /// Sets the payload of `bridge/info`, a JSON object.
    public nonisolated func setInfo(_ json: [UInt8]) {
        write { $0.info = json }
    }

    /// Applies new rules, permissions, names and alerts; readings and sets in progress may still follow the old ones.
    public nonisolated func apply(
        _ publishing: PublishingRules,
        _ permissions: ControlPermissions,
        _ presentation: Presentation = Presentation()
    ) {
        let arePermissionsNew = context.permissions.withLock { current in
            defer { current = permissions }
            return current != permissions
        }
        let isPresentationNew = context.presentation.withLock { current in
            defer { current = presentation }
            return current != presentation
        }
        context.loop.execute {
            self.assumeIsolated {
                $0.runner.apply(publishing, areDescriptionsNew: arePermissionsNew || isPresentationNew)
            }
        }
    }

    private nonisolated func write(_ change: (inout DeliveryChanges) -> Void) {
        guard inbox.write(change) else { return }
        context.loop.execute { self.assumeIsolated { $0.runner.apply($0.inbox.drain()) } }
    }
}
