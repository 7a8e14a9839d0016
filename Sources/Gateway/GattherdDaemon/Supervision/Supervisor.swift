public import GattherdBluetooth
public import GattherdGATT
public import GattherdLog
public import GattherdMachines
public import GattherdModel
import GattherdSync

/// Keeps the devices connected: passes events to the supervisor machine and executes its effects.
public final class Supervisor: Sendable {
    /// The supervisor's limits and policies.
    public struct Settings: Sendable {
        public var connectTimeout: Duration
        public var resolveTimeout: Duration
        public var keepsLinksOnStop: Bool
        public var policy: SupervisorMachine.Policy
        /// The usable adapters; `nil` for all.
        public var adapters: Set<BluetoothAddress>?
        /// The policy for silent streams.
        public var silence = SilenceWatch.Policy()
        /// Makes a profile from characteristics that no profile serves; `nil` if that is impossible.
        ///
        /// The second argument contains the stream names in use.
        public var describe: (@Sendable ([DescribedCharacteristic], Set<String>) -> SelfDescription?)?

        public init(
            connectTimeout: Duration = .seconds(20),
            resolveTimeout: Duration = .seconds(30),
            keepsLinksOnStop: Bool = false,
            policy: SupervisorMachine.Policy = .init(),
            adapters: Set<BluetoothAddress>? = nil
        ) {
            self.connectTimeout = connectTimeout
            self.resolveTimeout = resolveTimeout
            self.keepsLinksOnStop = keepsLinksOnStop
            self.policy = policy
            self.adapters = adapters
        }
    }

    /// Offers an unknown peripheral for enrolment.
    ///
    /// Returns true if it was enrolled or should not be offered again.
    public typealias Offer = @Sendable (PeripheralStatus) -> Bool

    enum Message: Sendable {
        case supervisor(SupervisorMachine.Event)
        case central(CentralEvent)
        case reload(ReloadedDevices)
        case seek(Offer?)
        case pulse
        case stop
    }

    let central: any CentralBackend
    /// The devices that are connected.
    let configuredDevices: ConfiguredDevices
    /// The sensors, which are never connected.
    let sensors: SensorWatch
    let settings: Settings
    let sessionContext: LinkSessionContext
    let store: any ReadingStore
    let announcer: (any Announcer)?
    let recorder: EventRecorder
    let log: Log
    let now: @Sendable () -> Timestamp
    /// The published state, for `status`.
    public let board = SupervisorStatus()
    /// The profile assignment of each device's newest link session.
    let plans = Locked<[String: ProfileAssignment]>([:])
    public let controls: ControlService
    public let counters = RecoveryCounters()
    let watches = DeviceWatches()
    /// The number of calls of ``pulse()`` that the loop has seen.
    let pulses = LatestValue(0)
    private let inbox: AsyncStream<Message>
    private let post: AsyncStream<Message>.Continuation

    /// - Parameters:
    ///   - devices: The enrolled devices.
    ///   - profiles: All profiles, in order of preference.
    ///   - central: The Bluetooth central.
    ///   - intake: The destination of values.
    ///   - store: The store of devices and holds.
    ///   - announcer: The publisher of changes.
    ///   - recorder: The recorder of lifecycle events.
    ///   - settings: The limits and policies.
    ///   - log: The log for people.
    ///   - now: The wall clock.
    public init(
        devices: [SupervisedDevice],
        profiles: [any Profile],
        central: any CentralBackend,
        intake: Intake,
        store: any ReadingStore,
        announcer: (any Announcer)?,
        recorder: EventRecorder,
        settings: Settings,
        log: Log,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.central = central
        configuredDevices = ConfiguredDevices(
            devices.filter { $0.listening == nil },
            profiles: profiles.filter { !$0.isForAdvertisements }
        )
        self.settings = settings
        self.store = store
        self.announcer = announcer
        self.recorder = recorder
        self.log = log
        self.now = now
        let catalogue = StreamCatalogue()
        sensors = SensorWatch(intake: intake)
        sessionContext = LinkSessionContext(
            central: central,
            intake: intake,
            configuredDevices: configuredDevices,
            catalogue: catalogue,
            store: store,
            recorder: recorder,
            bonds: BondKeeper(configuredDevices: configuredDevices, recorder: recorder, log: log),
            now: now,
            resolveTimeout: settings.resolveTimeout,
            describe: settings.describe,
            silence: settings.silence,
            silenceProbes: counters.silenceProbes,
            interruptions: counters.interruptions
        )
        controls = ControlService(
            configuredDevices: configuredDevices,
            sensors: sensors,
            central: central,
            catalogue: catalogue,
            recorder: recorder
        )
        sensors.replace(with: devices, profiles, catalogue, describe: { announcer?.describe($0) })
        // Bounded by the work in progress: a few replies for each link, and messages of BlueZ, which are read at once.
        (inbox, post) = AsyncStream.makeStream(of: Message.self, bufferingPolicy: .unbounded)
    }

    /// Runs until ``stop()``, then ends or keeps the links as configured.
    public func run() async {
        let known = await heldDevices()
        let held = known ?? []
        var machine = machine(held: held)
        for device in configuredDevices.devices { begin(device.name, isHeld: held.contains(device.name)) }
        for device in sensors.devices { begin(device.name, isHeld: false) }
        await central.answerPairing(with: sessionContext.bonds)
        var run = SupervisorRun(supervisor: self)
        await withDiscardingTaskGroup { group in
            group.addTask { await self.controls.run() }
            group.addTask { await self.listen() }
            if known == nil { group.addTask { await self.recallHolds() } }
            group.addTask { for await event in self.central.events { self.post.yield(.central(event)) } }
            await handleMessages(&run, &machine, in: &group)
            controls.finish()
            group.cancelAll()
        }
        await run.end(keepingLinks: settings.keepsLinksOnStop)
    }

    private func machine(held: Set<String>) -> SupervisorMachine {
        let devices = configuredDevices.devices
        return SupervisorMachine(
            devices: devices.map(\.name),
            pinned: Dictionary(uniqueKeysWithValues: devices.map { ($0.name, $0.adapter) }).compactMapValues(\.self),
            held: held,
            listening: sensors.adapters,
            policy: policy,
            seed: UInt64.random(in: .min ... .max)
        )
    }

    /// Passes messages to the machine and executes its effects until ``stop()``.
    private func handleMessages(
        _ run: inout SupervisorRun,
        _ machine: inout SupervisorMachine,
        in group: inout DiscardingTaskGroup
    ) async {
        let clock = SuspendingClock()
        let start = clock.now
        for await message in inbox {
            if case .stop = message { return }
            let now = start.duration(to: clock.now)
            for event in run.events(for: message, now: now) {
                for effect in machine.handle(event, now: now) { run.perform(effect, now: now, in: &group) }
            }
            // Many messages may wait, and other tasks share the thread.
            await Task.yield()
        }
    }

    /// The machine's limits: longer than those of the central, as they catch missing replies.
    private var policy: SupervisorMachine.Policy {
        var policy = settings.policy
        policy.link.connectLimit = max(policy.link.connectLimit, settings.connectTimeout + .seconds(15))
        policy.link.sessionLimit = max(policy.link.sessionLimit, settings.resolveTimeout + .seconds(150))
        return policy
    }

    /// Returns when the loop has processed all earlier messages, or the caller is cancelled.
    func pulse() async {
        let before = pulses.state
        post.yield(.pulse)
        for await heard in pulses.watch() where heard > before { return }
    }

    /// GATT operations for people over the supervisor's links.
    public var access: DeviceAccess {
        DeviceAccess(
            configuredDevices: configuredDevices,
            board: board,
            context: sessionContext,
            watches: watches,
            connectTimeout: settings.connectTimeout,
            release: { self.send(.link(device: $0, .release)) }
        )
    }

    /// Stops ``run()``.
    public func stop() {
        post.yield(.stop)
    }

    /// Ends the hold on a device: it is connected from now on.
    public func connect(_ device: String) async throws(ControlError) {
        try await setHeld(device, false)
        send(.link(device: device, .release))
    }

    /// Puts a device on hold: it stays disconnected, also after a restart.
    public func disconnect(_ device: String) async throws(ControlError) {
        try await setHeld(device, true)
        send(.link(device: device, .hold))
    }

    /// Offers every unknown peripheral to `offer`, and makes all adapters scan for them.
    ///
    /// Peripherals that BlueZ already knows are offered at once. `nil` ends the offers.
    public func seek(_ offer: Offer?) {
        post.yield(.seek(offer))
    }

    func send(_ event: SupervisorMachine.Event) {
        post.yield(.supervisor(event))
    }

    func send(_ reload: ReloadedDevices) {
        post.yield(.reload(reload))
    }

    private func setHeld(_ device: String, _ isHeld: Bool) async throws(ControlError) {
        guard sensors[device] == nil else { throw .onlyAdvertises(device) }
        guard configuredDevices[device] != nil else { throw .noSuchDevice(device) }
        do throws(StoreFault) {
            try await store.setHeld(device, isHeld)
        } catch {
            throw .refused("it cannot be remembered: \(error.detail)")
        }
    }

    /// Returns the devices on hold; `nil` while history is not readable.
    func heldDevices() async -> Set<String>? {
        do throws(StoreFault) {
            return try await store.heldDevices()
        } catch {
            log(.error, "the holds of devices could not be read", [.init("history.error", error.detail)])
            return nil
        }
    }

    /// Restores the holds once history is readable; until then, people cannot connect these devices.
    private func recallHolds() async {
        while (try? await Task.sleep(for: .seconds(5), clock: .loop)) != nil {
            guard let held = await heldDevices() else { continue }
            return held.sorted().forEach { send(.link(device: $0, .hold)) }
        }
    }

    func begin(_ name: String, isHeld: Bool) {
        var status = LinkStatus(device: name, state: isHeld ? .held : .waiting, since: now())
        if isHeld { status.reason = .requested }
        board.set(status)
        announcer?.update(status)
    }
}
