public import GattherdBluetooth
public import GattherdDBus
import GattherdGATT
public import GattherdLog
public import GattherdSync

/// The central role on org.bluez.
///
/// ``run()`` keeps the bus open and the objects known until ``close()``. Before and in between, operations fail with
/// ``BluetoothError/Kind/serviceUnavailable``. Everything happens on one loop, so that signals and calls never overlap.
///
/// ``CentralEvent/disconnected(_:)`` is published whenever a connected peripheral is connected no longer: BlueZ reports
/// it, or removes the object, or the adapter is switched off or removed. When bluetoothd or the bus is lost,
/// ``CentralEvent/unavailable(detail:)`` alone stands for all of that.
public actor BlueZCentral: ClientBackend {
    /// The time limits of bluetoothd and of its messages.
    public struct Limits: Hashable, Sendable {
        /// The limit of a call without a radio operation, and of one ATT transaction; ATT's own limit is 30 s.
        public var operation = Duration.seconds(10)
        /// The limit of a liveness check.
        public var livenessCheck = Duration.seconds(5)
        /// The limit of the list of all objects.
        public var load = Duration.seconds(30)
        /// The first and the longest pause between attempts to reach the bus or bluetoothd.
        public var retry = Duration.milliseconds(250)...Duration.seconds(10)
        /// The time without changes after which a GATT table that has grown may be read: other additions, or the
        /// removals, may follow at the pace of the radio.
        public var quietAfterGrowth = Duration.seconds(5)
        /// The time without changes after which a GATT table that has shrunk may be read.
        ///
        /// Removals come last and all at once, but a busy bluetoothd may signal additions a moment later.
        public var quietAfterShrinkage = Duration.milliseconds(500)
        /// The time without changes of a GATT table after which held sessions end: the last attributes may be removed
        /// long after the others were added.
        public var sessionHold = Duration.seconds(30)
        /// The longest wait of a signal in the bus for others, while many come.
        public var batchDelay = Duration.milliseconds(40)
        /// The number of unanswered calls at which the connection is renewed; the bus refuses calls at 128.
        public var unansweredCalls = 48
        /// The silence of bluetoothd after which its liveness is checked.
        public var livenessInterval = Duration.seconds(300)

        public init() {}
    }

    /// The longest wait for the answers to `AcquireNotify` when the central closes.
    static let acquisitionPatience = Duration.seconds(2)
    /// The longest wait for the objects of a GATT table that is reported as resolved.
    static let tablePatience = Duration.seconds(2)
    /// The time after a socket's end in which the signal of the link's end comes.
    static let linkEndDelay = Duration.milliseconds(500)
    /// The time after a link's end in which its reason, or the end of the adapter, comes.
    static let endReasonDelay = Duration.milliseconds(50)
    /// The number of round trips in which bluetoothd's loop sends what it has.
    static let catchUpRounds = 3
    /// The number of unanswered liveness checks after which the connection is renewed.
    static let mostMisses = 2
    /// The limit of a call that only orders messages.
    private static let roundTripLimit = Duration.seconds(2)

    let loop: EventLoop
    let limits: Limits
    let log: Log
    let address: DBusAddress
    private let ownsLoop: Bool
    private let queue = EventQueue()
    public nonisolated let events: AsyncStream<CentralEvent>

    // The connection.
    var bus: DBusConnection?
    /// The unique name of bluetoothd, while it is on the bus.
    var owner: String?
    /// True once the tree holds all objects of `owner`.
    var isLoaded = false
    /// True if bluetoothd sent anything since the last liveness check.
    var hasReceived = false
    /// The current liveness check; concurrent callers share its result.
    var livenessCheck: Task<Bool, Never>?
    /// The requests to load the objects and to register monitors.
    var refreshRequests: AsyncStream<Void>.Continuation?
    private(set) var isClosed = false
    private var isRunning = false
    /// True while the bus is left on purpose, which has been published.
    var isRenewing = false
    /// The detail of the last `unavailable` event; `nil` while available.
    private var unavailableDetail: String?
    /// True once `accessDenied` was published.
    private var isRefusalPublished = false

    // Objects and links.
    var tree = ObjectTree()
    let tableChanges: TableChanges
    let waiters: ChangeWaiters
    /// The peripherals that we connect or serve: only they may pair.
    var activePeripherals: Set<PeripheralID> = []

    // Values.
    let signals: SignalSequencer
    let notifier: SinkNotifier
    var subscriptions = Subscriptions()
    var writers = CommandWriters()

    // Scans and pairing.
    /// True once this bluetoothd has refused a discovery filter.
    var isFilterRefused = false
    /// The current advertisement subscription, if any.
    var advertisementWatch: AdvertisementWatch?
    var pairing = PairingResponder()
    /// The unique name of the bluetoothd that knows our agent.
    var agentOwner: String?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - address: The bus that bluetoothd is on.
    ///   - loop: The thread of all work; `nil` for one of its own, which ends with ``close()``.
    ///   - limits: The time limits of bluetoothd.
    ///   - log: The log.
    public init(
        bus address: DBusAddress,
        loop: EventLoop? = nil,
        limits: Limits = Limits(),
        log: Log
    ) {
        self.address = address
        self.loop = loop ?? EventLoop(name: "bluez")
        ownsLoop = loop == nil
        notifier = SinkNotifier(on: self.loop)
        waiters = ChangeWaiters(on: self.loop)
        signals = SignalSequencer(on: self.loop, timeout: limits.operation)
        tableChanges = TableChanges(on: self.loop, limits: limits)
        self.limits = limits
        self.log = log
        events = queue.stream
    }

    /// Opens the bus and keeps it open until ``close()``, or until its task is cancelled.
    public func run() async {
        isRunning = true
        var pause = limits.retry.lowerBound
        while !isClosed, !Task.isCancelled {
            do throws(DBusError) {
                let bus = try await DBusConnection.open(address, on: loop, patience: limits.batchDelay)
                pause = limits.retry.lowerBound
                try await serve(bus)
            } catch {
                await bus?.close()
                busIsLost()
                publishRefusal(error)
                if !isRenewing { becomeUnavailable("\(error.message); is the message bus running?") }
                isRenewing = false
            }
            guard !isClosed, !Task.isCancelled else { break }
            _ = await sleep(for: pause)
            pause = min(pause * 2, limits.retry.upperBound)
        }
        // A cancelled task would not wait for the answers that leaving needs.
        await Task { await close() }.value
        isRunning = false
        if ownsLoop { loop.stop() }
    }

    public func roundTrip() {}

    /// Ends all subscriptions, then the connection to the bus; links stay up.
    public func close() async {
        guard !isClosed else { return }
        isClosed = true
        waiters.close()
        await cancelPairings()
        await closeSockets()
        await bus?.close()
        busIsLost()
        queue.finish()
        // An attempt to open the bus may be under way, which has a deadline.
        if ownsLoop, !isRunning { loop.stop() }
    }

    /// Ends all subscriptions so that it is safe to leave the bus.
    ///
    /// bluetoothd 5.66 crashes if a client leaves before bluetoothd has read the end of the client's sockets, or
    /// while bluetoothd creates a socket for the client.
    func closeSockets() async {
        var hadSockets = closeChannels()
        if subscriptions.acquiringPeripheral != nil {
            hadSockets = true
            await finishAcquisitions()
        }
        if hadSockets { await makeRoundTrip() }
    }

    func makeRoundTrip() async {
        _ = try? await call(
            "/org/bluez",
            "org.freedesktop.DBus.Introspectable",
            "Introspect",
            within: Self.roundTripLimit
        )
    }

    // MARK: - The bus

    /// Serves each bluetoothd until the bus is lost or the task is cancelled.
    private func serve(_ bus: DBusConnection) async throws(DBusError) {
        guard !isClosed else { return await bus.close() }
        let (requests, refresh) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.bus = bus
        bus.onSignal { signal in self.receive(signal) { refresh.yield() } }
        bus.onOtherMessage { serial, sender in self.assumeIsolated { $0.receiveOther(serial, from: sender) } }
        bus.onDisconnect { refresh.finish() }
        for rule in BlueZ.matchRules { try await bus.addMatch(rule) }
        _ = try await bus.nameOwner(BlueZ.service) { [weak self] outcome in
            self?.assumeIsolated { $0.setOwner(try? outcome.get().first?.string) { refresh.yield() } }
        }
        refreshRequests = refresh
        let supervision = Task { await self.superviseBluetoothd(on: bus) }
        defer { supervision.cancel() }
        for await _ in requests {
            await load()
            await registerMonitors()
        }
        guard !isClosed, !Task.isCancelled else { return }
        throw DBusError(name: DBusError.disconnectedName, message: "the message bus at \(address) is gone")
    }

    /// Records a message of bluetoothd's that is no signal.
    private func receiveOther(_ serial: UInt32, from sender: String) {
        if sender == owner { signals.receiveOther(serial) }
    }

    private func busIsLost() {
        bus = nil
        reset()
    }

    /// Handles a bluetoothd that arrived on the bus, left it, or was replaced.
    func setOwner(_ owner: String?, arrived: () -> Void) {
        guard owner != self.owner || owner == nil else { return }
        if self.owner != nil, owner != nil { becomeUnavailable("bluetoothd was replaced") }
        reset()
        self.owner = owner
        if let owner, let bus { signals.start(on: bus, from: owner) }
        guard owner == nil else { return arrived() }
        becomeUnavailable(
            "bluetoothd is not on the bus at \(address); start it, for example with 'systemctl start bluetooth'"
        )
    }

    /// Reads all objects; tries again until bluetoothd answers or leaves.
    private func load() async {
        var pause = limits.retry.lowerBound
        while let bus, let owner, !isLoaded, !isClosed, !Task.isCancelled, await bus.isConnected {
            async let registered: Void = registerAgent()
            do throws(DBusError) {
                try await bus.call(
                    owner,
                    "/",
                    BlueZ.objectManager,
                    "GetManagedObjects",
                    timeout: limits.load,
                    onReply: { [weak self] outcome in self?.assumeIsolated { $0.install(outcome, from: owner) } }
                )
                guard isLoaded || self.owner != owner else {
                    throw DBusError(name: DBusError.failedName, message: "its answer has none")
                }
            } catch {
                guard self.owner == owner, !isClosed else { continue }
                publishRefusal(error)
                becomeUnavailable("bluetoothd did not list its objects: \(error.message) (\(error.name))")
                _ = await sleep(for: pause)
                pause = min(pause * 2, limits.retry.upperBound)
            }
            await registered
        }
    }

    private func install(_ outcome: Result<[DBusValue], DBusError>, from owner: String) {
        guard self.owner == owner, !isClosed, let objects = try? outcome.get().first else { return }
        tree.load(objects)
        isLoaded = true
        unavailableDetail = nil
        isRefusalPublished = false
        queue.push(.available)
        for event in tree.announcements() { queue.push(event) }
        for adapter in tree.duplicates { warn(ofDuplicate: adapter) }
    }

    /// Resets everything that was known of bluetoothd.
    private func reset() {
        _ = closeChannels()
        signals.reset()
        subscriptions.endAcquisitions()
        tree.clear()
        isLoaded = false
        owner = nil
        agentOwner = nil
        activePeripherals = []
        isFilterRefused = false
        waiters.wakeAll()
    }

    /// Publishes once that this user may not talk to bluetoothd.
    private func publishRefusal(_ error: DBusError) {
        guard BluetoothError(error, missing: .other).kind == .accessDenied, !isRefusalPublished else { return }
        isRefusalPublished = true
        queue.push(.accessDenied(detail: error.message))
    }

    func becomeUnavailable(_ detail: String) {
        guard unavailableDetail != detail, !isClosed else { return }
        unavailableDetail = detail
        queue.push(.unavailable(detail: detail))
    }

    func publish(_ event: CentralEvent) {
        queue.push(event)
    }
}
