import GattherdGATT
import GattherdModel

// Sightings, losses and connections of devices.
extension SupervisorMachine {
    /// The time for which a newly seen device waits for sightings by other adapters.
    private static let comparison = Duration.seconds(1)

    mutating func enrol(_ name: String, pinned: BluetoothAddress?, isHeld: Bool) {
        guard devices[name] == nil else { return }
        devices[name] = Device(link: LinkMachine(policy: policy.link, isHeld: isHeld), pinned: pinned)
    }

    /// Removes dismissed devices whose links have ended.
    mutating func removeDismissed(into effects: inout [Effect]) {
        let gone = devices.filter { $0.value.isLeaving && $0.value.link.state == .held && !$0.value.link.isBound }
        for name in gone.keys.sorted() {
            devices[name] = nil
            effects.append(.left(device: name))
        }
    }

    mutating func sighted(
        _ name: String,
        on address: BluetoothAddress,
        _ sighting: Sighting,
        now: Duration,
        into effects: inout [Effect]
    ) {
        guard let device = devices[name], mayUse(address, name) else { return }
        if usableSightings(of: name).isEmpty { devices[name]?.comparedAt = now + Self.comparison }
        devices[name]?.sightings[address] = sighting
        if sighting.isConnected, device.adapter == address { devices[name]?.attempt?.hasSeenLink = true }
        if sighting.isHeard {
            devices[name]?.lastHeard = now
            adapters[address]?.ladder.heard(now: now)
            if device.link.state == .ready { effects.append(.doubt(device: name)) }
        }
        announce(name, now: now, into: &effects)
    }

    mutating func forgotten(
        _ name: String,
        on address: BluetoothAddress,
        now: Duration,
        into effects: inout [Effect]
    ) {
        guard let device = devices[name], mayUse(address, name) else { return }
        devices[name]?.sightings[address] = nil
        guard device.adapter == address || device.adapter == nil && usableSightings(of: name).isEmpty else { return }
        send(.gone(.vanished, detail: "BlueZ has removed the peripheral"), to: name, now: now, into: &effects)
        announce(name, now: now, into: &effects)
    }

    mutating func dropped(
        _ name: String,
        on address: BluetoothAddress,
        now: Duration,
        into effects: inout [Effect]
    ) {
        devices[name]?.sightings[address]?.isConnected = false
        guard devices[name]?.adapter == address else { return }
        send(.lost(.remote, detail: "the link dropped"), to: name, now: now, into: &effects)
    }

    /// Announces the peripheral to its link if a usable adapter knows it.
    mutating func announce(_ name: String, now: Duration, into effects: inout [Effect]) {
        let usable = usableSightings(of: name)
        guard !usable.isEmpty, !isLinkedElsewhere(name) else { return }
        let connected = usable.filter { $0.value.isConnected && $0.value.isResolved }.keys.min()
        if connected == nil, usable.contains(where: \.value.isConnected) {
            return send(.linkFound, to: name, now: now, into: &effects)
        }
        if let connected, devices[name]?.link.isBound == false { devices[name]?.adapter = connected }
        send(.seen(isConnected: connected != nil), to: name, now: now, into: &effects)
    }

    /// True while BlueZ holds a link on an adapter not yet reported as powered: that link will be used.
    private func isLinkedElsewhere(_ name: String) -> Bool {
        devices[name]?.sightings.contains { $0.value.isConnected && adapters[$0.key]?.isPowered != true } ?? false
    }

    /// Returns the device's sightings by powered adapters that it may use.
    func usableSightings(of name: String) -> [BluetoothAddress: Sighting] {
        devices[name]?.sightings.filter { adapters[$0.key]?.isPowered == true } ?? [:]
    }

    func mayUse(_ address: BluetoothAddress, _ name: String) -> Bool {
        devices[name]?.pinned.map { $0 == address } ?? true
    }

    /// The adapter on which the device should connect now; `nil` if all that know it are full.
    func bestAdapter(for name: String, now: Duration) -> BluetoothAddress? {
        guard !isBeingCompared(name, now: now) else { return nil }
        let candidates = usableSightings(of: name).filter { address, _ in
            adapters[address]?.rotation.holdsBack(name, now: now) != true
        }.map { address, sighting in
            AdapterCandidate(
                address: address,
                isConnected: sighting.isConnected,
                hasRoom: hasRoom(address, now: now),
                rssi: sighting.rssi,
                failures: devices[name]?.failures[address] ?? 0,
                load: links(on: address) + queue.attempts(on: address)
            )
        }
        return AdapterCandidate.best(of: candidates)?.address
    }

    /// The time since which the device has waited for a slot of a full adapter.
    private func waitingSince(_ name: String) -> Duration? {
        adapters.values.compactMap { $0.rotation.waitingSince(name) }.min()
    }

    private func isBeingCompared(_ name: String, now: Duration) -> Bool {
        guard let device = devices[name], let end = device.comparedAt, now < end else { return false }
        return adapters.keys.contains { device.sightings[$0] == nil && mayUse($0, name) && hasRoom($0, now: now) }
    }

    // MARK: - Links

    /// Sends an event to a link and carries out the effects that concern the supervisor.
    mutating func send(
        _ event: LinkMachine.Event,
        to name: String,
        now: Duration,
        into effects: inout [Effect]
    ) {
        guard var device = devices[name] else { return }
        let asked = device.link.handle(event, now: now, using: &random)
        devices[name]?.link = device.link
        device = devices[name] ?? device
        for effect in asked {
            switch effect {
            case .queue: queue.add(name, failures: device.link.attempt, now: waitingSince(name) ?? now)
            case .unqueue: queue.remove(name)
            case .arm(let delay, let ticket): devices[name]?.timer = Timer(due: now + delay, ticket: ticket)
            case .changed(var change):
                recordTransition(change, of: name, now: now)
                if let suspicion = suspicion(of: name, after: change) {
                    change.detail = change.detail.map { "\($0); \(suspicion)" } ?? suspicion
                }
                if device.isLeaving { change.detail = change.detail ?? "it is no longer configured or enrolled so" }
                effects.append(.link(device: name, on: device.adapter, .changed(change)))
            default: effects.append(.link(device: name, on: device.adapter, effect))
            }
        }
        if !device.link.isBound { devices[name]?.adapter = nil }
    }

    /// Updates adapter statistics after a state change of a link.
    private mutating func recordTransition(_ change: LinkChange, of name: String, now: Duration) {
        guard let address = devices[name]?.adapter else { return }
        switch (change.from, change.to) {
        case (_, .connecting):
            devices[name]?.attempt = Attempt(since: now)
            devices[name]?.refusedBy = nil
        case (.connecting, .discovering):
            // A bluetoothd that still believes in a dead link may answer only because of that.
            guard devices[name]?.deadLink?.adapter != address else { break }
            let links = links(on: address)
            adapters[address]?.slots.accepted(links: links)
            adapters[address]?.ladder.connected()
        case (.discovering, .backingOff) where change.reason == .authentication:
            devices[name]?.failures[address, default: 0] += 1
        case (.discovering, .backingOff), (.preparing, .backingOff):
            recordSessionFailure(change.reason, of: name, on: address, now: now)
        case (.connecting, .backingOff), (.connecting, .failed):
            recordFailure(change.reason ?? .unknown, of: name, on: address, now: now)
        case (.ready, .ready): break
        case (.ready, _) where change.reason == .silent: recordSilence(of: name, on: address, now: now)
        case (_, .ready):
            devices[name]?.failures[address] = nil
            devices[name]?.deadLink = nil
            adapters[address]?.ladder.connected()
        default: break
        }
    }

    /// The adapter's likely reason for a refusal, for display.
    private func suspicion(of name: String, after change: LinkChange) -> String? {
        guard change.to == .backingOff, let address = devices[name]?.refusedBy else { return nil }
        return adapters[address]?.slots.suspectedLimit.map { "adapter \(address) may be full with \($0) links" }
    }

    /// Counts an unanswered link session against the adapter if the device's last link proved dead there.
    private mutating func recordSessionFailure(
        _ reason: LinkReason?,
        of name: String,
        on address: BluetoothAddress,
        now: Duration
    ) {
        guard devices[name]?.deadLink?.adapter == address, reason == .timedOut || reason == .silent else { return }
        adapters[address]?.ladder.failed(now: now)
    }

    /// Records a silent link; if all of an adapter's links are silent, the adapter is at fault.
    private mutating func recordSilence(of name: String, on address: BluetoothAddress, now: Duration) {
        devices[name]?.deadLink = DeadLink(adapter: address, since: now)
        let isAlone = !devices.values.contains { $0.adapter == address && $0.link.state == .ready }
        let dead = devices.values.compactMap(\.deadLink).filter { $0.adapter == address }
        let recent = dead.count { now - $0.since < policy.recovery.silence }
        if isAlone, recent > 1 { adapters[address]?.ladder.stalled() }
    }

    private mutating func recordFailure(
        _ reason: LinkReason,
        of name: String,
        on address: BluetoothAddress,
        now: Duration
    ) {
        guard let device = devices[name], let attempt = device.attempt, let adapter = adapters[address] else { return }
        devices[name]?.failures[address, default: 0] += 1
        let links = links(on: address)
        let isSudden = reason == .connectFailed && !attempt.hasSeenLink && now - attempt.since < .milliseconds(1500)
        if isSudden {
            adapters[address]?.slots.refused(name, links: links, now: now)
            devices[name]?.refusedBy = address
        }
        let wasInReach = device.lastHeard.map { $0 > attempt.since - .seconds(10) } ?? false
        let isAdaptersFault =
            switch reason {
            case .busy: true
            case .timedOut: wasInReach || adapter.ladder.hearsNothing(at: now)
            case .connectFailed, .unknown: isSudden && links == 0
            default: false
            }
        if isAdaptersFault { adapters[address]?.ladder.failed(now: now) }
    }
}

extension LinkMachine {
    /// True while an attempt, a link or its end is bound to one adapter.
    var isBound: Bool { isUp || ending != nil || state == .disconnecting }

    /// True while only time keeps the link from requesting a turn.
    var isPausing: Bool { state == .backingOff && ending == nil && !isQueued }
}
