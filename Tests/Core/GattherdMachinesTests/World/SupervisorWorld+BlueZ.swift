import GattherdGATT
import GattherdModel

@testable import GattherdMachines

// The behaviour and the response times of BlueZ and of the effects' execution.
extension SupervisorWorld {
    static let connectTimeout = Duration.seconds(20)
    static let objectLifetime = Duration.seconds(30)

    /// Reports all that bluetoothd knows, adapters last.
    mutating func reportEverything() {
        isDaemonUp = true
        for name in names {
            for address in addresses where peripherals[name]?.objects[address] != nil { reportSighting(name, address) }
        }
        for address in addresses where adapters[address]?.isPresent == true { reportAdapter(address) }
    }

    /// Reports everything, with all peripherals known; see ``reportEverything()``.
    mutating func start() {
        for name in names {
            for address in addresses { peripherals[name]?.objects[address] = now }
        }
        reportEverything()
    }

    mutating func reportAdapter(_ address: BluetoothAddress) {
        guard isDaemonUp, let adapter = adapters[address], adapter.isPresent else { return }
        if adapter.isPowered { toldPowered.insert(address) } else { toldPowered.remove(address) }
        send(.adapter(address, isPowered: adapter.isPowered, isDiscovering: adapter.isScanning))
        send(.otherLinks(address, adapter.otherLinks))
    }

    mutating func reportSighting(_ name: String, _ address: BluetoothAddress, isHeard: Bool = false) {
        guard isDaemonUp, let peripheral = peripherals[name], peripheral.objects[address] != nil else { return }
        let rssi = isHeard ? peripheral.rssi[address] ?? -60 : nil
        let isGhost = peripheral.ghost == address
        let isConnected = peripheral.link == address || isGhost
        let sighting = SupervisorMachine.Sighting(
            isConnected: isConnected,
            isResolved: !isGhost,
            rssi: rssi,
            isHeard: isHeard
        )
        send(.sighted(device: name, on: address, sighting))
    }

    func isUsable(_ address: BluetoothAddress) -> Bool {
        guard isDaemonUp, let adapter = adapters[address] else { return false }
        return adapter.isPresent && adapter.isPowered
    }

    func links(on address: BluetoothAddress) -> Int {
        peripherals.values.count { $0.link == address } + (adapters[address]?.otherLinks ?? 0)
    }

    // MARK: - Discovery

    mutating func perform(_ effect: DiscoveryMachine.Effect, on address: BluetoothAddress) {
        checkRules(before: effect, on: address)
        switch effect {
        case .start(let ticket): startDiscovery(on: address, ticket: ticket)
        case .stop(let ticket):
            adapters[address]?.isScanning = false
            after(.milliseconds(3)) { $0.send(.discovery(address, ticket: ticket, .done)) }
        }
    }

    private mutating func startDiscovery(on address: BluetoothAddress, ticket: Int) {
        let works = isUsable(address) && adapters[address]?.refusesScans == false
        if works, adapters[address]?.isScanning == false {
            cure(address, by: .restartDiscovery)
            let session = newNumber()
            adapters[address]?.isScanning = true
            adapters[address]?.session = session
            after(.milliseconds(100)) { $0.hear(on: address, session: session) }
        }
        if works { after(.milliseconds(2)) { $0.reportAdapter(address) } }
        after(.milliseconds(3)) { $0.send(.discovery(address, ticket: ticket, works ? .done : .refused)) }
    }

    /// Hears all peripherals, every few seconds.
    private mutating func hear(on address: BluetoothAddress, session: Int) {
        guard isUsable(address), adapters[address]?.isScanning == true, adapters[address]?.session == session else {
            return
        }
        for name in names where isHeard(name, on: address) {
            peripherals[name]?.objects[address] = now
            reportSighting(name, address, isHeard: true)
        }
        after(.seconds(8)) { $0.hear(on: address, session: session) }
    }

    private func isHeard(_ name: String, on address: BluetoothAddress) -> Bool {
        guard let peripheral = peripherals[name], adapters[address]?.hearsNothing == false else { return false }
        return peripheral.isInRange && peripheral.link == nil && peripheral.ghost == nil
            && peripheral.rssi[address] != -128
    }

    /// Removes peripherals that were not heard for long, repeatedly.
    mutating func expireObjects() {
        after(.seconds(5)) { $0.expireObjects() }
        guard isDaemonUp else { return }
        for name in names {
            guard let peripheral = peripherals[name], !peripheral.isTrusted else { continue }
            for address in addresses where peripheral.link != address && attempts[name] == nil {
                guard let heard = peripheral.objects[address], now - heard >= Self.objectLifetime else { continue }
                remove(name, from: address)
            }
        }
    }

    mutating func remove(_ name: String, from address: BluetoothAddress) {
        guard peripherals[name]?.objects.removeValue(forKey: address) != nil else { return }
        if peripherals[name]?.link == address { peripherals[name]?.link = nil }
        if attempts[name]?.adapter == address { breakAttempt(name, LinkFault(.connectFailed, "removed")) }
        if isDaemonUp { send(.forgotten(device: name, on: address)) }
    }

    // MARK: - Connecting

    mutating func connect(_ name: String, on address: BluetoothAddress, ticket: Int) {
        let id = newNumber()
        attempts[name] = Attempt(id: id, adapter: address, ticket: ticket, since: now)
        guard let peripheral = peripherals[name], let adapter = adapters[address] else { return }
        guard peripheral.fault != .connectUnanswered else { return }
        if let fault = refusal(of: name, on: address) { return end(id, name, fault, after: .milliseconds(3)) }
        if peripheral.ghost == address {
            if peripheral.outlivesCrash { useGhost(name, address) }
            return succeed(id, name, after: .milliseconds(2))
        }
        if peripheral.link == address { return succeed(id, name, after: .milliseconds(2)) }
        end(id, name, LinkFault(.timedOut, "no link within 20 s"), after: Self.connectTimeout)
        let hangs = adapter.ailment == .hangs || peripheral.fault == .neverConnects || !peripheral.isInRange
        guard !hangs, peripheral.link == nil else { return }
        let due = max(now, adapter.freeAt) + latency
        adapters[address]?.freeAt = due
        after(due - now) { $0.linkUp(id, name) }
    }

    private mutating func useGhost(_ name: String, _ address: BluetoothAddress) {
        peripherals[name]?.ghost = nil
        peripherals[name]?.outlivesCrash = false
        peripherals[name]?.link = address
    }

    private func refusal(of name: String, on address: BluetoothAddress) -> LinkFault? {
        guard isDaemonUp else { return LinkFault(.daemonLost, "not on the bus") }
        guard isUsable(address) else { return LinkFault(.adapterPoweredOff, "off") }
        guard peripherals[name]?.objects[address] != nil else { return LinkFault(.vanished, "unknown object") }
        switch adapters[address]?.ailment {
        case .busy: return LinkFault(.busy, "Operation already in progress")
        case .refuses: return LinkFault(.connectFailed, "Input/output error")
        case .hangs, nil: break
        }
        let isFull = adapters[address]?.slots.map { links(on: address) >= $0 } ?? false
        return isFull ? LinkFault(.connectFailed, "le-connection-abort-by-local") : nil
    }

    private mutating func linkUp(_ id: Int, _ name: String) {
        guard let attempt = attempts[name], attempt.id == id, isUsable(attempt.adapter) else { return }
        guard let peripheral = peripherals[name], peripheral.isInRange, peripheral.link == nil else { return }
        guard peripheral.fault != .neverConnects, peripheral.fault != .connectUnanswered else { return }
        if let fault = refusal(of: name, on: attempt.adapter) { return end(id, name, fault, after: .zero) }
        guard let adapter = adapters[attempt.adapter], adapter.ailment == nil else { return }
        peripherals[name]?.link = attempt.adapter
        peripherals[name]?.objects[attempt.adapter] = now
        reportSighting(name, attempt.adapter)
        guard peripheral.fault != .abortsConnect, Double.random(in: 0..<1, using: &dice) >= failureRate else {
            drop(name)
            return end(id, name, LinkFault(.connectFailed, "le-connection-abort-by-local"), after: .zero)
        }
        succeed(id, name, after: .milliseconds(2))
    }

    private mutating func succeed(_ id: Int, _ name: String, after delay: Duration) {
        after(delay) { world in
            guard let attempt = world.attempts[name], attempt.id == id else { return }
            world.attempts[name] = nil
            world.send(.link(device: name, .connected(ticket: attempt.ticket)))
        }
    }

    private mutating func end(_ id: Int, _ name: String, _ fault: LinkFault, after delay: Duration) {
        after(delay) { world in
            guard let attempt = world.attempts[name], attempt.id == id else { return }
            guard world.peripherals[name]?.fault != .connectUnanswered else { return }
            world.attempts[name] = nil
            world.send(.link(device: name, .failed(fault, ticket: attempt.ticket)))
        }
    }

    /// Drops the link without a request of the machine.
    mutating func drop(_ name: String) {
        guard let address = peripherals[name]?.link else { return }
        peripherals[name]?.link = nil
        peripherals[name]?.objects[address] = now
        guard isDaemonUp else { return }
        send(.dropped(device: name, on: address))
        reportSighting(name, address)
    }

    mutating func disconnect(_ name: String, ticket: Int) {
        let attempt = attempts.removeValue(forKey: name)
        guard peripherals[name]?.fault != .disconnectUnanswered else { return }
        if let attempt {
            let fault = LinkFault(.local, "br-connection-canceled")
            answer(name, after: .milliseconds(1), .failed(fault, ticket: attempt.ticket))
        }
        let isConnected = isDaemonUp && peripherals[name]?.link != nil
        let number = peripherals[name]?.linkNumber
        after(isConnected ? .seconds(2) : .milliseconds(5)) { world in
            if isConnected, world.peripherals[name]?.linkNumber == number { world.drop(name) }
            world.send(.link(device: name, .disconnected(ticket: ticket)))
        }
    }

    // MARK: - Sessions

    mutating func openSession(_ name: String, ticket: Int) {
        sessions[name] = ticket
        let fault = peripherals[name]?.fault
        guard fault != .sessionUnanswered else { return }
        if fault == .neverResolves {
            return fail(name, ticket, LinkFault(.timedOut, "ServicesResolved never came"), after: .seconds(30))
        }
        if fault == .lacksOurServices {
            let fault = LinkFault(.profileMismatch, "no profile fits", isPermanent: true)
            return fail(name, ticket, fault, after: .milliseconds(50))
        }
        if fault == .hasStaleObjects {
            return fail(name, ticket, LinkFault(.gattError, "UnknownObject"), after: .milliseconds(50))
        }
        advance(name, ticket, after: .milliseconds(50), .discovered(ticket: ticket))
        let fails = fault == .refusesSubscription || Double.random(in: 0..<1, using: &dice) < failureRate / 2
        if fails { return fail(name, ticket, LinkFault(.gattError, "StartNotify refused"), after: .milliseconds(80)) }
        advance(name, ticket, after: .milliseconds(90), .prepared(ticket: ticket))
        guard fault == .endsSubscriptions else { return }
        advance(name, ticket, after: .milliseconds(590), .sessionStale)
    }

    private mutating func fail(_ name: String, _ ticket: Int, _ fault: LinkFault, after delay: Duration) {
        advance(name, ticket, after: delay, .failed(fault, ticket: ticket))
    }

    /// Advances a session; a closed one is ignored, and one without a link fails.
    private mutating func advance(
        _ name: String,
        _ ticket: Int,
        after delay: Duration,
        _ event: LinkMachine.Event
    ) {
        after(delay) { world in
            guard world.sessions[name] == ticket else { return }
            let isUp = world.peripherals[name]?.link != nil
            let fault = LinkFault(.remote, "Not connected")
            world.send(.link(device: name, isUp ? event : .failed(fault, ticket: ticket)))
        }
    }

    // MARK: - Remedies

    mutating func reconnectToBus() {
        guard isDaemonUp else { return }
        toldPowered = []
        for address in addresses {
            adapters[address]?.isScanning = false
            cure(address, by: .newBusConnection)
        }
        breakAttempts(on: nil, LinkFault(.daemonLost, "the bus is left"))
        send(.unavailable(detail: "renewed"))
        after(.milliseconds(250)) { world in if world.isDaemonUp { world.reportEverything() } }
    }

    mutating func powerCycle(_ address: BluetoothAddress) {
        if !cycling.insert(address).inserted { problems.append("\(address) is cycled twice") }
        after(.milliseconds(100)) { world in
            guard world.isUsable(address) else { return world.finishCycle(address) }
            world.setPowered(address, false)
            world.after(.milliseconds(300)) { $0.finishCycle(address) }
        }
    }

    mutating func finishCycle(_ address: BluetoothAddress) {
        guard isDaemonUp, adapters[address]?.isPresent == true else {
            return send(.powered(address, isOn: false))
        }
        cycling.remove(address)
        cure(address, by: .powerCycle)
        setPowered(address, true)
        send(.powered(address, isOn: true))
    }

    mutating func cure(_ address: BluetoothAddress, by step: RecoveryLadder.Step) {
        guard adapters[address]?.cure == step else { return }
        adapters[address]?.hearsNothing = false
        adapters[address]?.ailment = nil
        adapters[address]?.cure = nil
    }

    mutating func setPowered(_ address: BluetoothAddress, _ isPowered: Bool) {
        guard let adapter = adapters[address], adapter.isPresent, adapter.isPowered != isPowered else { return }
        adapters[address]?.isPowered = isPowered
        if !isPowered {
            adapters[address]?.isScanning = false
            adapters[address]?.otherLinks = 0
        }
        let linked = names.filter { peripherals[$0]?.link == address }
        let dropsFirst = Bool.random(using: &dice)
        if !isPowered, dropsFirst { for name in linked { drop(name) } }
        reportAdapter(address)
        guard !isPowered else { return }
        if !dropsFirst { for name in linked { drop(name) } }
        breakAttempts(on: address, LinkFault(.adapterPoweredOff, "off"))
    }

    /// Answers pending calls with an error.
    mutating func breakAttempts(on address: BluetoothAddress?, _ fault: LinkFault) {
        for name in names {
            guard let attempt = attempts[name], address == nil || attempt.adapter == address else { continue }
            breakAttempt(name, fault)
        }
    }

    private mutating func breakAttempt(_ name: String, _ fault: LinkFault) {
        guard let attempt = attempts.removeValue(forKey: name) else { return }
        guard peripherals[name]?.fault != .connectUnanswered else { return }
        answer(name, after: .milliseconds(1), .failed(fault, ticket: attempt.ticket))
    }
}
