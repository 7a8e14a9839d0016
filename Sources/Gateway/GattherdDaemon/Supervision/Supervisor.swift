public import GattherdBluetooth
import GattherdGATT
public import GattherdLog
import GattherdMachines
public import GattherdModel
import GattherdSync

/// Keeps the devices connected: passes events to the supervisor machine and executes its effects.
///
/// One loop handles all messages in order. Its tasks send their results back as messages.
public actor Supervisor {
    /// Offers an unknown peripheral for enrolment.
    ///
    /// Returns true if it was enrolled or should not be offered again.
    public typealias Offer = @Sendable (PeripheralStatus) -> Bool

    private enum Message: Sendable {
        case machine(SupervisorMachine.Event)
        case central(CentralEvent)
        case session(LinkSessionProgress, of: SupervisedDevice, ticket: Int)
        case attemptEnded(PeripheralID, device: String)
        case reload(ReloadedDevices)
        case offer(Offer?)
        case listen(Bool)
        case roundTrip
        case stop
    }

    /// The published state of links and adapters.
    public nonisolated let status: SupervisorStatus
    public nonisolated let controls: ControlService
    public nonisolated let counters: RecoveryCounters

    private nonisolated let central: any CentralBackend
    private nonisolated let holds: DeviceHolds
    /// The sensors, which are never connected.
    private nonisolated let sensors: SensorWatch
    private nonisolated let settings: Settings
    private nonisolated let context: LinkSessionContext
    private nonisolated let reporter: LinkReporter
    private nonisolated let watches = DeviceWatches()
    /// The number of calls of ``roundTrip()`` that the loop has seen.
    private nonisolated let roundTrips = LatestValue(0)
    private nonisolated let inbox: AsyncStream<Message>
    private nonisolated let post: AsyncStream<Message>.Continuation

    private var machine: SupervisorMachine
    private var roster: DeviceRoster
    private var peripherals: PeripheralRouter
    private var sessions: LinkSessions
    private var adapters: AdapterReporter
    private var adapterRequests: AdapterRequests
    private let linkRequests: LinkRequests
    /// True while unknown peripherals are offered to rules.
    private var isOffering = false
    /// True while people look for peripherals.
    private var isListening = false

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
        // Bounded by the work in progress: a few replies for each link, and messages of BlueZ, which are read at once.
        let (inbox, post) = AsyncStream.makeStream(of: Message.self, bufferingPolicy: .unbounded)
        (self.inbox, self.post) = (inbox, post)
        self.central = central
        self.settings = settings
        let (status, counters) = (SupervisorStatus(), RecoveryCounters())
        (self.status, self.counters) = (status, counters)
        let configuredDevices = ConfiguredDevices(
            devices.filter { $0.listening == nil },
            profiles: profiles.filter { !$0.isForAdvertisements }
        )
        let context = LinkSessionContext(
            central: central,
            intake: intake,
            configuredDevices: configuredDevices,
            store: store,
            recorder: recorder,
            settings: settings,
            counters: counters,
            log: log,
            now: now
        )
        self.context = context
        let sensors = SensorWatch(intake: intake, addressHash: settings.addressHash, leases: settings.leases)
        self.sensors = sensors
        sensors.replace(with: devices, profiles, context.catalogue, describe: { announcer?.describe($0) })
        let controls = ControlService(
            configuredDevices: configuredDevices,
            sensors: sensors,
            central: central,
            catalogue: context.catalogue,
            recorder: recorder,
            leases: settings.leases
        )
        self.controls = controls
        let reporter = LinkReporter(status: status, announcer: announcer, recorder: recorder, log: log, now: now)
        self.reporter = reporter
        roster = DeviceRoster(context, sensors: sensors, controls: controls, reporter: reporter)
        peripherals = PeripheralRouter(context, reporter: reporter, ignoredAttributes: counters.ignoredAttributes)
        sessions = LinkSessions(context, log: log)
        adapters = AdapterReporter(reporter)
        let send: @Sendable (SupervisorMachine.Event) -> Void = { post.yield(.machine($0)) }
        adapterRequests = AdapterRequests(central, log: log, send: send)
        let maker = LinkMaker(central: central, bonds: context.bonds, connectTimeout: settings.connectTimeout)
        linkRequests = LinkRequests(maker, reporter: reporter, send: send)
        holds = DeviceHolds(
            store: store,
            configuredDevices: configuredDevices,
            sensors: sensors,
            log: log,
            send: send
        )
        machine = SupervisorMachine(configuredDevices, sensors, held: [], settings)
    }

    /// Runs until ``stop()``, then ends or keeps the links as configured.
    public func run() async {
        let recalled = await holds.stored()
        let held = recalled ?? []
        machine = SupervisorMachine(context.configuredDevices, sensors, held: held, settings)
        roster.start(held: held)
        sensors.setConnectable(Set(context.configuredDevices.devices.map(\.address)))
        await central.answerPairing(with: context.bonds)
        let sensorReporter = SensorReporter(
            sensors: sensors,
            central: central,
            store: context.store,
            reporter: reporter,
            send: { self.send($0) }
        )
        await withDiscardingTaskGroup { group in
            group.addTask { await self.controls.run() }
            group.addTask { await sensorReporter.run() }
            if recalled == nil { group.addTask { await self.holds.recall() } }
            group.addTask { for await event in self.central.events { self.post.yield(.central(event)) } }
            await handleMessages(in: &group)
            controls.finish()
            group.cancelAll()
        }
        await end()
    }

    /// Passes messages to the machine and executes its effects until ``stop()``.
    private func handleMessages(in group: inout DiscardingTaskGroup) async {
        let clock = SuspendingClock()
        let start = clock.now
        for await message in inbox {
            if case .stop = message { return }
            let now = start.duration(to: clock.now)
            for event in events(for: message, now: now) {
                for effect in machine.handle(event, now: now) { perform(effect, now: now, in: &group) }
            }
            // Many messages may wait, and other tasks share the thread.
            await Task.yield()
        }
    }

    private nonisolated func send(_ event: SupervisorMachine.Event) {
        post.yield(.machine(event))
    }

    // MARK: - Messages

    /// Translates a message to events for the machine and updates the published state.
    private func events(for message: Message, now: Duration) -> [SupervisorMachine.Event] {
        switch message {
        case .machine(let event):
            apply(event)
            return [event]
        case .central(let event): return events(for: event, now: now)
        case .session(let progress, let device, let ticket): return events(for: progress, of: device, ticket: ticket)
        case .attemptEnded(let link, let device): return peripherals.retries(afterEndOf: link, device)
        case .reload(let reload):
            let events = roster.apply(reload, sessions).flatMap(withSightings)
            sensors.setConnectable(Set(context.configuredDevices.devices.map(\.address)))
            return events
        case .offer(let offer):
            peripherals.offer(to: offer)
            isOffering = offer != nil
            return [.seeking(isOffering || isListening)]
        case .listen(let isListening):
            self.isListening = isListening
            return [.seeking(isOffering || isListening)]
        case .roundTrip:
            roundTrips.update { $0 += 1 }
            return []
        case .stop: return []
        }
    }

    private func apply(_ event: SupervisorMachine.Event) {
        switch event {
        case .powered(let adapter, isOn: true): adapterRequests.poweredOn(adapter)
        case .link(let device, .hold): roster.setHeld(device, true)
        case .link(let device, .release): roster.setHeld(device, false)
        default: break
        }
    }

    /// Adds the sightings of a device that was enrolled.
    private func withSightings(_ event: SupervisorMachine.Event) -> [SupervisorMachine.Event] {
        guard case .enrolled(let name, _, _) = event, let device = context.configuredDevices[name] else {
            return [event]
        }
        return [event] + peripherals.sightings(of: device.address)
    }

    private func events(for event: CentralEvent, now: Duration) -> [SupervisorMachine.Event] {
        context.bonds.handle(event)
        watches.handle(event)
        guard event.adapter.map(settings.mayUse) ?? true else { return [] }
        switch event {
        case .available:
            adapters.record("bluetoothd", state: "available", level: .notice)
            return []
        case .unavailable(let detail):
            adapters.record("bluetoothd", state: "unavailable", detail, level: .warning)
            peripherals.removeAll()
            status.clearAdapters()
            return [.unavailable(detail: detail)]
        case .adapterChanged(let adapter):
            adapters.update(adapter)
            let (isPowered, isDiscovering) = (adapter.isPowered, adapter.isDiscovering)
            return [
                .monitoring(adapter.address, adapter.isMonitoring),
                .adapter(adapter.address, isPowered: isPowered, isDiscovering: isDiscovering),
            ]
        case .adapterRemoved(let address):
            peripherals.remove(adapter: address)
            adapters.remove(address)
            return [.adapterRemoved(address)]
        default: return peripherals.events(for: event, sessions, now: now)
        }
    }

    /// Handles a link session's progress.
    private func events(
        for progress: LinkSessionProgress,
        of device: SupervisedDevice,
        ticket: Int
    ) -> [SupervisorMachine.Event] {
        let event: LinkMachine.Event
        switch progress {
        case .discovered: event = .discovered(ticket: ticket)
        case .prepared(let assignment):
            guard sessions.prepared(assignment, of: device.name, ticket: ticket) else { return [] }
            controls.open(device: device.name, assignment.controls)
            status.setProfiles(assignment.profiles.map(\.name), of: device.name)
            reporter.announcer?.describe(assignment.description(of: device))
            event = .prepared(ticket: ticket)
        case .stalled(let detail): event = .stalled(detail: detail, ticket: ticket)
        case .resumed: event = .resumed(ticket: ticket)
        case .failed(let fault): event = .failed(fault, ticket: ticket)
        }
        return [.link(device: device.name, event)]
    }

    // MARK: - Effects

    /// Starts an effect of the machine; results arrive through the inbox.
    private func perform(_ effect: SupervisorMachine.Effect, now: Duration, in group: inout DiscardingTaskGroup) {
        switch effect {
        case .discovery(let adapter, let effect): adapterRequests.perform(effect, on: adapter, in: &group)
        case .remedy(let adapter, let remedy):
            counters[remedy.step].add()
            adapters.record(remedy, adapter)
        case .reconnectToBus: adapterRequests.reconnectToBus(in: &group)
        case .powerCycle(let adapter): adapterRequests.powerCycle(adapter, in: &group)
        case .powerOn(let adapter): adapterRequests.powerOn(adapter, in: &group)
        case .probe(let name): sessions.recordSighting(of: name)
        case .left(let name): remove(name)
        case .report(let report): adapters.publish(report)
        case .wake(let time):
            group.addTask {
                if (try? await Task.sleep(for: time - now, clock: .loop)) != nil { self.send(.wake(at: time)) }
            }
        case .link(let name, let adapter, let effect):
            guard let device = context.configuredDevices[name] else { return }
            if let adapter { sessions.setLink(PeripheralID(adapter: adapter, address: device.address), of: name) }
            perform(effect, for: device, in: &group)
        }
    }

    private func perform(
        _ effect: LinkMachine.Effect,
        for device: SupervisedDevice,
        in group: inout DiscardingTaskGroup
    ) {
        let post = post
        func report(_ ticket: Int) -> @Sendable (LinkSessionProgress) -> Void {
            { post.yield(.session($0, of: device, ticket: ticket)) }
        }
        switch effect {
        case .queue, .unqueue, .arm: break
        case .connect(let ticket):
            guard let link = sessions.link(of: device.name) else { return }
            linkRequests.connect(link, of: device.name, ticket: ticket, in: &group) {
                post.yield(.attemptEnded(link, device: device.name))
            }
        case .openSession(let ticket):
            sessions.open(device, ticket: ticket, in: &group, report: report(ticket))
        case .replaceSession(let ticket):
            controls.close(device: device.name)
            sessions.replace(device, ticket: ticket, in: &group, report: report(ticket))
        case .closeSession:
            controls.close(device: device.name)
            sessions.close(device.name)
        case .disconnect(let ticket):
            linkRequests.disconnect(sessions.link(of: device.name), of: device.name, ticket: ticket, in: &group)
        case .changed(let change): publish(change, of: device)
        }
    }

    private func publish(_ change: LinkChange, of device: SupervisedDevice) {
        let link = sessions.link(of: device.name)
        if let link, change.to == .failed { context.bonds.clearFault(of: link) }
        reporter.publish(change, of: device.name, link, rssi: link.flatMap(peripherals.rssi))
    }

    /// Removes a dismissed device, and enrols its successor if the newest reload has one.
    private func remove(_ name: String) {
        sessions.remove(name)
        guard let device = context.configuredDevices[name] else { return }
        let reload = roster.remove(device)
        peripherals.sightings(of: device.address).forEach(send)
        if let reload { post.yield(.reload(reload)) }
    }

    // MARK: - The end

    /// Ends all link sessions, then all links unless they are kept.
    private func end() async {
        for device in sessions.closeAll() { controls.close(device: device) }
        await adapterRequests.finishPowerCycles()
        guard !settings.keepsLinksOnStop else { return }
        await linkRequests.end(sessions.allLinks)
    }
}

// Requests; all of them may come from any thread.
extension Supervisor {
    /// All devices, sorted by name, including those that are being removed.
    public nonisolated var devices: [SupervisedDevice] {
        (context.configuredDevices.devices + sensors.devices).sorted { $0.name < $1.name }
    }

    /// Returns the downloads of a device's stored records.
    public nonisolated func downloads(of device: SupervisedDevice) -> [DaemonStatus.Download] {
        context.catalogue.downloads(of: device.name).map { stream, status in
            var download = DaemonStatus.Download(
                stream: stream,
                state: status.state.rawValue,
                since: status.since,
                done: status.done,
                new: status.stored
            )
            (download.total, download.detail) = (status.total, status.detail)
            return download
        }
    }

    /// Returns what a device has advertised; `nil` if it was not heard.
    public nonisolated func traits(of device: SupervisedDevice) -> AdvertisedTraits? {
        device.listening == nil ? status.traits(of: device.name) : sensors.traits(of: device)
    }

    /// Stops ``run()``.
    public nonisolated func stop() {
        post.yield(.stop)
    }

    /// Returns when the loop has processed all earlier messages, or the caller is cancelled.
    nonisolated func roundTrip() async {
        let before = roundTrips.state
        post.yield(.roundTrip)
        for await count in roundTrips.watch() where count > before { return }
    }

    /// Replaces the devices and profiles; unaffected links stay.
    public nonisolated func reload(devices: [SupervisedDevice], profiles: [any Profile]) async {
        let reload = ReloadedDevices(
            devices: devices.filter { $0.listening == nil },
            sensors: devices.filter { $0.listening != nil },
            profiles: profiles,
            held: await holds.stored() ?? []
        )
        post.yield(.reload(reload))
    }

    /// Offers every unknown peripheral to `offer`, and makes all adapters scan for them.
    ///
    /// Peripherals that BlueZ already knows are offered at once. `nil` ends the offers.
    public nonisolated func offerPeripherals(to offer: Offer?) {
        post.yield(.offer(offer))
    }

    /// Makes all adapters scan for unknown peripherals, or ends that.
    public nonisolated func setListening(_ isListening: Bool) {
        post.yield(.listen(isListening))
    }

    /// The peripherals that BlueZ knows, devices and others.
    public var knownPeripherals: [PeripheralStatus] { peripherals.all }

    /// GATT operations for people over the supervisor's links.
    public nonisolated var access: DeviceAccess {
        DeviceAccess(
            configuredDevices: context.configuredDevices,
            status: status,
            context: context,
            watches: watches,
            connectTimeout: settings.connectTimeout,
            release: { self.send(.link(device: $0, .release)) }
        )
    }

    /// Bonds on request; a removed bond of a device needs no back-off.
    public nonisolated var bonds: BondService {
        BondService(central, devices: context.configuredDevices.devices, keeper: context.bonds)
    }

    /// Ends the hold on a device: it is connected from now on.
    public nonisolated func connect(_ device: String) async throws(ControlError) {
        try await holds.set(device, false)
    }

    /// Lets a device be connected: this gateway owns it.
    public nonisolated func admit(_ device: String) {
        send(.link(device: device, .admitted))
    }

    /// Ends a device's link, because another gateway may connect it; the detail says which.
    public nonisolated func withdraw(_ device: String, _ detail: String) {
        send(.link(device: device, .withdrawn(detail: detail)))
    }

    /// Puts a device on hold: it stays disconnected, also after a restart.
    public nonisolated func disconnect(_ device: String) async throws(ControlError) {
        try await holds.set(device, true)
    }
}

extension SupervisorMachine {
    fileprivate init(
        _ configuredDevices: ConfiguredDevices,
        _ sensors: SensorWatch,
        held: Set<String>,
        _ settings: Supervisor.Settings
    ) {
        let devices = configuredDevices.devices
        self.init(
            devices: devices.map(\.name),
            pinned: Dictionary(uniqueKeysWithValues: devices.map { ($0.name, $0.adapter) }).compactMapValues(\.self),
            held: held,
            listening: sensors.adapters,
            policy: settings.machinePolicy,
            seed: UInt64.random(in: .min ... .max)
        )
    }
}
