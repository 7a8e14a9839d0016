import GattherdGATT
import GattherdModel

// The plan that follows every event.
extension SupervisorMachine {
    /// The limit for BlueZ to switch an adapter's power.
    private static let powerLimit = Duration.seconds(60)

    mutating func plan(now: Duration, into effects: inout [Effect]) {
        offerFreeSlots(now: now)
        sendDueTimers(now: now, into: &effects)
        removeDismissed(into: &effects)
        grantTurns(now: now, into: &effects)
        for address in adapters.keys.sorted() {
            takeTurns(on: address, now: now, into: &effects)
            plan(address, now: now, into: &effects)
            report(address, into: &effects)
        }
        requestWake(now: now, into: &effects)
    }

    private mutating func sendDueTimers(now: Duration, into effects: inout [Effect]) {
        let due = devices.filter { device in device.value.timer.map { $0.due <= now } ?? false }
        for name in due.keys.sorted() {
            guard let timer = devices[name]?.timer.take() else { continue }
            send(.due(ticket: timer.ticket), to: name, now: now, into: &effects)
        }
    }

    /// Ends the pause of one refused device for each slot that becomes free.
    private mutating func offerFreeSlots(now: Duration) {
        for (address, adapter) in adapters {
            let freed = adapter.report.links - links(on: address)
            guard freed > 0 else { continue }
            let refused = devices.filter { $0.value.refusedBy == address && $0.value.link.isPausing }
            let order = refused.sorted { ($0.value.link.attempt, $0.key) < ($1.value.link.attempt, $1.key) }
            for (name, _) in order.prefix(freed) { devices[name]?.timer?.due = now }
        }
    }

    private mutating func grantTurns(now: Duration, into effects: inout [Effect]) {
        while let turn = nextTurn(now: now) {
            devices[turn.device]?.adapter = turn.adapter
            send(.granted, to: turn.device, now: now, into: &effects)
        }
    }

    private mutating func nextTurn(now: Duration) -> ConnectQueue.Turn? {
        guard !queue.isEmpty else { return nil }
        var queue = queue
        let turn = queue.next(now: now, adapters: adapters.keys) { bestAdapter(for: $0, now: now) }
        self.queue = queue
        return turn
    }

    // MARK: - One adapter

    /// The time for which a link that made room stays away, so that waiting devices can be seen and connected.
    private static let yieldPause = Duration.seconds(30)

    /// Ends expired links of a full adapter, one for each device that has waited long enough.
    private mutating func takeTurns(on address: BluetoothAddress, now: Duration, into effects: inout [Effect]) {
        guard let period = policy.rotation else { return }
        let waiting = waiting(on: address)
        let ready = readyLinks(on: address)
        let wanting = Set(devices.filter { $0.value.link.state != .held && !$0.value.isLeaving }.keys)
        let chosen = adapters[address]?.rotation.choose(
            period: period,
            ready: ready,
            waiting: waiting,
            wanting: wanting,
            now: now
        )
        for name in chosen ?? [] {
            let detail = "the adapter \(address) is full, and other devices wait"
            send(.yield(Self.yieldPause, detail: detail), to: name, now: now, into: &effects)
        }
    }

    /// The adapter's ready links and the time each became ready.
    private func readyLinks(on address: BluetoothAddress) -> [String: Duration] {
        devices.filter { $0.value.adapter == address && $0.value.link.state == .ready }.compactMapValues(
            \.link.readySince
        )
    }

    private mutating func plan(_ address: BluetoothAddress, now: Duration, into effects: inout [Effect]) {
        guard let adapter = adapters[address] else { return }
        if let due = adapter.powerOnDue, due <= now {
            adapters[address]?.powerOnDue = now + Self.powerLimit
            effects.append(.powerOn(address))
        }
        guard adapter.isPowered, adapter.powerOnDue == nil else { return }
        if isListenedTo(address) {
            adapters[address]?.passiveScan.checkSilence(lastHeard: adapter.ladder.lastHeard, now: now)
        }
        let isLooking = devices.keys.contains { needsSighting($0, on: address, now: now) }
        adapters[address]?.lookingSince = isLooking ? adapter.lookingSince ?? now : nil
        let conditions = conditions(of: address)
        if let remedy = adapters[address]?.ladder.nextRemedy(conditions, now: now) {
            apply(remedy, to: address, now: now, into: &effects)
        }
        let isWanted = wantsDiscovery(on: address, now: now)
        if let effect = adapters[address]?.discovery.nextRequest(isWanted: isWanted, now: now) {
            effects.append(.discovery(address, effect))
        }
    }

    private mutating func apply(
        _ remedy: RecoveryLadder.Remedy,
        to address: BluetoothAddress,
        now: Duration,
        into effects: inout [Effect]
    ) {
        adapters[address]?.report.lastRemedy = remedy
        effects.append(.remedy(address, remedy))
        switch remedy.step {
        case .restartDiscovery: adapters[address]?.discovery.restart()
        case .newSession: effects.append(.renewSession)
        case .powerCycle:
            adapters[address]?.powerOnDue = now + Self.powerLimit
            effects.append(.powerCycle(address))
        }
    }

    private func conditions(of address: BluetoothAddress) -> RecoveryLadder.Conditions {
        let since = listens(on: address) ? .zero : adapters[address]?.lookingSince
        return RecoveryLadder.Conditions(
            isListeningSince: since.flatMap { since in adapters[address]?.discovery.since.map { max($0, since) } },
            hasLinks: hasWorkingLinks(on: address),
            hasSessions: devices.values.contains { $0.link.state.holdsLink }
        )
    }

    /// True while a link of the adapter may work; links that proved dead do not count, even if BlueZ still shows
    /// them.
    private func hasWorkingLinks(on address: BluetoothAddress) -> Bool {
        let dead = devices.values.count { device in
            device.deadLink?.adapter == address && device.sightings[address]?.isConnected == true
        }
        return links(on: address) > dead
    }

    private func wantsDiscovery(on address: BluetoothAddress, now: Duration) -> Bool {
        guard let adapter = adapters[address] else { return false }
        return adapter.ladder.wantsToListen(at: now) || adapter.lookingSince != nil && hasRoom(address, now: now)
            || scansAlways(address) && !queue.isBlocked(address, now: now)
    }

    /// True if discovery is wanted regardless of other work.
    private func scansAlways(_ address: BluetoothAddress) -> Bool { isSeeking || listens(on: address) }

    /// True if a sighting on that adapter would help, because no other adapter will do or this one may be better.
    private func needsSighting(_ name: String, on address: BluetoothAddress, now: Duration) -> Bool {
        guard let device = devices[name], device.link.state.wantsSighting, mayUse(address, name) else { return false }
        guard device.sightings[address] == nil else { return false }
        if let end = device.comparedAt, now < end { return true }
        return !usableSightings(of: name).keys.contains { other in
            device.failures[other, default: 0] < 3 && hasRoom(other, now: now)
        }
    }

    private mutating func report(_ address: BluetoothAddress, into effects: inout [Effect]) {
        guard let adapter = adapters[address] else { return }
        var report = adapter.report
        report.links = links(on: address)
        report.slots = adapter.slots.limit
        report.attempts = queue.attempts(on: address)
        report.waiting = waiting(on: address)
        guard report != adapter.report else { return }
        adapters[address]?.report = report
        effects.append(.report(report))
    }

    // MARK: - Time

    /// Requests one wake-up at the next deadline.
    private mutating func requestWake(now: Duration, into effects: inout [Effect]) {
        guard let deadline = deadline(after: now), !wakes.contains(where: { $0 <= deadline }) else { return }
        wakes.insert(deadline)
        effects.append(.wake(at: deadline))
    }

    private func deadline(after now: Duration) -> Duration? {
        var times = devices.values.compactMap(\.timer?.due)
        if let turn = queue.deadline(after: now) { times.append(turn) }
        if adapters.keys.contains(where: scansAlways), let end = queue.endOfPatience(after: now) { times.append(end) }
        if adapters.count > 1 { times += devices.values.compactMap(\.comparedAt).filter { $0 > now } }
        for (address, adapter) in adapters {
            if let due = adapter.powerOnDue { times.append(due) }
            let turn = policy.rotation.flatMap { period in
                adapter.rotation.deadline(period: period, ready: readyLinks(on: address), now: now)
            }
            if let turn { times.append(turn) }
            guard adapter.isPowered, adapter.powerOnDue == nil else { continue }
            let isWanted = wantsDiscovery(on: address, now: now)
            times += [
                isListenedTo(address) ? adapter.passiveScan.deadline(lastHeard: adapter.ladder.lastHeard) : nil,
                adapter.slots.probe(links: links(on: address)),
                adapter.discovery.deadline(isWanted: isWanted),
                adapter.ladder.deadline(conditions(of: address), now: now),
            ].compactMap(\.self).filter { $0 > now }
        }
        return times.min()
    }
}

extension LinkState {
    /// True while discovery would help, if no adapter knows the device.
    var wantsSighting: Bool {
        switch self {
        case .waiting, .disconnected, .backingOff: true
        case .connecting, .discovering, .preparing, .ready, .disconnecting, .held, .failed: false
        }
    }
}
