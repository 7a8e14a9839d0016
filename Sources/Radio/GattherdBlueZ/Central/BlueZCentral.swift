public import GattherdBluetooth
public import GattherdDBus
import GattherdGATT
public import GattherdLog
public import GattherdSync

/// Our side of Bluetooth on org.bluez.
///
/// ``run()`` keeps the bus open and the objects known until ``close()``; before and in between, operations fail with
/// ``BluetoothError/Kind/serviceUnavailable``. Everything happens on one loop, so that what the bus says and what
/// callers ask never overlap.
///
/// ``CentralEvent/disconnected(_:)`` is told whenever a peripheral that was connected is no longer, whoever ended the
/// link: BlueZ says so, or removes the object, or the adapter is switched off or removed. When bluetoothd or the bus
/// is lost, ``CentralEvent/unavailable(detail:)`` alone stands for all of that.
public actor BlueZCentral: ClientBackend {
    /// How long bluetoothd, and what it sends, may take.
    public struct Limits: Hashable, Sendable {
        /// For what is no radio operation, and for one ATT transaction; ATT's own limit is 30 s.
        public var operation = Duration.seconds(10)
        /// For a sign of life.
        public var signOfLife = Duration.seconds(5)
        /// For the list of all objects.
        public var load = Duration.seconds(30)
        /// Between attempts to reach the bus or bluetoothd: the first and the longest pause.
        public var retry = Duration.milliseconds(250)...Duration.seconds(10)
        /// How long a GATT table that is read anew must be quiet after an attribute came: others, or the end of those
        /// that are gone, may follow at the pace of the air.
        public var growing = Duration.seconds(5)
        /// The same after an attribute went, which is the last that happens, and all at once; what is new may be
        /// told a moment later, when bluetoothd is busy.
        public var shrinking = Duration.milliseconds(500)
        /// How long a GATT table must not have changed before subscriptions that were given up meanwhile end in
        /// bluetoothd: the last attributes may be removed long after the others were added.
        public var holding = Duration.seconds(30)
        /// How long values that come by signals may wait in the bus for others, while many come.
        public var gathering = Duration.milliseconds(40)
        /// How many answers bluetoothd may owe us before the session with it is renewed; the bus takes no more calls at 128.
        public var owedAnswers = 48
        /// How long bluetoothd may say nothing before it is asked whether it lives.
        public var silence = Duration.seconds(300)

        public init() {}
    }

    let loop: EventLoop
    let limits: Limits
    let log: Log
    let address: DBusAddress
    private let ownsLoop: Bool
    private let queue = EventQueue()
    public nonisolated let events: AsyncStream<CentralEvent>

    var bus: DBusConnection?
    /// The unique name of bluetoothd, while it is on the bus.
    var owner: String?
    var tree = ObjectTree()
    /// It has said something since we looked last.
    var wasHeard = false
    /// The question for a sign of life that is under way; all who ask meanwhile share its answer.
    var lifeCheck: Task<Bool, Never>?
    /// True once the tree holds all objects of `owner`.
    var isLoaded = false
    /// The subscriptions, by the path of the characteristic.
    var channels = DBusPathTable<NotificationChannel>()
    /// The order of the messages of `owner`.
    var order = MessageOrder()
    /// The channel whose newest signals wait for the next message of `owner`.
    var sifting: NotificationChannel?
    /// True while the next message of `owner` is being asked for, or soon will be.
    var isProbing = false
    /// Tells those whose values they are when a turn's values are all given.
    let burst: SinkNotifier
    var paths: [SubscriptionToken: String] = [:]
    /// How many calls of `StopNotify` are unanswered, by path.
    var stopping: [String: Int] = [:]
    /// How write commands go, by the path of the characteristic; for those that had one.
    var writers: [String: CommandWriter] = [:]
    /// The `AcquireNotify` calls that bluetoothd is at, by the path of the characteristic.
    var acquisitions: [String: PeripheralID] = [:]
    /// How many reads of ours have no answer yet, by the path of the characteristic.
    var openReads: [String: Int] = [:]
    let tableChanges: TableChanges
    /// True once this bluetoothd has refused a discovery filter.
    var isFilterRefused = false
    /// Whose advertisements are handed on, and to whom.
    var watch: AdvertisementWatch?
    /// The peripherals that we connect or serve: only they may pair.
    var engaged: Set<PeripheralID> = []
    /// The pairings that we asked for.
    var pairings: [PeripheralID: PairingAttempt] = [:]
    var pairingDelegate: (any PairingDelegate)?
    /// The bluetoothd that knows our agent.
    var agentOwner: String?
    /// Makes the loop look for what is to be done about new objects.
    var arrivals: AsyncStream<Void>.Continuation?
    var waiters: [UInt64: ChangeWaiter] = [:]
    var nextWaiter: UInt64 = 0
    private(set) var isClosed = false
    private var isRunning = false
    /// True while the bus is left on purpose, which has been told.
    var isRenewing = false
    /// What was told last about being unavailable; `nil` while available.
    private var toldDetail: String?
    /// True once it was told that we may not talk to bluetoothd.
    private var isRefusalTold = false

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - address: The bus that bluetoothd is on.
    ///   - loop: The thread on which everything happens; `nil` for one of its own, which ends with ``close()``.
    ///   - limits: How long bluetoothd may take.
    ///   - log: For people.
    public init(
        bus address: DBusAddress,
        loop: EventLoop? = nil,
        limits: Limits = Limits(),
        log: Log
    ) {
        self.address = address
        self.loop = loop ?? EventLoop(name: "bluez")
        ownsLoop = loop == nil
        burst = SinkNotifier(on: self.loop)
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
                let bus = try await DBusConnection.open(address, on: loop, patience: limits.gathering)
                pause = limits.retry.lowerBound
                try await serve(bus)
            } catch {
                await bus?.close()
                busIsLost()
                noteRefusal(error)
                if !isRenewing { becomeUnavailable("\(error.message); is the message bus running?") }
                isRenewing = false
            }
            guard !isClosed, !Task.isCancelled else { break }
            _ = await sleep(for: pause)
            pause = min(pause * 2, limits.retry.upperBound)
        }
        // Who is cancelled would not wait for the answers that leaving needs.
        await Task { await close() }.value
        isRunning = false
        if ownsLoop { loop.stop() }
    }

    public func pulse() {}

    /// Ends all subscriptions, then the connection to the bus; links stay up.
    public func close() async {
        guard !isClosed else { return }
        isClosed = true
        for waiter in waiters.keys { wake(waiter, .changed) }
        await abandonPairings()
        await closeSockets()
        await bus?.close()
        busIsLost()
        queue.finish()
        // An attempt to open the bus may be under way, which has a deadline.
        if ownsLoop, !isRunning { loop.stop() }
    }

    /// Ends all subscriptions so that it is safe to leave: bluetoothd 5.66 crashes when a client leaves before its
    /// sockets are seen to be closed, or while a socket is being made for it.
    func closeSockets() async {
        var hadSockets = closeChannels()
        if !acquisitions.isEmpty {
            hadSockets = true
            await finishAcquisitions()
        }
        if hadSockets { await makeRoundTrip() }
    }

    func makeRoundTrip() async {
        _ = try? await call("/org/bluez", "org.freedesktop.DBus.Introspectable", "Introspect", within: .seconds(2))
    }

    // MARK: - The bus

    /// Follows bluetoothd's comings and goings for as long as the bus is there, or until its task is cancelled.
    private func serve(_ bus: DBusConnection) async throws(DBusError) {
        guard !isClosed else { return await bus.close() }
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.bus = bus
        bus.onSignal { signal in self.receive(signal) { arrived.yield() } }
        bus.onOtherMessage { serial, sender in self.assumeIsolated { $0.receiveOther(serial, from: sender) } }
        bus.onDisconnect { arrived.finish() }
        for rule in BlueZ.matchRules { try await bus.addMatch(rule) }
        _ = try await bus.nameOwner(BlueZ.service) { [weak self] outcome in
            self?.assumeIsolated { $0.setOwner(try? outcome.get().first?.string) { arrived.yield() } }
        }
        self.arrivals = arrived
        let watch = Task { await self.watchOver(bus) }
        defer { watch.cancel() }
        for await _ in arrivals {
            await load()
            await registerMonitors()
        }
        guard !isClosed, !Task.isCancelled else { return }
        throw DBusError(name: DBusError.disconnectedName, message: "the message bus at \(address) is gone")
    }

    private func busIsLost() {
        bus = nil
        forgetEverything()
    }

    /// bluetoothd came, went, or was replaced.
    func setOwner(_ owner: String?, arrived: () -> Void) {
        guard owner != self.owner || owner == nil else { return }
        if self.owner != nil, owner != nil { becomeUnavailable("bluetoothd was replaced") }
        forgetEverything()
        self.owner = owner
        guard owner == nil else { return arrived() }
        becomeUnavailable(
            "bluetoothd is not on the bus at \(address); start it, for example with 'systemctl start bluetooth'"
        )
    }

    /// Reads all objects, again and again until bluetoothd answers or goes.
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
                    throw DBusError(name: DBusError.failedName, message: "there are none in its answer")
                }
            } catch {
                guard self.owner == owner, !isClosed else { continue }
                noteRefusal(error)
                becomeUnavailable("bluetoothd does not give its objects: \(error.message) (\(error.name))")
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
        toldDetail = nil
        isRefusalTold = false
        queue.push(.available)
        for event in tree.announcements() { queue.push(event) }
        for adapter in tree.twins { warn(ofTwin: adapter) }
    }

    /// Nothing that was known is true any more.
    private func forgetEverything() {
        _ = closeChannels()
        (order, sifting, isProbing) = (MessageOrder(), nil, false)
        acquisitions = [:]
        tree.clear()
        isLoaded = false
        owner = nil
        agentOwner = nil
        engaged = []
        isFilterRefused = false
        for waiter in waiters where waiter.value.peripheral != nil { wake(waiter.key, .changed) }
    }

    /// Tells once that it is not for want of a bus or a bluetoothd.
    private func noteRefusal(_ error: DBusError) {
        guard BluetoothError(error, missing: .other).kind == .accessDenied, !isRefusalTold else { return }
        isRefusalTold = true
        queue.push(.accessDenied(detail: error.message))
    }

    func becomeUnavailable(_ detail: String) {
        guard toldDetail != detail, !isClosed else { return }
        toldDetail = detail
        queue.push(.unavailable(detail: detail))
    }

    func tell(_ event: CentralEvent) {
        queue.push(event)
    }
}
