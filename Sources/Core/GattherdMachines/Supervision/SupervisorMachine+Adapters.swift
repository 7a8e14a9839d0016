import GattherdGATT
import GattherdModel

// Adapters that appear, disappear and change power.
extension SupervisorMachine {
    mutating func adapterChanged(
        _ address: BluetoothAddress,
        isPowered: Bool,
        now: Duration,
        into effects: inout [Effect]
    ) {
        addAdapter(address)
        let wasPowered = adapters[address]?.isPowered ?? false
        adapters[address]?.isPowered = isPowered
        if wasPowered && !isPowered {
            adapterStopped(address, .adapterPoweredOff, "the adapter \(address) is off", now: now, into: &effects)
        } else if !isPowered {
            disconnect(on: address)
        }
        if isPowered && !wasPowered {
            adapters[address]?.powerOnDue = nil
            adapters[address]?.passiveScan.switchedOn(now: now)
            for device in devices.keys.sorted() { announce(device, now: now, into: &effects) }
        }
    }

    /// Creates the adapter's state if needed; other facts may arrive before the adapter itself.
    mutating func addAdapter(_ address: BluetoothAddress) {
        guard adapters[address] == nil else { return }
        let ladder = RecoveryLadder(policy: policy.recovery)
        adapters[address] = Adapter(ladder: ladder, report: AdapterReport(address))
    }

    /// Ends all activity on the adapter; devices known to another adapter continue there.
    mutating func adapterStopped(
        _ address: BluetoothAddress,
        _ reason: LinkReason,
        _ detail: String,
        now: Duration,
        into effects: inout [Effect]
    ) {
        adapters[address]?.isPowered = false
        adapters[address]?.discovery.reset()
        disconnect(on: address)
        if reason == .adapterLost {
            adapters[address]?.otherLinks = 0
            adapters[address]?.powerOnDue = nil
        }
        for name in devices.keys.sorted() {
            if reason == .adapterLost { devices[name]?.sightings[address] = nil }
            devices[name]?.failures[address] = nil
            lost(address, by: name, reason, detail, now: now, into: &effects)
        }
    }

    /// Clears the links of an adapter that is off.
    private mutating func disconnect(on address: BluetoothAddress) {
        for name in devices.keys { devices[name]?.sightings[address]?.isConnected = false }
    }

    private mutating func lost(
        _ address: BluetoothAddress,
        by name: String,
        _ reason: LinkReason,
        _ detail: String,
        now: Duration,
        into effects: inout [Effect]
    ) {
        guard let device = devices[name] else { return }
        if device.adapter == address {
            send(.gone(reason, detail: detail), to: name, now: now, into: &effects)
            announce(name, now: now, into: &effects)
        } else if device.adapter == nil, usableSightings(of: name).isEmpty {
            let isAlone = !adapters.contains { $0.value.isPowered && mayUse($0.key, name) }
            send(.gone(isAlone ? reason : .vanished, detail: detail), to: name, now: now, into: &effects)
        }
    }

    /// Handles the loss of bluetoothd; learned facts about adapters remain, because they most likely return
    /// unchanged.
    mutating func unavailable(_ detail: String, now: Duration, into effects: inout [Effect]) {
        for address in adapters.keys {
            adapters[address]?.isPowered = false
            adapters[address]?.otherLinks = 0
            adapters[address]?.discovery.reset()
        }
        for name in devices.keys.sorted() {
            devices[name]?.sightings = [:]
            devices[name]?.failures = [:]
            send(.gone(.daemonLost, detail: detail), to: name, now: now, into: &effects)
        }
    }

    mutating func discoveryAnswered(
        _ address: BluetoothAddress,
        ticket: Int,
        _ answer: DiscoveryMachine.Answer,
        now: Duration
    ) {
        guard let failures = adapters[address]?.discovery.failures else { return }
        adapters[address]?.discovery.answered(ticket, answer, now: now)
        let isWorse = (adapters[address]?.discovery.failures ?? 0) > failures
        if isWorse { adapters[address]?.ladder.failed(now: now) }
    }

    /// Returns the number of links up on the adapter, as reported by BlueZ or by the link machines.
    func links(on address: BluetoothAddress) -> Int {
        let ours = devices.values.count { device in
            device.sightings[address]?.isConnected == true
                || device.adapter == address && device.link.state.holdsLink
        }
        return ours + (adapters[address]?.otherLinks ?? 0)
    }

    /// True if the adapter holds as many links as its limit.
    func isFull(_ address: BluetoothAddress) -> Bool {
        guard let adapter = adapters[address], adapter.isPowered, let limit = adapter.slots.limit else { return false }
        return links(on: address) >= limit
    }

    /// Returns the devices that wait for a link and whose only usable adapter is this full one.
    func waiting(on address: BluetoothAddress) -> [String] {
        guard isFull(address) else { return [] }
        let others = adapters.filter { $0.key != address && $0.value.isPowered }.keys
        return devices.keys.sorted().filter { name in
            guard let device = devices[name], device.link.state.wantsSighting, !device.isLeaving else { return false }
            return mayUse(address, name) && !others.contains { mayUse($0, name) && !isFull($0) }
        }
    }

    func hasRoom(_ address: BluetoothAddress, now: Duration) -> Bool {
        guard let adapter = adapters[address], adapter.isPowered, adapter.powerOnDue == nil else { return false }
        let (links, attempts) = (links(on: address), queue.attempts(on: address))
        return adapter.slots.hasRoom(links: links, attempts: attempts, now: now)
    }
}

extension LinkState {
    /// True while BlueZ holds a link for the device.
    var holdsLink: Bool {
        switch self {
        case .discovering, .preparing, .ready, .disconnecting: true
        case .waiting, .connecting, .disconnected, .backingOff, .held, .failed: false
        }
    }
}
