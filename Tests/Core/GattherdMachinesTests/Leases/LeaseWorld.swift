import Foundation
import GattherdMachines
import Testing

/// Gateways with lease machines, their centre, and devices that move between them, in virtual time.
///
/// Each device accepts one link and does not advertise meanwhile.
struct LeaseWorld {
    struct Device {
        let settings: LeasedDevice
        /// The place in metres, on a line.
        var place: Double
        var interval = Duration.milliseconds(500)
        /// The attenuation in dB by bodies in between, by the number of the gateway.
        var shade: [Int: Double] = [:]
        var nextAdvertisement = Duration.zero
        /// The number of the gateway that has the link.
        var link: Int?
    }

    /// A gateway's side of a link.
    enum Side: Hashable {
        case withdrawn
        case none
        case attempting(until: Duration)
        case linked
        case ending(until: Duration)
    }

    struct Gateway {
        let name: String
        let place: Double
        var machine: LeaseMachine
        /// The gateway's clock minus the time of the world.
        var clockOffset: Duration
        var sides: [String: Side] = [:]
        var held: Set<String> = []
        var isFull = false
        var isCut = false
        var suspendedUntil = Duration.zero
        /// An answer on its way: its time, and the rows; `nil` rows for a failure.
        var answer: (due: Duration, ticket: Int, rows: [LeaseRow]?)?
        var nextTick: Duration
    }

    static let step = Duration.milliseconds(50)
    static let sensitivity = -90.0

    var now = Duration.zero
    var centre = LeaseCentre()
    var gateways: [Gateway]
    var devices: [Device]
    var tick = Duration.milliseconds(250)
    /// The time that a connection attempt takes, in ms.
    var connectTime = 100...600
    /// The standard deviation of the strength of advertisements, in dB.
    var noise = 3.0
    /// The path loss exponent, with -60 dBm at 1 m; `nil` for 1 dB for each metre.
    var exponent: Double?
    /// The time that an answer of the centre takes, in ms.
    var answerTime = 5...60
    /// The share of requests that are carried out, but whose answers are lost.
    var answerLoss = 0.0
    /// The time until which owners may differ from the centre, as claims were lost there.
    private var lossEnd = Duration.zero
    var random: SplitMix64
    /// The times of decisions to release, and of the links that followed, by device.
    private(set) var handovers: [(device: String, decided: Duration, linked: Duration)] = []
    private(set) var decisions: [String: Duration] = [:]
    private(set) var claims: [String: [String]] = [:]
    private(set) var causes: [String: [LeaseCause]] = [:]
    private(set) var exchanges = 0

    init(_ places: [(String, Double)], _ devices: [Device], seed: UInt64) {
        random = SplitMix64(seed: seed)
        self.devices = devices
        gateways = []
        for (number, (name, place)) in places.enumerated() {
            let offset = Duration.seconds(number * 1_000_000)
            var machine = LeaseMachine(gateway: name, at: offset)
            _ = machine.handle(.configured(devices.map(\.settings)), at: offset)
            let phase = Duration.milliseconds(Int.random(in: 0..<250, using: &random))
            gateways.append(
                Gateway(name: name, place: place, machine: machine, clockOffset: offset, nextTick: phase)
            )
        }
    }

    /// Lets a gateway begin anew, as after a crash.
    mutating func restart(_ number: Int) {
        let time = now + gateways[number].clockOffset
        for index in devices.indices where devices[index].link == number { devices[index].link = nil }
        let recalled = gateways[number].machine.lastOwned
        var machine = LeaseMachine(gateway: gateways[number].name, recalled: recalled, at: time)
        _ = machine.handle(.configured(devices.map(\.settings)), at: time)
        (gateways[number].machine, gateways[number].sides, gateways[number].answer) = (machine, [:], nil)
    }

    /// Ends a device's link, as a loss of radio contact does.
    mutating func dropLink(of index: Int) {
        if let number = devices[index].link { gateways[number].sides[devices[index].settings.name] = Side.none }
        devices[index].link = nil
    }

    /// Gives a gateway the configuration with all devices, or with all but one.
    mutating func configure(_ number: Int, without missing: Int? = nil) {
        let settings = devices.indices.filter { $0 != missing }.map { devices[$0].settings }
        let removed = missing.map { devices[$0].settings.name }
        if let removed, let missing {
            if devices[missing].link == number { devices[missing].link = nil }
            gateways[number].sides[removed] = nil
        }
        handle(.configured(settings), at: number)
    }

    /// Lets a gateway do nothing for a time, as under `SIGSTOP`; its links stay.
    mutating func suspend(_ number: Int, for duration: Duration) {
        gateways[number].suspendedUntil = now + duration
        gateways[number].nextTick = max(gateways[number].nextTick, now + duration)
    }

    /// Fails the centre over to its standby, with the leases that the standby has.
    mutating func failOver() {
        centre.failOver()
        lossEnd = now + LeaseCentre.term
    }

    mutating func run(_ duration: Duration, step: Duration = step, _ change: (inout LeaseWorld) -> Void = { _ in }) {
        let end = now + duration
        while now < end {
            now += step
            change(&self)
            advertise()
            for number in gateways.indices {
                updateSides(of: number)
                deliverAnswer(to: number)
                if now >= gateways[number].nextTick { runTick(of: number) }
            }
            checkOwners()
        }
    }

    // MARK: - Radio

    /// The strength without noise, in dBm.
    func strength(_ device: Device, at number: Int) -> Double {
        let distance = abs(device.place - gateways[number].place)
        let level = exponent.map { -60 - 10 * $0 * log10(max(distance, 1)) } ?? (-55 - distance)
        return level - (device.shade[number] ?? 0)
    }

    private mutating func advertise() {
        for index in devices.indices where now >= devices[index].nextAdvertisement {
            devices[index].nextAdvertisement = now + devices[index].interval
            guard devices[index].link == nil else { continue }
            for number in gateways.indices { hear(devices[index], at: number) }
        }
    }

    private mutating func hear(_ device: Device, at number: Int) {
        let gaussian = (0..<4).reduce(0.0) { sum, _ in sum + Double.random(in: -1...1, using: &random) } * 0.866
        let level = strength(device, at: number) + noise * gaussian
        guard level >= Self.sensitivity, now >= gateways[number].suspendedUntil else { return }
        let event = LeaseMachine.Event.heard(device: device.settings.name, adapter: "hci0", rssi: Int(level.rounded()))
        handle(event, at: number)
    }

    private mutating func updateSides(of number: Int) {
        for index in devices.indices where devices[index].settings.isConnectable {
            let name = devices[index].settings.name
            let isInReach = strength(devices[index], at: number) >= Self.sensitivity
            switch gateways[number].sides[name] ?? .withdrawn {
            case .none where !gateways[number].held.contains(name) && !isConnecting(number):
                let time = Duration.milliseconds(Int.random(in: connectTime, using: &random))
                gateways[number].sides[name] = .attempting(until: now + time)
            case .attempting(let end) where now >= end && isInReach && devices[index].link == nil:
                (devices[index].link, gateways[number].sides[name]) = (number, Side.linked)
                recordLink(name)
            case .linked where !isInReach:
                (devices[index].link, gateways[number].sides[name]) = (nil, Side.none)
            case .ending(let end) where now >= end:
                if devices[index].link == number { devices[index].link = nil }
                gateways[number].sides[name] = .withdrawn
            default: break
            }
        }
    }

    /// True if a connection attempt occupies the gateway's adapter.
    private func isConnecting(_ number: Int) -> Bool {
        gateways[number].sides.values.contains { if case .attempting = $0 { true } else { false } }
    }

    private mutating func recordLink(_ device: String) {
        guard let decided = decisions.removeValue(forKey: device) else { return }
        handovers.append((device, decided, now))
    }

    // MARK: - Machines

    private mutating func runTick(of number: Int) {
        gateways[number].nextTick += tick
        for device in devices where device.settings.isConnectable {
            handle(.link(device: device.settings.name, phase(of: device.settings.name, at: number)), at: number)
        }
        handle(.slots(isFull: gateways[number].isFull), at: number)
        handle(.tick, at: number)
    }

    private func phase(of device: String, at number: Int) -> LeaseMachine.LinkPhase {
        if gateways[number].held.contains(device) { return .held }
        return switch gateways[number].sides[device] ?? .withdrawn {
        case .withdrawn: .withdrawn
        case .none: .none
        case .attempting: .attempting
        case .linked: .linked
        case .ending: .ending
        }
    }

    private mutating func handle(_ event: LeaseMachine.Event, at number: Int) {
        let time = now + gateways[number].clockOffset
        for effect in gateways[number].machine.handle(event, at: time) { perform(effect, at: number) }
    }

    private mutating func perform(_ effect: LeaseMachine.Effect, at number: Int) {
        switch effect {
        case .exchange(let requests, let ticket): exchange(requests, ticket, at: number)
        case .admit(let device):
            if gateways[number].sides[device] ?? .withdrawn == .withdrawn { gateways[number].sides[device] = Side.none }
        case .withdraw(let device, _): withdraw(device, at: number)
        case .handedOver(let device, let cause): causes[device, default: []].append(cause)
        case .changed(let device, let status):
            if status.owner == gateways[number].name { claims[device, default: []].append(gateways[number].name) }
        }
    }

    private mutating func withdraw(_ device: String, at number: Int) {
        switch gateways[number].sides[device] ?? .withdrawn {
        case .withdrawn, .ending: return
        case .none: gateways[number].sides[device] = .withdrawn
        case .attempting, .linked: gateways[number].sides[device] = .ending(until: now + .milliseconds(100))
        }
        decisions[device] = now
    }

    /// Carries a request to the centre, or loses it or its answer.
    private mutating func exchange(_ requests: [LeaseRequest], _ ticket: Int, at number: Int) {
        exchanges += 1
        let delay = Duration.milliseconds(Int.random(in: answerTime, using: &random))
        let isLost =
            gateways[number].isCut || centre.isDown
            || answerLoss > 0 && Double.random(in: 0..<1, using: &random) < answerLoss
        // Half of what is lost was carried out.
        if isLost, centre.isDown || Bool.random(using: &random) {
            gateways[number].answer = (now + .seconds(5), ticket, nil)
            return
        }
        let rows = centre.exchange(requests, from: gateways[number].name, at: now)
        gateways[number].answer = isLost ? (now + .seconds(5), ticket, nil) : (now + delay, ticket, rows)
    }

    private mutating func deliverAnswer(to number: Int) {
        guard let answer = gateways[number].answer, now >= max(answer.due, gateways[number].suspendedUntil)
        else { return }
        gateways[number].answer = nil
        guard let rows = answer.rows else { return handle(.failed(ticket: answer.ticket), at: number) }
        handle(.answered(ticket: answer.ticket, rows), at: number)
    }

    // MARK: - Rules

    /// An owner has the epoch that the centre gave last, so that no control is executed under an old one.
    ///
    /// The centre may have lost it in a fail-over. Then the epoch has no other owner.
    private func checkOwners() {
        for device in devices {
            let address = device.settings.address
            for gateway in gateways {
                let time = now + gateway.clockOffset
                guard let epoch = gateway.machine.epoch(of: device.settings.name, at: time) else { continue }
                if centre.owner(of: address)?.epoch == epoch, centre.owner(of: address)?.name == gateway.name {
                    continue
                }
                let isKnown = centre.gave(epoch, of: address, to: gateway.name)
                if isKnown, centre.clockOffset != .zero || now < lossEnd { continue }
                Issue.record("\(gateway.name) owns \(device.settings.name) at \(now) under the old epoch \(epoch)")
            }
        }
    }
}

extension LeaseWorld.Device {
    static func strap(
        _ name: String = "strap",
        at place: Double,
        gateways: [String]? = nil,
        every interval: Duration = .milliseconds(500)
    ) -> Self {
        let settings = LeasedDevice(name: name, address: "A-\(name)", gateways: gateways)
        return Self(settings: settings, place: place, interval: interval)
    }

    static func tag(_ name: String = "tag", at place: Double) -> Self {
        let settings = LeasedDevice(name: name, address: "A-\(name)", isConnectable: false)
        return Self(settings: settings, place: place, interval: .seconds(1))
    }
}
