import GattherdGATT
import GattherdModel

// Reasons for discovery, and the next deadline.
extension LinkTable {
    /// True if the adapter should scan for connectionless devices.
    func listens(on address: BluetoothAddress) -> Bool {
        isListenedTo(address) && adapters[address]?.passiveScan.isReliable == false
    }

    /// True if the adapter is configured to scan for connectionless devices.
    func isListenedTo(_ address: BluetoothAddress) -> Bool { listening?.contains(address) ?? true }

    func conditions(of address: BluetoothAddress) -> RecoveryLadder.Conditions {
        let since = listens(on: address) ? .zero : adapters[address]?.lookingSince
        return RecoveryLadder.Conditions(
            isListeningSince: since.flatMap { since in adapters[address]?.discovery.since.map { max($0, since) } },
            hasLinks: hasWorkingLinks(on: address),
            hasSessions: devices.values.contains { $0.link.state.holdsLink }
        )
    }

    func wantsDiscovery(on address: BluetoothAddress, at now: Duration) -> Bool {
        guard let adapter = adapters[address] else { return false }
        return adapter.ladder.wantsToListen(at: now) || adapter.lookingSince != nil && hasRoom(address, at: now)
            || scansAlways(address) && !queue.isBlocked(address, at: now)
    }

    /// True if discovery is wanted regardless of other work.
    func scansAlways(_ address: BluetoothAddress) -> Bool {
        isSeeking || listens(on: address) || isComparing(on: address)
    }

    /// True if a device without a link has a lease: its strength here is compared with that at other gateways.
    private func isComparing(on address: BluetoothAddress) -> Bool {
        hasLeases && devices.contains { !$0.value.link.isUp && $0.value.link.state != .held && mayUse(address, $0.key) }
    }

    func deadline(after now: Duration) -> Duration? {
        var times = devices.values.compactMap(\.timer?.due)
        if let turn = queue.deadline(after: now) { times.append(turn) }
        if adapters.keys.contains(where: scansAlways), let end = queue.waitDeadline(after: now) { times.append(end) }
        if adapters.count > 1 { times += devices.values.compactMap(\.comparedAt).filter { $0 > now } }
        for (address, adapter) in adapters {
            if let due = adapter.powerOnDeadline { times.append(due) }
            let turn = rotation.flatMap { period in
                adapter.rotation.deadline(period: period, ready: readyLinks(on: address), at: now)
            }
            if let turn { times.append(turn) }
            guard adapter.isUsable else { continue }
            let isWanted = wantsDiscovery(on: address, at: now)
            times += [
                isListenedTo(address) ? adapter.passiveScan.deadline(lastHeard: adapter.ladder.lastHeard) : nil,
                adapter.slots.probe(links: links(on: address)),
                adapter.discovery.deadline(isWanted: isWanted),
                adapter.ladder.deadline(conditions(of: address), at: now),
            ].compactMap(\.self).filter { $0 > now }
        }
        return times.min()
    }

    /// True if a sighting on that adapter would help, because no other adapter will do or this one may be better.
    func needsSighting(_ name: String, on address: BluetoothAddress, at now: Duration) -> Bool {
        guard let device = devices[name], device.link.state.wantsSighting, mayUse(address, name) else { return false }
        guard device.sightings[address] == nil else { return false }
        if let end = device.comparedAt, now < end { return true }
        return !usableSightings(of: name).keys.contains { other in
            device.failures[other, default: 0] < 3 && hasRoom(other, at: now)
        }
    }
}
