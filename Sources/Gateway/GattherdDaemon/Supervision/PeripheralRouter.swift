import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// Translates events of peripherals to events of the supervisor machine, and offers unknown ones for enrolment.
struct PeripheralRouter {
    typealias Event = SupervisorMachine.Event

    private let configuredDevices: ConfiguredDevices
    private let context: LinkSessionContext
    private let reporter: LinkReporter
    private let ignoredAttributes: Counter
    private var table = PeripheralTable()
    private var offers = EnrolmentOffers()

    /// - Parameters:
    ///   - context: The daemon's parts that each link session uses.
    ///   - reporter: The publisher of sightings and events.
    ///   - ignoredAttributes: The counter of GATT attributes ignored because their peripheral has too many.
    init(_ context: LinkSessionContext, reporter: LinkReporter, ignoredAttributes: Counter) {
        configuredDevices = context.configuredDevices
        self.context = context
        self.reporter = reporter
        self.ignoredAttributes = ignoredAttributes
    }

    private func device(_ id: PeripheralID) -> String? { configuredDevices[id.address]?.name }

    /// The peripherals that BlueZ knows.
    var all: [PeripheralStatus] { Array(table.all) }

    /// The signal strength of a peripheral in dBm, if known.
    func rssi(of id: PeripheralID) -> Int? { table[id]?.rssi }

    /// Returns the machine's events for an event of a peripheral.
    mutating func events(for event: CentralEvent, _ sessions: LinkSessions, at now: Duration) -> [Event] {
        switch event {
        case .peripheralChanged(let peripheral): return changed(peripheral, at: now)
        case .disconnected(let id): return disconnected(id)
        case .linkEnded(let id, _): return device(id).map { retries(afterEndOf: id, $0) } ?? []
        case .peripheralRemoved(let id): return removed(id)
        case .servicesChanged(let id): return linkEvents(id, .tableChanged, sessions)
        case .tableCut(let id, let kept, let ignored):
            recordCutTable(id, kept: kept, ignored: ignored)
            return []
        case .subscriptionEnded(let token, let id):
            // A token of an ended session needs no report.
            guard let stream = context.intake.stream(of: token) else { return [] }
            context.recordInterruption(stream, "its subscription ended while the link was up")
            return linkEvents(id, .sessionStale, sessions)
        case .available, .unavailable, .adapterChanged, .adapterRemoved, .accessDenied: return []
        }
    }

    private mutating func changed(_ peripheral: PeripheralStatus, at now: Duration) -> [Event] {
        let before = table.update(peripheral)
        guard let name = device(peripheral.id) else {
            offers.offer(peripheral)
            let adapter = peripheral.id.adapter
            let isHeard = peripheral.rssi != nil && table.isHearingDue(adapter, now: now)
            return setOtherLink(peripheral.id, isConnected: peripheral.isConnected) + (isHeard ? [.heard(adapter)] : [])
        }
        context.peripheralNames.withLock { $0[peripheral.id] = peripheral.name }
        let rssi = peripheral.rssi.map { [LogField("rssi", $0)] } ?? []
        if before == nil { reporter.log(.info, "device seen for the first time", [.init("device", name)] + rssi) }
        if peripheral.hasOtherTraits(than: before) {
            reporter.status.set(AdvertisedTraits(peripheral), of: name)
        }
        let isHeard = peripheral.heard > before?.heard ?? 0
        if isHeard { reporter.status.set(.init(time: reporter.now(), rssi: peripheral.rssi), of: name) }
        return [sighting(of: peripheral, as: name, isHeard: isHeard)]
    }

    private mutating func disconnected(_ id: PeripheralID) -> [Event] {
        table.setDisconnected(id)
        guard let name = device(id) else { return setOtherLink(id, isConnected: false) }
        return [.dropped(device: name, on: id.adapter)] + retries(afterEndOf: id, name)
    }

    private mutating func removed(_ id: PeripheralID) -> [Event] {
        table.remove(id)
        offers.remove(id.address)
        context.peripheralNames.withLock { $0[id] = nil }
        guard let name = device(id) else { return setOtherLink(id, isConnected: false) }
        // A removal by the daemon needs no back-off.
        let retries = context.bonds.hasLeft(id) ? retry(name, unless: [.held, .disconnecting]) : []
        return [.forgotten(device: name, on: id.adapter)] + retries
    }

    private func linkEvents(_ id: PeripheralID, _ event: LinkMachine.Event, _ sessions: LinkSessions) -> [Event] {
        guard let name = device(id), sessions.link(of: name) == id else { return [] }
        return [.link(device: name, event)]
    }

    private func recordCutTable(_ id: PeripheralID, kept: Int, ignored: Int) {
        guard let name = device(id) else { return }
        let detail = "its GATT table is too long: \(kept) attributes are used and \(ignored) are ignored"
        ignoredAttributes.add(UInt64(clamping: ignored))
        reporter.recorder.record(device: name, kind: "stream", ["error": .text(detail)])
        reporter.log(.warning, "a device's GATT table is too long", [.init("device", name), .init("ignored", ignored)])
    }

    // MARK: - Adapters

    /// Removes the links of an adapter that is gone.
    mutating func remove(adapter: BluetoothAddress) {
        table.remove(adapter: adapter)
    }

    /// Removes all peripherals: bluetoothd is gone.
    mutating func removeAll() {
        table.removeAll()
        offers.removeAll()
    }

    // MARK: - Devices

    /// Offers every unknown peripheral to `offer`; `nil` ends the offers.
    mutating func offer(to offer: Supervisor.Offer?) {
        offers.start(offer)
        for peripheral in table.all where device(peripheral.id) == nil { offers.offer(peripheral) }
    }

    /// Returns the sightings of an address for its current device, after a device was added or removed.
    mutating func sightings(of address: BluetoothAddress) -> [Event] {
        let name = configuredDevices[address]?.name
        return table.peripherals(at: address).flatMap { peripheral in
            let links = setOtherLink(peripheral.id, isConnected: name == nil && peripheral.isConnected)
            return links + (name.map { [sighting(of: peripheral, as: $0)] } ?? [])
        }
    }

    private func sighting(of peripheral: PeripheralStatus, as name: String, isHeard: Bool = false) -> Event {
        let sighting = SupervisorMachine.Sighting(
            isConnected: peripheral.isConnected,
            isResolved: !peripheral.isConnected || peripheral.isServicesResolved,
            rssi: peripheral.rssi,
            isHeard: isHeard
        )
        return .sighted(device: name, on: peripheral.id.adapter, sighting)
    }

    private mutating func setOtherLink(_ id: PeripheralID, isConnected: Bool) -> [Event] {
        table.setOtherLink(id, isConnected: isConnected).map { [.otherLinks(id.adapter, $0)] } ?? []
    }

    // MARK: - Bonds

    /// Returns the events after the end of a link or an attempt: if it ended for a lost bond, it is retried at once.
    func retries(afterEndOf link: PeripheralID, _ device: String) -> [Event] {
        context.bonds.hasJustLost(link) ? retry(device, unless: [.held, .disconnecting, .failed]) : []
    }

    private func retry(_ device: String, unless states: Set<LinkState>) -> [Event] {
        let isWanted = reporter.status.link(of: device).map { !states.contains($0.state) } ?? false
        return isWanted ? [.link(device: device, .release)] : []
    }
}

extension PeripheralStatus {
    fileprivate func hasOtherTraits(than other: PeripheralStatus?) -> Bool {
        name != other?.name || services != other?.services || advertisement != other?.advertisement
    }
}

extension CentralEvent {
    /// The adapter whose state the event changes; `nil` for events that concern every adapter.
    var adapter: BluetoothAddress? {
        switch self {
        case .adapterChanged(let adapter): adapter.address
        case .adapterRemoved(let address): address
        case .peripheralChanged(let peripheral): peripheral.id.adapter
        case .disconnected(let id), .peripheralRemoved(let id): id.adapter
        case .available, .unavailable, .linkEnded, .accessDenied, .servicesChanged, .tableCut, .subscriptionEnded: nil
        }
    }
}
