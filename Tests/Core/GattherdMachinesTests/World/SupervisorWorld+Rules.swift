import GattherdGATT
import GattherdModel

@testable import GattherdMachines

// The invariants after every event.
extension SupervisorWorld {
    private mutating func require(_ holds: Bool, _ problem: @autoclosure () -> String) {
        guard !holds, problems.count < 20 else { return }
        let problem = "\(now / .seconds(1)) \(problem())"
        problems.append(problem)
        record("PROBLEM " + problem)
    }

    mutating func checkRules(after event: SupervisorMachine.Event) {
        let connecting = Set(names.filter { state($0) == .connecting })
        let turns = machine.table.queue.connecting
        require(turns == connecting, "turns \(turns), connecting \(connecting)")
        for name in names {
            checkProgress(of: name)
            let state = state(name) ?? .waiting
            let isServed = [.discovering, .preparing, .ready].contains(state)
            require((sessions[name] != nil) == isServed, "\(name) is \(state), session: \(!isServed)")
        }
        for address in addresses { checkDiscovery(on: address) }
        checkWakes()
    }

    /// Checks that no device is stuck: a device in the wrong state waits for a turn, a time, or a sighting.
    private mutating func checkProgress(of name: String) {
        guard let device = machine.table.devices[name] else { return }
        let link = device.link
        let isTimed = device.timer.map { $0.ticket == link.ending?.ticket ?? link.ticket } ?? false
        switch link.state {
        case .waiting, .disconnected:
            let isKnown = !machine.table.usableSightings(of: name).isEmpty
            let isWaiting = link.ending != nil || link.presence.doubt == .waiting
            require(!isKnown || link.isQueued || isWaiting && isTimed, "\(name) waits for nothing")
        case .backingOff: require(link.isQueued || isTimed, "\(name) backs off for ever")
        case .connecting, .discovering, .preparing, .disconnecting, .failed:
            require(isTimed, "\(name) is \(link.state) for ever")
        case .ready, .held: break
        }
        if link.ending != nil { require(isTimed, "\(name) is being ended for ever") }
    }

    /// Checks that discovery runs only for a wanted, unknown device with room, and whenever there is one.
    private mutating func checkDiscovery(on address: BluetoothAddress) {
        guard let adapter = machine.table.adapters[address], adapter.isPowered, adapter.powerOnDue == nil else {
            return
        }
        let isMissing = names.contains { name in
            guard let device = machine.table.devices[name], device.pinned.map({ $0 == address }) ?? true else {
                return false
            }
            return device.link.state.wantsSighting && machine.table.usableSightings(of: name).isEmpty
        }
        let isFull = !machine.table.hasRoom(address, at: now)
        if isMissing && !isFull { require(!adapter.discovery.isOff, "no scan for a missing device on \(address)") }
        let isIdle = names.allSatisfy { state($0) == .ready || state($0) == .held }
        if isIdle && !adapter.ladder.wantsToListen(at: now) {
            require(adapter.discovery.since == nil, "an unneeded scan on \(address)")
        }
    }

    /// Checks that a wake-up was requested for every deadline.
    private mutating func checkWakes() {
        let first = machine.table.devices.values.compactMap(\.timer?.due).min()
        guard let first else { return }
        require(machine.wakes.contains { $0 <= first }, "no wake-up is requested at \(first / .seconds(1))")
    }

    // MARK: - Effects

    mutating func checkRules(before effect: LinkMachine.Effect, _ name: String, on address: BluetoothAddress?) {
        switch effect {
        case .connect:
            require(!held.contains(name), "\(name) is held and connects")
            require(address != nil, "\(name) connects nowhere")
            // An attempt on an adapter that is off ends by itself.
            let before = attempts[name].map { toldPowered.contains($0.adapter) } ?? false
            require(!before, "\(name) connects twice")
            if let address { checkTurns(on: address) }
        case .openSession:
            require(!held.contains(name), "\(name) is held and is opened")
            require(address != nil, "\(name) is opened nowhere")
            require(sessions[name] == nil, "\(name) has two sessions")
            readySessions.remove(name)
        case .replaceSession:
            require(address != nil, "\(name) is opened nowhere")
            require(sessions[name] != nil, "\(name) replaces a session that is not open")
            readySessions.remove(name)
        case .closeSession:
            require(sessions[name] != nil, "\(name) closes what is not open")
        case .changed(let change):
            checkBackoff(change, name)
            checkReady(change, name, on: address)
        case .queue, .unqueue, .arm:
            require(false, "\(effect) must be handled by the supervisor")
        case .disconnect: break
        }
    }

    /// Checks that one attempt runs at a time, except those that wait for an absent peripheral.
    private mutating func checkTurns(on address: BluetoothAddress) {
        let isBusy = attempts.values.contains { $0.adapter == address && now - $0.since < .milliseconds(1500) }
        require(!isBusy, "two attempts at a time on \(address)")
    }

    mutating func checkRules(before effect: DiscoveryMachine.Effect, on address: BluetoothAddress) {
        let isScanning = adapters[address]?.isScanning == true
        switch effect {
        case .start: require(!isScanning, "a second scan on \(address)")
        case .stop: require(isScanning || !isUsable(address), "a stop without a scan on \(address)")
        }
    }

    /// Checks that only adapters that are present are powered on.
    mutating func checkPowerOn(_ address: BluetoothAddress) {
        require(adapters[address]?.isPresent == true, "absent adapter \(address) is powered on")
    }

    private mutating func checkReady(_ change: LinkChange, _ name: String, on address: BluetoothAddress?) {
        guard !change.isWithinState else { return }
        if change.from == .ready { readySince[name] = nil }
        guard change.to == .ready else { return }
        require(readySessions.insert(name).inserted, "\(name) is ready twice in one session")
        require(address.map { toldPowered.contains($0) } ?? false, "\(name) is ready on an adapter that is gone")
        readySince[name] = now
    }

    /// Checks that pauses are within bounds, and that failures add up until a user or a stable link resets them.
    private mutating func checkBackoff(_ change: LinkChange, _ name: String) {
        if [.held, .failed, .disconnected].contains(change.from) { forgiven.insert(name) }
        if change.to == .disconnected { forgiven.insert(name) }
        guard change.reason != .rotated else { return }
        if let since = readySince[name], now - since >= machine.policy.link.stableAfter { forgiven.insert(name) }
        if change.to == .waiting, change.reason == nil { forgiven.insert(name) }
        guard let pause = change.retryAfter else { return }
        let policy = machine.policy.link
        let before = changes[name]?.last { $0.retryAfter != nil }?.attempt ?? 0
        let isForgiven = forgiven.remove(name) != nil
        require(change.attempt == before + 1 || isForgiven && change.attempt == 1, "\(name): attempt \(change.attempt)")
        if change.to == .failed {
            require(pause == policy.slowRetry, "\(name) fails for \(pause)")
        } else {
            let isFirst = change.from == .connecting && change.attempt == 1 && change.reason == .connectFailed
            let least = isFirst ? min(policy.firstRetry, policy.backoff.minimum) : policy.backoff.minimum
            let bounds = least...policy.backoff.ceiling(after: change.attempt - 1)
            require(bounds.contains(pause), "\(name) pauses for \(pause)")
        }
    }
}
