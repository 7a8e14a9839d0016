public import GattherdGATT
public import GattherdModel

/// The supervisor of all devices: adapter choice, connect turns, discovery and recovery of failing adapters.
///
/// A pure state machine: the monotonic time and the seed of the jitter are passed in.
public struct SupervisorMachine: Sendable {
    /// The adapters, the devices and the queue for connecting.
    private(set) var table: LinkTable
    private var random: SplitMix64
    /// The requested wake-ups that are still to come.
    private(set) var wakes: Set<Duration> = []
    let policy: Policy

    /// Creates a supervisor.
    ///
    /// - Parameters:
    ///   - devices: The names of all devices.
    ///   - pinned: The only adapter that a device may use, for devices that have one.
    ///   - held: The devices that a user disconnected.
    ///   - listening: The adapters that scan for connectionless devices; `nil` for all.
    ///   - policy: The timeouts and pauses.
    ///   - seed: The seed of the jitter.
    public init(
        devices: [String],
        pinned: [String: BluetoothAddress] = [:],
        held: Set<String> = [],
        listening: Set<BluetoothAddress>? = [],
        policy: Policy = .init(),
        seed: UInt64
    ) {
        self.policy = policy
        table = LinkTable(policy, listening: listening)
        random = SplitMix64(seed: seed)
        for name in devices { enrol(name, pinned: pinned[name], isHeld: held.contains(name)) }
    }

    /// Returns the state of one device's link.
    public func state(of device: String) -> LinkState? {
        table.devices[device]?.link.state
    }

    /// Applies one event and returns the resulting effects, in order.
    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        var effects: [Effect] = []
        apply(event, at: now, into: &effects)
        plan(at: now, into: &effects)
        return effects
    }

    private mutating func apply(_ event: Event, at now: Duration, into effects: inout [Effect]) {
        switch event {
        case .adapter(let address, let isPowered, let isDiscovering):
            adapterChanged(address, isPowered: isPowered, at: now, into: &effects)
            table.adapters[address]?.discovery.reported(isDiscovering: isDiscovering, at: now)
        case .adapterRemoved(let address):
            adapterStopped(address, .adapterLost, "the adapter \(address) is gone", at: now, into: &effects)
        case .listening(let adapters):
            table.listening = adapters
        case .seeking(let isSeeking):
            table.isSeeking = isSeeking
        case .monitoring(let address, let isMonitoring):
            table.addAdapter(address)
            table.adapters[address]?.passiveScan.reported(isActive: isMonitoring, at: now)
        case .unavailable(let detail):
            unavailable(detail, at: now, into: &effects)
        case .sighted(let device, let address, let sighting):
            sighted(device, on: address, sighting, at: now, into: &effects)
        case .forgotten(let device, let address):
            forgotten(device, on: address, at: now, into: &effects)
        case .dropped(let device, let address):
            dropped(device, on: address, at: now, into: &effects)
        case .heard(let address):
            table.adapters[address]?.ladder.heard(at: now)
        case .otherLinks(let address, let count):
            table.addAdapter(address)
            table.adapters[address]?.setOtherLinks(count)
        case .link(let device, let event):
            guard table.devices[device]?.isLeaving != true || event != .release else { return }
            send(event, to: device, at: now, into: &effects)
            if event == .admitted { announce(device, at: now, into: &effects) }
        case .enrolled(let device, let pinned, let isHeld):
            enrol(device, pinned: pinned, isHeld: isHeld)
        case .dismissed(let device):
            table.devices[device]?.dismiss()
            send(.hold, to: device, at: now, into: &effects)
        case .discovery(let address, let ticket, let answer):
            table.adapters[address]?.discoveryAnswered(ticket, answer, at: now)
        case .powered(let address, let isOn):
            table.adapters[address]?.powered(isOn: isOn, at: now)
        case .wake(let time):
            wakes.remove(time)
        }
    }

    // MARK: - Adapters

    private mutating func adapterChanged(
        _ address: BluetoothAddress,
        isPowered: Bool,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        table.addAdapter(address)
        let wasPowered = table.adapters[address]?.isPowered ?? false
        table.adapters[address]?.setPower(isPowered, at: now)
        if wasPowered && !isPowered {
            adapterStopped(address, .adapterPoweredOff, "the adapter \(address) is off", at: now, into: &effects)
        } else if !isPowered {
            table.disconnect(on: address)
        }
        if isPowered && !wasPowered {
            for device in table.devices.keys.sorted() { announce(device, at: now, into: &effects) }
        }
    }

    /// Ends all activity on the adapter; devices known to another adapter continue there.
    private mutating func adapterStopped(
        _ address: BluetoothAddress,
        _ reason: LinkReason,
        _ detail: String,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        let isGone = reason == .adapterLost
        table.adapters[address]?.stop(isGone: isGone)
        table.disconnect(on: address)
        for name in table.devices.keys.sorted() {
            table.devices[name]?.adapterStopped(address, isGone: isGone)
            lost(address, by: name, reason, detail, at: now, into: &effects)
        }
    }

    private mutating func lost(
        _ address: BluetoothAddress,
        by name: String,
        _ reason: LinkReason,
        _ detail: String,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        guard let device = table.devices[name] else { return }
        if device.adapter == address {
            send(.gone(reason, detail: detail), to: name, at: now, into: &effects)
            announce(name, at: now, into: &effects)
        } else if device.adapter == nil, table.usableSightings(of: name).isEmpty {
            let isAlone = !table.adapters.contains { $0.value.isPowered && table.mayUse($0.key, name) }
            send(.gone(isAlone ? reason : .vanished, detail: detail), to: name, at: now, into: &effects)
        }
    }

    /// Handles the loss of bluetoothd; learned facts about adapters remain, because the adapters usually return
    /// unchanged.
    private mutating func unavailable(_ detail: String, at now: Duration, into effects: inout [Effect]) {
        for address in table.adapters.keys { table.adapters[address]?.serviceLost() }
        for name in table.devices.keys.sorted() {
            table.devices[name]?.serviceLost()
            send(.gone(.daemonLost, detail: detail), to: name, at: now, into: &effects)
        }
    }

    // MARK: - Devices

    private mutating func enrol(_ name: String, pinned: BluetoothAddress?, isHeld: Bool) {
        guard table.devices[name] == nil else { return }
        table.devices[name] = SupervisedLink(link: LinkMachine(policy: policy.link, isHeld: isHeld), pinned: pinned)
    }

    /// Removes dismissed devices whose links have ended.
    private mutating func removeDismissed(into effects: inout [Effect]) {
        for name in table.devices.filter({ $0.value.hasLeft }).keys.sorted() {
            table.devices[name] = nil
            effects.append(.left(device: name))
        }
    }

    private mutating func sighted(
        _ name: String,
        on address: BluetoothAddress,
        _ sighting: Sighting,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        guard let device = table.devices[name], table.mayUse(address, name) else { return }
        let isFirst = table.usableSightings(of: name).isEmpty
        table.devices[name]?.sighted(sighting, on: address, isFirst: isFirst, at: now)
        if sighting.isHeard {
            table.adapters[address]?.ladder.heard(at: now)
            if device.link.state == .ready { effects.append(.probe(device: name)) }
        }
        announce(name, at: now, into: &effects)
    }

    private mutating func forgotten(
        _ name: String,
        on address: BluetoothAddress,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        guard let device = table.devices[name], table.mayUse(address, name) else { return }
        table.devices[name]?.forget(address)
        guard device.adapter == address || device.adapter == nil && table.usableSightings(of: name).isEmpty else {
            return
        }
        send(.gone(.vanished, detail: "BlueZ has removed the peripheral"), to: name, at: now, into: &effects)
        announce(name, at: now, into: &effects)
    }

    private mutating func dropped(
        _ name: String,
        on address: BluetoothAddress,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        table.devices[name]?.disconnected(on: address)
        guard table.devices[name]?.adapter == address else { return }
        send(.lost(.remote, detail: "the link dropped"), to: name, at: now, into: &effects)
    }

    /// Announces the peripheral to its link if a usable adapter knows it.
    private mutating func announce(_ name: String, at now: Duration, into effects: inout [Effect]) {
        let usable = table.usableSightings(of: name)
        guard !usable.isEmpty, !table.isLinkedElsewhere(name) else { return }
        let connected = usable.filter { $0.value.isConnected && $0.value.isResolved }.keys.min()
        if connected == nil, usable.contains(where: \.value.isConnected) {
            return send(.linkFound, to: name, at: now, into: &effects)
        }
        if let connected, table.devices[name]?.link.isBound == false { table.devices[name]?.assign(connected) }
        send(.seen(isConnected: connected != nil), to: name, at: now, into: &effects)
    }

    // MARK: - Links

    /// Sends an event to a link and carries out the effects that concern the supervisor.
    private mutating func send(
        _ event: LinkMachine.Event,
        to name: String,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        guard let asked = table.devices[name]?.handle(event, at: now, using: &random),
            let device = table.devices[name]
        else { return }
        for effect in asked {
            switch effect {
            case .queue: table.queue.add(name, failures: device.link.attempt, at: table.waitingSince(name) ?? now)
            case .unqueue: table.queue.remove(name)
            case .arm(let delay, let ticket):
                table.devices[name]?.setTimer(due: now + delay, ticket: ticket)
            case .changed(var change):
                table.recordTransition(change, of: name, at: now)
                if let suspicion = table.suspicion(of: name, after: change) {
                    change.detail = change.detail.map { "\($0); \(suspicion)" } ?? suspicion
                }
                if device.isLeaving { change.detail = change.detail ?? "it is no longer configured or enrolled so" }
                effects.append(.link(device: name, on: device.adapter, .changed(change)))
            default: effects.append(.link(device: name, on: device.adapter, effect))
            }
        }
        table.devices[name]?.releaseAdapter()
    }

    // MARK: - The plan after every event

    private mutating func plan(at now: Duration, into effects: inout [Effect]) {
        offerFreeSlots(at: now)
        sendDueTimers(at: now, into: &effects)
        removeDismissed(into: &effects)
        grantTurns(at: now, into: &effects)
        endExpiredLinks(at: now, into: &effects)
        for address in table.adapters.keys.sorted() {
            plan(address, at: now, into: &effects)
            report(address, into: &effects)
        }
        requestWake(at: now, into: &effects)
    }

    private mutating func sendDueTimers(at now: Duration, into effects: inout [Effect]) {
        let due = table.devices.filter { device in device.value.timer.map { $0.due <= now } ?? false }
        for name in due.keys.sorted() {
            guard let ticket = table.devices[name]?.takeDueTimer(at: now) else { continue }
            send(.due(ticket: ticket), to: name, at: now, into: &effects)
        }
    }

    /// Ends the pause of one refused device for each slot that becomes free.
    private mutating func offerFreeSlots(at now: Duration) {
        for (address, adapter) in table.adapters {
            let freed = adapter.report.links - table.links(on: address)
            guard freed > 0 else { continue }
            let refused = table.devices.filter { $0.value.refusedBy == address && $0.value.link.isPausing }
            let order = refused.sorted { ($0.value.link.attempt, $0.key) < ($1.value.link.attempt, $1.key) }
            for (name, _) in order.prefix(freed) { table.devices[name]?.endPause(at: now) }
        }
    }

    private mutating func grantTurns(at now: Duration, into effects: inout [Effect]) {
        while let turn = nextTurn(at: now) {
            table.devices[turn.device]?.assign(turn.adapter)
            send(.granted, to: turn.device, at: now, into: &effects)
        }
    }

    private mutating func nextTurn(at now: Duration) -> ConnectQueue.Turn? {
        guard !table.queue.isEmpty else { return nil }
        var queue = table.queue
        let turn = queue.next(at: now, adapters: table.adapters.keys) { table.bestAdapter(for: $0, at: now) }
        table.queue = queue
        return turn
    }

    // MARK: - One adapter

    /// The time for which a link that made room stays away, so that waiting devices can be seen and connected.
    private static let yieldPause = Duration.seconds(30)

    /// Ends expired links of full adapters, one for each device that has waited long enough.
    private mutating func endExpiredLinks(at now: Duration, into effects: inout [Effect]) {
        guard let period = policy.rotation else { return }
        for address in table.adaptersByOldestLink { endExpiredLinks(on: address, period, at: now, into: &effects) }
    }

    private mutating func endExpiredLinks(
        on address: BluetoothAddress,
        _ period: Duration,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        let (elsewhere, invited) = (table.readyElsewhere(than: address), table.invitedElsewhere(than: address, at: now))
        table.adapters[address]?.rotation.recordElsewhere(ready: elsewhere, invited: invited, at: now)
        let waiting = table.waiting(on: address).filter { !invited.contains($0) }
        let ready = table.readyLinks(on: address)
        let wanting = Set(table.devices.filter { $0.value.mayConnect }.keys)
        let chosen = table.adapters[address]?.rotation.choose(
            period: period,
            ready: ready,
            waiting: waiting,
            wanting: wanting,
            at: now
        )
        for name in chosen ?? [] {
            let detail = "the adapter \(address) is full, and other devices wait"
            send(.yield(Self.yieldPause, detail: detail), to: name, at: now, into: &effects)
        }
    }

    private mutating func plan(_ address: BluetoothAddress, at now: Duration, into effects: inout [Effect]) {
        guard let adapter = table.adapters[address] else { return }
        if table.adapters[address]?.startPowerOn(at: now) == true { effects.append(.powerOn(address)) }
        guard adapter.isUsable else { return }
        if table.isListenedTo(address) {
            table.adapters[address]?.passiveScan.checkSilence(lastHeard: adapter.ladder.lastHeard, at: now)
        }
        let isLooking = table.devices.keys.contains { table.needsSighting($0, on: address, at: now) }
        table.adapters[address]?.setSightingNeeded(isLooking, at: now)
        let conditions = table.conditions(of: address)
        if let remedy = table.adapters[address]?.ladder.nextRemedy(conditions, at: now) {
            apply(remedy, to: address, at: now, into: &effects)
        }
        let isWanted = table.wantsDiscovery(on: address, at: now)
        if let effect = table.adapters[address]?.discovery.nextRequest(isWanted: isWanted, at: now) {
            effects.append(.discovery(address, effect))
        }
    }

    private mutating func apply(
        _ remedy: RecoveryLadder.Remedy,
        to address: BluetoothAddress,
        at now: Duration,
        into effects: inout [Effect]
    ) {
        table.adapters[address]?.apply(remedy, at: now)
        effects.append(.remedy(address, remedy))
        switch remedy.step {
        case .restartDiscovery: break
        case .newBusConnection: effects.append(.reconnectToBus)
        case .powerCycle: effects.append(.powerCycle(address))
        }
    }

    private mutating func report(_ address: BluetoothAddress, into effects: inout [Effect]) {
        let (links, attempts) = (table.links(on: address), table.queue.attempts(on: address))
        let waiting = table.waiting(on: address)
        if let report = table.adapters[address]?.updateReport(links: links, attempts: attempts, waiting: waiting) {
            effects.append(.report(report))
        }
    }

    // MARK: - Time

    /// Requests one wake-up at the next deadline.
    private mutating func requestWake(at now: Duration, into effects: inout [Effect]) {
        guard let deadline = table.deadline(after: now), !wakes.contains(where: { $0 <= deadline }) else { return }
        wakes.insert(deadline)
        effects.append(.wake(at: deadline))
    }
}
