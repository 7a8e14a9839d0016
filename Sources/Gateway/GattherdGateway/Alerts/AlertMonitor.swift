import GattherdMachines
import GattherdModel
import GattherdSync

/// Watches values and links, and reports alerts as events, by MQTT and in the status.
final class AlertMonitor: Sendable {
    typealias EventHandler = @Sendable (_ device: String, KeyValuePairs<String, SampleValue?>) -> Void

    private struct State: Sendable {
        var machine: AlertMachine
        var active: [AlertMachine.Key: ActiveAlert] = [:]
        /// The addresses of all devices, by name.
        var addresses: [String: String] = [:]
        var record: EventHandler = { _, _ in }
        var publish: @Sendable ([ActiveAlert]) -> Void = { _ in }
        var hasRules = false
        /// The last values of an earlier run by device, until the devices are known.
        var stored: [String: [AlertMachine.Event]] = [:]
        /// The changes that are not reported yet, with the addresses of their devices.
        private var changes: [(change: AlertMachine.Change, address: String?)] = []
        /// True if the raised alerts must be published, changed or not.
        var isListDue = false
        /// True while a thread reports.
        private var isReporting = false

        init(machine: AlertMachine) {
            self.machine = machine
        }

        /// Applies events; returns true if the caller must report the changes.
        mutating func handle(_ events: [AlertMachine.Event], at elapsed: Duration, _ time: Timestamp) -> Bool {
            for change in events.flatMap({ machine.handle($0, at: elapsed) }) {
                changes.append((change, addresses[change.key.device]))
                apply(change, time)
            }
            guard !isReporting, isListDue || !changes.isEmpty else { return false }
            isReporting = true
            return true
        }

        private mutating func apply(_ change: AlertMachine.Change, _ now: Timestamp) {
            switch change {
            case .cleared(let key): active[key] = nil
            case .raised(let key, let reason):
                active[key] = ActiveAlert(
                    alert: key.alert,
                    device: key.device,
                    address: addresses[key.device] ?? "",
                    since: now.rfc3339,
                    detail: reason
                )
            }
        }

        /// Returns the changes to be reported now, and the alerts after them; `nil` ends the reporting.
        mutating func nextReport()
            -> (changes: [(change: AlertMachine.Change, address: String?)], active: [ActiveAlert])?
        {
            isReporting = isListDue || !changes.isEmpty
            guard isReporting else { return nil }
            defer { (changes, isListDue) = ([], false) }
            return (changes, sorted)
        }

        /// The raised alerts, by device and name.
        var sorted: [ActiveAlert] {
            active.values.sorted { ($0.device, $0.alert) < ($1.device, $1.alert) }.map { alert in
                var alert = alert
                if alert.address.isEmpty { alert.address = addresses[alert.device] ?? "" }
                return alert
            }
        }

        /// Returns the raised alerts that are about other peripherals than these `devices`.
        func outdated(_ devices: [String: String]) -> Set<AlertMachine.Key> {
            let outdated = active.filter { key, alert in
                guard let address = devices[key.device], !alert.address.isEmpty else { return false }
                return alert.address != address
            }
            return Set(outdated.keys)
        }
    }

    private let state: Locked<State>
    private let clock = LoopClock.loop
    private let start = LoopClock.loop.now
    private let now: @Sendable () -> Timestamp
    /// The deadline for which ``run()`` waits, counted from the creation; `nil` without one.
    private let next = LatestValue<Duration?>(nil)

    /// - Parameters:
    ///   - inherited: The alerts that an earlier run left raised.
    ///   - now: The wall clock.
    init(_ inherited: InheritedAlerts = InheritedAlerts(), now: @escaping @Sendable () -> Timestamp) {
        let keyed = inherited.alerts.map { (AlertMachine.Key(alert: $0.alert, device: $0.device), $0) }
        var state = State(machine: AlertMachine(raised: keyed.map(\.0)))
        state.active = Dictionary(keyed) { _, last in last }
        state.stored = inherited.values
        state.addresses = inherited.addresses
        self.state = Locked(state)
        self.now = now
    }

    /// Connects the monitor to the handlers of alerts.
    ///
    /// - Parameters:
    ///   - record: Records an event of the kind `alert`; never blocks.
    ///   - publish: Publishes all raised alerts; never blocks.
    func open(record: @escaping EventHandler, publish: @escaping @Sendable ([ActiveAlert]) -> Void) {
        state.withLock { state in
            state.record = record
            state.publish = publish
        }
    }

    /// Sets the rules and devices, and publishes the raised alerts.
    ///
    /// - Parameters:
    ///   - rules: The rules.
    ///   - devices: The addresses of all devices, by name.
    ///   - sensors: The descriptions of the devices that only advertise, with all streams that they can have.
    ///   - values: Returns the last values, for rules that are new or changed.
    func configure(
        _ rules: [AlertRule],
        devices: [String: String],
        sensors: [DeviceDescription] = [],
        values: () -> [AlertMachine.LastValue] = { [] }
    ) {
        let (stored, readdressed, outdated) = state.withLock { state in
            let changed = state.addresses.filter { name, address in devices[name].map { $0 != address } ?? false }
            let outdated = state.outdated(devices)
            let former = Set(changed.keys).union(outdated.map(\.device))
            state.hasRules = !rules.isEmpty
            state.addresses = devices
            state.isListDue = true
            defer { state.stored = [:] }
            let stored = state.stored.filter { !former.contains($0.key) }.values.flatMap(\.self)
            return (stored, Set(changed.keys), outdated)
        }
        let names = devices.keys.sorted()
        let rest = stored + sensors.map { AlertMachine.Event.described($0) }
        handle(
            [.outdated(outdated), .configure(rules, devices: names, readdressed: readdressed, values: values())] + rest
        )
    }

    /// The raised alerts, by device and name.
    var active: [ActiveAlert] { state.withLock(\.sorted) }

    /// Observes stored readings.
    func observe(_ batch: ReadingBatch) {
        guard state.withLock(\.hasRules) else { return }
        let events = state.withLock { state in
            batch.readings.flatMap { reading -> [AlertMachine.Event] in
                state.machine.ignores(reading.stream.device) ? [] : Self.events(of: reading, batch)
            }
        }
        if !events.isEmpty { handle(events) }
    }

    private static func events(of reading: Reading, _ batch: ReadingBatch) -> [AlertMachine.Event] {
        let stream = reading.stream
        guard !reading.isPast else { return [.heard(device: stream.device)] }
        let values = batch.samples[reading.samples].compactMap { sample -> AlertMachine.Event? in
            guard stream.metrics.indices.contains(sample.metric) else { return nil }
            guard let value = sample.value.number, value.isFinite else { return nil }
            return .value(value, stream.metrics[sample.metric], stream: stream.stream, device: stream.device)
        }
        return [.heard(device: stream.device)] + values
    }

    /// Raises alerts at their deadlines, until cancelled.
    func run() async {
        while !Task.isCancelled {
            let deadline = state.withLock { state in
                next.set(state.machine.deadline)
                return state.machine.deadline
            }
            if let deadline, deadline <= elapsed { handle([.tick]) } else { await waitUntil(deadline) }
        }
    }

    /// Waits until the time, or until an alert can be raised earlier.
    private func waitUntil(_ deadline: Duration?) async {
        let limit = deadline.map { $0 - elapsed } ?? .seconds(365 * 86_400)
        await wait(atMost: limit) { [next] in
            for await changed in next.watch() where changed != deadline { return }
        }
    }

    private var elapsed: Duration { clock.now - start }

    /// Applies events, which are made under the lock.
    ///
    /// So no value arrives between the reading of the last values and the change of the rules.
    private func handle(_ events: @autoclosure () -> [AlertMachine.Event]) {
        let (time, elapsed) = (now(), elapsed)
        let isReporter = state.withLock { state in
            let isReporter = state.handle(events(), at: elapsed, time)
            // A later deadline needs no wake: the machine is asked again when the earlier one has come.
            let deadline = state.machine.deadline
            if let deadline, next.state.map({ deadline < $0 }) ?? true { next.set(deadline) }
            return isReporter
        }
        if isReporter { report() }
    }

    /// Reports all changes in order, one thread at a time, so that the last published list is the newest one.
    private func report() {
        let (record, publish) = state.withLock { ($0.record, $0.publish) }
        while let report = state.withLock({ $0.nextReport() }) {
            for (change, address) in report.changes { Self.report(change, address, to: record) }
            publish(report.active)
        }
    }

    private static func report(_ change: AlertMachine.Change, _ address: String?, to record: EventHandler) {
        switch change {
        case .cleared(let key): record(key.device, ["alert": .text(key.alert), "state": .text("cleared")])
        case .raised(let key, let reason):
            // A restart clears the alert if the device has another address by then.
            record(
                key.device,
                [
                    "alert": .text(key.alert),
                    "state": .text("raised"),
                    "detail": .text(reason),
                    "address": address.map { .text($0) },
                ]
            )
        }
    }
}

extension AlertMonitor: Announcer {
    func update(_ status: LinkStatus) {
        handle([.held(status.state == .held, device: status.device)])
    }

    func update(_ lease: DeviceLease) {
        handle([.elsewhere(lease.isOwnedElsewhere, device: lease.device)])
    }

    func describe(_ device: DeviceDescription) {
        // The description of a sensor has only the streams that were heard since its start; see `configure`.
        if device.isConnectable { handle([.described(device)]) }
    }

    func remove(device: String) {
        handle([.removed(device: device)])
    }

    func announce(_ event: LifecycleEvent) {}
}
