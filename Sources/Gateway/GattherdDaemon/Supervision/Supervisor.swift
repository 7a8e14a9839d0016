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

    nonisolated let parts: SupervisorParts
    private var machine: SupervisorMachine
    private var roster: DeviceRoster
    private var peripherals: PeripheralRouter
    private var sessions: LinkSessions
    private var adapters: AdapterReporter
    private var adapterRequests: AdapterRequests
    private let linkRequests: LinkRequests
    /// True while unknown peripherals are offered to rules.
    private var isOffering = false
    /// True while a scan on request runs.
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
        let environment = SupervisorParts.Environment(
            central: central,
            intake: intake,
            store: store,
            announcer: announcer,
            recorder: recorder,
            settings: settings,
            log: log,
            now: now
        )
        let parts = SupervisorParts(devices, profiles, in: environment)
        self.parts = parts
        let (context, reporter, send) = (parts.context, parts.reporter, parts.inbox.send)
        roster = DeviceRoster(context, sensors: parts.sensors, controls: parts.controls, reporter: reporter)
        let ignored = parts.counters.ignoredAttributes
        peripherals = PeripheralRouter(context, reporter: reporter, ignoredAttributes: ignored)
        sessions = LinkSessions(context, log: log)
        adapters = AdapterReporter(reporter)
        adapterRequests = AdapterRequests(parts.central, log: log, send: send)
        let maker = LinkMaker(central: parts.central, bonds: context.bonds, connectTimeout: settings.connectTimeout)
        linkRequests = LinkRequests(maker, reporter: reporter, send: send)
        machine = SupervisorMachine(context.configuredDevices, parts.sensors, held: [], settings)
    }

    /// The published state of links and adapters.
    public nonisolated var status: SupervisorStatus { parts.status }
    public nonisolated var controls: ControlService { parts.controls }
    public nonisolated var counters: RecoveryCounters { parts.counters }

    nonisolated var context: LinkSessionContext { parts.context }
    nonisolated var sensors: SensorWatch { parts.sensors }
    nonisolated var inbox: SupervisorInbox { parts.inbox }

    /// Runs until ``stop()``, then ends or keeps the links as configured.
    public func run() async {
        let recalled = await parts.holds.stored()
        let held = recalled ?? []
        machine = SupervisorMachine(context.configuredDevices, sensors, held: held, parts.settings)
        roster.start(held: held)
        sensors.setConnectable(Set(context.configuredDevices.devices.map(\.address)))
        await parts.central.answerPairing(with: context.bonds)
        let sensorReporter = SensorReporter(
            sensors: sensors,
            central: parts.central,
            deviceRecorder: context.deviceRecorder,
            reporter: parts.reporter,
            send: inbox.send
        )
        await withDiscardingTaskGroup { group in
            group.addTask { await self.controls.run() }
            group.addTask { await self.context.deviceRecorder.run() }
            group.addTask { await sensorReporter.run() }
            if recalled == nil { group.addTask { await self.parts.holds.recall() } }
            group.addTask { await self.inbox.forward(self.parts.central.events) }
            await handleMessages(in: &group)
            controls.finish()
            context.deviceRecorder.finish()
            group.cancelAll()
        }
        await end()
    }

    /// Passes messages to the machine and executes its effects until ``stop()``.
    private func handleMessages(in group: inout DiscardingTaskGroup) async {
        let clock = SuspendingClock()
        let start = clock.now
        for await message in inbox.messages {
            if case .stop = message { return }
            let now = start.duration(to: clock.now)
            for event in events(for: message, at: now) {
                for effect in machine.handle(event, at: now) { perform(effect, at: now, in: &group) }
            }
            // Many messages may wait, and other tasks share the thread.
            await Task.yield()
        }
    }

    // MARK: - Messages

    /// Translates a message to events for the machine and updates the published state.
    private func events(for message: SupervisorInbox.Message, at now: Duration) -> [SupervisorMachine.Event] {
        switch message {
        case .machine(let event):
            apply(event)
            return [event]
        case .central(let event): return events(for: event, at: now)
        case .checkpoint:
            inbox.countCheckpoint()
            return []
        case .session(let progress, let device, let ticket): return events(for: progress, of: device, ticket: ticket)
        case .attemptEnded(let link, let device): return peripherals.retries(afterEndOf: link, device)
        case .reload(let reload): return events(ofReload: roster.apply(reload, sessions))
        case .reapply: return events(ofReload: roster.applyNewest(sessions))
        case .offer(let offer):
            peripherals.offer(to: offer)
            isOffering = offer != nil
            return [.seeking(isOffering || isListening)]
        case .listen(let isListening):
            self.isListening = isListening
            return [.seeking(isOffering || isListening)]
        case .roundTrip:
            inbox.countRoundTrip()
            return []
        case .stop: return []
        }
    }

    /// The peripherals that BlueZ knows, devices and others.
    public var knownPeripherals: [PeripheralStatus] { peripherals.all }

    private func apply(_ event: SupervisorMachine.Event) {
        switch event {
        case .powered(let adapter, isOn: true): adapterRequests.poweredOn(adapter)
        case .link(let device, .hold): roster.setHeld(device, true)
        case .link(let device, .release): roster.setHeld(device, false)
        default: break
        }
    }

    /// Completes the events of a reload, and tells the sensors which devices are connected.
    private func events(ofReload changes: [SupervisorMachine.Event]) -> [SupervisorMachine.Event] {
        let events = changes.flatMap(withSightings)
        sensors.setConnectable(Set(context.configuredDevices.devices.map(\.address)))
        return events
    }

    /// Adds the sightings of a device that was enrolled.
    private func withSightings(_ event: SupervisorMachine.Event) -> [SupervisorMachine.Event] {
        guard case .enrolled(let name, _, _) = event, let device = context.configuredDevices[name] else {
            return [event]
        }
        return [event] + peripherals.sightings(of: device.address)
    }

    private func events(for event: CentralEvent, at now: Duration) -> [SupervisorMachine.Event] {
        context.bonds.handle(event)
        parts.watches.handle(event)
        guard event.adapter.map(parts.settings.mayUse) ?? true else { return [] }
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
        default: return peripherals.events(for: event, sessions, at: now)
        }
    }

    /// Carries out the effects of a link session's progress on controls and status, and returns the machine's events.
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
            parts.reporter.announcer?.describe(assignment.description(of: device))
            event = .prepared(ticket: ticket)
        case .stalled(let detail): event = .stalled(detail: detail, ticket: ticket)
        case .resumed: event = .resumed(ticket: ticket)
        case .failed(let fault): event = .failed(fault, ticket: ticket)
        }
        return [.link(device: device.name, event)]
    }

    // MARK: - Effects

    /// Starts an effect of the machine; results arrive through the inbox.
    private func perform(_ effect: SupervisorMachine.Effect, at now: Duration, in group: inout DiscardingTaskGroup) {
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
                if (try? await Task.sleep(for: time - now, clock: .loop)) != nil { self.inbox.send(.wake(at: time)) }
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
        let inbox = inbox
        func report(_ ticket: Int) -> @Sendable (LinkSessionProgress) -> Void {
            { inbox.post(.session($0, of: device, ticket: ticket)) }
        }
        switch effect {
        case .queue, .unqueue, .arm: break
        case .connect(let ticket):
            guard let link = sessions.link(of: device.name) else { return }
            linkRequests.connect(link, of: device.name, ticket: ticket, in: &group) {
                inbox.post(.attemptEnded(link, device: device.name))
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
        parts.reporter.publish(change, of: device.name, link, rssi: link.flatMap(peripherals.rssi))
    }

    /// Removes a dismissed device, and requests its successor if the newest reload has one.
    private func remove(_ name: String) {
        sessions.remove(name)
        guard let device = context.configuredDevices[name] else { return }
        let hasSuccessor = roster.remove(device)
        peripherals.sightings(of: device.address).forEach(inbox.send)
        if hasSuccessor { inbox.post(.reapply) }
    }

    // MARK: - The end

    /// Ends all link sessions, then all links unless they are kept.
    private func end() async {
        for device in sessions.closeAll() { controls.close(device: device) }
        // Both wait for bluetoothd, which may hang, and an adapter in a power cycle has no links.
        let adapterRequests = adapterRequests
        async let adaptersOn: Void = adapterRequests.finishPowerCycles()
        if !parts.settings.keepsLinksOnStop { await linkRequests.end(sessions.allLinks) }
        await adaptersOn
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
