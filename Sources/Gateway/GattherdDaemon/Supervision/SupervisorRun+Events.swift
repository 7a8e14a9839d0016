import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

// Translation of messages to events of the supervisor machine.
extension SupervisorRun {
    /// Translates a message to events for the machine and updates the published state.
    mutating func events(for message: Supervisor.Message, now: Duration) -> [SupervisorMachine.Event] {
        switch message {
        case .supervisor(let event):
            update(for: event)
            return [event]
        case .central(let event): return events(for: event, now: now)
        case .reload(let reload): return events(for: reload)
        case .seek(let offer): return seek(offer)
        case .pulse:
            supervisor.pulses.update { $0 += 1 }
            return []
        case .stop: return []
        }
    }

    private mutating func update(for event: SupervisorMachine.Event) {
        switch event {
        case .powered(let adapter, isOn: true): switching.remove(adapter)
        case .link(let device, .hold): holds[device] = true
        case .link(let device, .release): holds[device] = false
        default: break
        }
    }

    private mutating func events(for event: CentralEvent, now: Duration) -> [SupervisorMachine.Event] {
        supervisor.sessionContext.bonds.note(event)
        supervisor.watches.handle(event)
        switch event {
        case .available:
            recordState("bluetoothd", state: "available", level: .notice)
            return []
        case .unavailable(let detail):
            recordState("bluetoothd", state: "unavailable", detail, level: .warning)
            (peripherals, others, taken) = ([:], [:], [])
            supervisor.board.clearAdapters()
            return [.unavailable(detail: detail)]
        case .adapterChanged(let adapter):
            return adapterChanged(adapter)
        case .adapterRemoved(let address):
            guard isOurs(address) else { return [] }
            supervisor.board.remove(adapter: address)
            others[address] = nil
            recordState("adapter", state: "removed", address.description, level: .warning)
            return [.adapterRemoved(address)]
        case .peripheralChanged(let peripheral):
            return isOurs(peripheral.id.adapter) ? changed(peripheral, now: now) : []
        case .disconnected(let id):
            return isOurs(id.adapter) ? disconnected(id) : []
        case .linkEnded(let id, _):
            return supervisor.configuredDevices[id.address].map { supervisor.sequel(ofEnd: id, $0.name) } ?? []
        case .accessDenied: return []
        case .peripheralRemoved(let id):
            return isOurs(id.adapter) ? removed(id) : []
        case .servicesChanged(let id):
            return linkEvents(id, .tableChanged)
        case .tableCut(let id, let kept, let ignored):
            noteCutTable(id, kept: kept, ignored: ignored)
            return []
        case .subscriptionEnded(let token, let id):
            // A token of an ended session needs no report.
            guard let stream = supervisor.sessionContext.intake.stream(of: token) else { return [] }
            supervisor.sessionContext.noteInterruption(stream, "its subscription ended while the link was up")
            return linkEvents(id, .sessionStale)
        }
    }

    private func noteCutTable(_ id: PeripheralID, kept: Int, ignored: Int) {
        guard let name = supervisor.configuredDevices[id.address]?.name else { return }
        let detail = "its GATT table is too long: \(kept) attributes are used and \(ignored) are ignored"
        supervisor.counters.ignoredAttributes.add(UInt64(clamping: ignored))
        supervisor.recorder.record(device: name, kind: "stream", ["error": .text(detail)])
        supervisor.log(.warning, "a GATT table is too long", [.init("device", name), .init("ignored", ignored)])
    }

    private func isOurs(_ adapter: BluetoothAddress) -> Bool {
        supervisor.settings.adapters?.contains(adapter) ?? true
    }

    private func adapterChanged(_ adapter: AdapterStatus) -> [SupervisorMachine.Event] {
        guard isOurs(adapter.address) else { return [] }
        let before = supervisor.board.set(adapter)
        if before?.isPowered != adapter.isPowered || before?.name != adapter.name {
            recordState(
                "adapter",
                state: adapter.isPowered ? "on" : "off",
                "\(adapter.name) \(adapter.address)",
                level: adapter.isPowered ? .notice : .warning
            )
        }
        let (isPowered, isDiscovering) = (adapter.isPowered, adapter.isDiscovering)
        return [
            .monitoring(adapter.address, adapter.isMonitoring),
            .adapter(adapter.address, isPowered: isPowered, isDiscovering: isDiscovering),
        ]
    }

    // MARK: - Peripherals

    private mutating func changed(_ peripheral: PeripheralStatus, now: Duration) -> [SupervisorMachine.Event] {
        knowing.insert(peripheral.id.adapter)
        let before = peripherals.updateValue(peripheral, forKey: peripheral.id)
        guard let name = supervisor.configuredDevices[peripheral.id.address]?.name else {
            show(peripheral)
            let links = setOther(peripheral.id, isConnected: peripheral.isConnected)
            return links + (peripheral.rssi == nil ? [] : heard(peripheral.id.adapter, now: now))
        }
        supervisor.sessionContext.peripheralNames.withLock { $0[peripheral.id] = peripheral.name }
        let rssi = peripheral.rssi.map { [LogField("rssi", $0)] } ?? []
        if before == nil { supervisor.log(.info, "seen", [.init("device", name)] + rssi) }
        let isHeard = peripheral.heard > before?.heard ?? 0
        if isHeard { supervisor.board.set(.init(time: supervisor.now(), rssi: peripheral.rssi), of: name) }
        return [sighting(of: peripheral, as: name, isHeard: isHeard)]
    }

    private mutating func seek(_ offer: Supervisor.Offer?) -> [SupervisorMachine.Event] {
        (self.offer, taken) = (offer, [])
        for peripheral in peripherals.values where supervisor.configuredDevices[peripheral.id.address] == nil {
            show(peripheral)
        }
        return [.seeking(offer != nil)]
    }

    private mutating func show(_ peripheral: PeripheralStatus) {
        guard let offer, !taken.contains(peripheral.id.address), offer(peripheral) else { return }
        // Random addresses could fill the set; a removed address is offered once more.
        if taken.count >= 10_000 { taken.removeAll() }
        taken.insert(peripheral.id.address)
    }

    func sighting(of peripheral: PeripheralStatus, as name: String, isHeard: Bool = false) -> SupervisorMachine.Event {
        let sighting = SupervisorMachine.Sighting(
            isConnected: peripheral.isConnected,
            isResolved: !peripheral.isConnected || peripheral.isServicesResolved,
            rssi: peripheral.rssi,
            isHeard: isHeard
        )
        return .sighted(device: name, on: peripheral.id.adapter, sighting)
    }

    private mutating func disconnected(_ id: PeripheralID) -> [SupervisorMachine.Event] {
        peripherals[id]?.isConnected = false
        guard let name = supervisor.configuredDevices[id.address]?.name else { return setOther(id, isConnected: false) }
        return [.dropped(device: name, on: id.adapter)] + supervisor.sequel(ofEnd: id, name)
    }

    private mutating func removed(_ id: PeripheralID) -> [SupervisorMachine.Event] {
        peripherals[id] = nil
        taken.remove(id.address)
        supervisor.sessionContext.peripheralNames.withLock { $0[id] = nil }
        guard let name = supervisor.configuredDevices[id.address]?.name else { return setOther(id, isConnected: false) }
        return [.forgotten(device: name, on: id.adapter)] + supervisor.sequel(ofRemoval: id, name)
    }

    private func linkEvents(_ id: PeripheralID, _ event: LinkMachine.Event) -> [SupervisorMachine.Event] {
        guard let name = supervisor.configuredDevices[id.address]?.name, links[name] == id else { return [] }
        return [.link(device: name, event)]
    }

    mutating func setOther(_ id: PeripheralID, isConnected: Bool) -> [SupervisorMachine.Event] {
        let before = others[id.adapter, default: []]
        guard before.contains(id.address) != isConnected else { return [] }
        let after = isConnected ? before.union([id.address]) : before.subtracting([id.address])
        others[id.adapter] = after
        return [.otherLinks(id.adapter, after.count)]
    }

    /// Reports at most once a second that an adapter hears advertisements.
    private mutating func heard(_ adapter: BluetoothAddress, now: Duration) -> [SupervisorMachine.Event] {
        if let last = heard[adapter], now - last < .seconds(1) { return [] }
        heard[adapter] = now
        return [.heard(adapter)]
    }

    private func recordState(_ kind: String, state: String, _ detail: String? = nil, level: LogLevel) {
        supervisor.recorder.record(kind: kind, ["state": .text(state), "detail": detail.map { .text($0) }])
        let fields =
            [LogField("part", kind), LogField("state", state)] + (detail.map { [LogField("detail", $0)] } ?? [])
        supervisor.log(level, "bluetooth changed", fields)
    }
}
