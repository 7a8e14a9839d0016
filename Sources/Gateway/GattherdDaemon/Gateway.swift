public import GattherdBluetooth
public import GattherdLog
public import GattherdModel
public import GattherdSync

/// The whole daemon, composed of the given parts.
public struct Gateway: Sendable {
    public let supervisor: Supervisor
    public let intake: Intake
    public let recorder: EventRecorder
    private let ingest: Ingest
    private let central: any CentralBackend
    private let store: any ReadingStore
    private let outputs: [any Output]
    private let announcer: any Announcer
    private let log: Log

    /// - Parameters:
    ///   - devices: The enrolled devices.
    ///   - profiles: All profiles, in order of preference.
    ///   - central: The Bluetooth central.
    ///   - store: The history.
    ///   - outputs: The outputs, which deliver the journal.
    ///   - announcers: The publishers of the devices' state and of events.
    ///   - settings: The supervisor's limits and policies.
    ///   - commitInterval: The longest time for which few values wait for others.
    ///   - loop: The thread for decoding, preferably the store's; `nil` for a separate one.
    ///   - log: The log for people.
    ///   - recordClock: The clock for the times of stored records; `nil` if it makes no steps.
    ///   - now: The wall clock.
    public init(
        devices: [SupervisedDevice],
        profiles: [any Profile],
        central: any CentralBackend,
        store: any ReadingStore,
        outputs: [any Output] = [],
        announcers: [any Announcer] = [],
        settings: Supervisor.Settings,
        commitInterval: Duration,
        loop: EventLoop? = nil,
        log: Log,
        recordClock: RecordClock? = nil,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.central = central
        self.store = store
        self.outputs = outputs
        self.log = log
        announcer = Announcers(announcers)
        intake = Intake()
        recorder = EventRecorder(now: now)
        ingest = Ingest(
            intake: intake,
            store: store,
            commitInterval: commitInterval,
            loop: loop,
            recorder: recorder,
            clock: recordClock,
            log: log
        )
        supervisor = Supervisor(
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

    /// Returns when every loop has run once more: supervisor, Bluetooth, ingest and the outputs.
    public func roundTrip() async {
        await supervisor.roundTrip()
        await central.roundTrip()
        await ingest.roundTrip()
        for output in outputs { await output.roundTrip() }
    }

    /// The limit of the final delivery to the outputs.
    private static let drainLimit = Duration.seconds(5)
    /// The limit of the wait for notifications that bluetoothd sent before the stop.
    private static let catchUpLimit = Duration.seconds(2)

    /// Runs until `stopped` returns, then drains the pipeline from the radio to the outputs.
    ///
    /// - Parameters:
    ///   - stopped: Returns when the daemon must stop.
    ///   - linksEnded: Runs beside the rest of the stop, once the links have ended or are left as they are.
    public func run(
        until stopped: @Sendable () async -> Void,
        linksEnded: @escaping @Sendable () async -> Void = {}
    ) async {
        recorder.record(kind: "daemon", ["state": .text("started")])
        async let delivering: Void = forEachOutput { await $0.run() }
        async let recording: Void = recorder.run(store: store, announcer: announcer, log: log)
        async let ingesting: Void = ingest.run()
        async let supervising: Void = supervisor.run()
        async let serving: Void = central.run()
        await stopped()
        log(.notice, "stopping")
        // Before the subscriptions end: messages still in the bus would be lost with them.
        await central.catchUp(within: Self.catchUpLimit)
        supervisor.stop()
        await supervising
        async let leaving: Void = linksEnded()
        await central.close()
        await serving
        intake.finish()
        await ingesting
        recorder.record(kind: "daemon", ["state": .text("stopped")])
        recorder.finish()
        await recording
        await forEachOutput { await $0.stop(within: Self.drainLimit) }
        await delivering
        await leaving
    }

    /// Runs `body` for all outputs at once.
    private func forEachOutput(_ body: @escaping @Sendable (any Output) async -> Void) async {
        await withDiscardingTaskGroup { group in
            for output in outputs { group.addTask { await body(output) } }
        }
    }
}
