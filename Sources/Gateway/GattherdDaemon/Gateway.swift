public import GattherdBluetooth
public import GattherdLog
public import GattherdModel
public import GattherdSync

/// The whole daemon, made of rooms that are handed in.
public struct Gateway: Sendable {
    public let herd: Supervisor
    public let intake: Intake
    public let recorder: EventRecorder
    private let ingest: Ingest
    private let central: any CentralBackend
    private let store: any ReadingStore
    private let deliverer: (any Deliverer)?
    private let announcer: any Announcer
    private let log: Log

    /// - Parameters:
    ///   - devices: The enrolled devices.
    ///   - profiles: All profiles, in order of preference.
    ///   - central: Our side of Bluetooth.
    ///   - store: History.
    ///   - deliverer: MQTT, if there is to be any.
    ///   - onlooker: Who else is told what happens.
    ///   - settings: How patient the herd is.
    ///   - commitInterval: The shortest time between two commits of few values.
    ///   - loop: The thread for decoding, best that of the store; `nil` for one of its own.
    ///   - log: For people.
    ///   - now: The wall clock.
    public init(
        devices: [SupervisedDevice],
        profiles: [any Profile],
        central: any CentralBackend,
        store: any ReadingStore,
        deliverer: (any Deliverer)?,
        onlooker: (any Announcer)? = nil,
        settings: Supervisor.Settings,
        commitInterval: Duration,
        loop: EventLoop? = nil,
        log: Log,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.central = central
        self.store = store
        self.deliverer = deliverer
        self.log = log
        let announcers: [(any Announcer)?] = [deliverer, onlooker]
        announcer = Announcers(announcers.compactMap(\.self))
        intake = Intake()
        recorder = EventRecorder(now: now)
        ingest = Ingest(
            intake: intake,
            store: store,
            commitInterval: commitInterval,
            loop: loop,
            recorder: recorder,
            log: log
        )
        herd = Supervisor(
            devices: devices,
            profiles: profiles,
            central: central,
            intake: intake,
            store: store,
            announcer: announcer,
            recorder: recorder,
            settings: settings,
            log: log,
            now: now
        )
    }

    /// Returns when every loop has gone round once more: herd, Bluetooth, ingest and delivery.
    public func pulse() async {
        await herd.pulse()
        await central.pulse()
        await ingest.pulse()
        await deliverer?.pulse()
    }

    /// How long the broker may take for what is left.
    private static let drainLimit = Duration.seconds(5)
    /// How long bluetoothd may take to hand over what it has sent before the stop.
    private static let catchUpLimit = Duration.seconds(2)

    /// Runs until `stopped` returns; then what is under way is brought to its end, from the radio to the broker.
    ///
    /// - Parameter stopped: Returns when the daemon is to stop.
    public func run(until stopped: @Sendable () async -> Void) async {
        recorder.record(kind: "daemon", ["state": .text("started")])
        async let delivering: Void? = deliverer?.run()
        async let recording: Void = recorder.run(store: store, announcer: announcer, log: log)
        async let ingesting: Void = ingest.run()
        async let herding: Void = herd.run()
        async let serving: Void = central.run()
        await stopped()
        log(.notice, "stopping")
        // While the subscriptions still stand: what waits in the bus would be lost with them.
        await central.catchUp(within: Self.catchUpLimit)
        herd.stop()
        await herding
        await central.close()
        await serving
        intake.finish()
        await ingesting
        recorder.record(kind: "daemon", ["state": .text("stopped")])
        recorder.finish()
        await recording
        await deliverer?.stop(within: Self.drainLimit)
        _ = await delivering
    }
}
