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
    func strength(_ device: Device, at gateway: Gateway) -> Double {
        -55 - abs(device.place - gateway.place)
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
        let level = strength(device, at: gateways[number]) + noise * gaussian
        guard level >= Self.sensitivity else { return }
        let event = LeaseMachine.Event.heard(device: device.settings.name, adapter: "hci0", rssi: Int(level.rounded()))
        handle(event, at: number)
    }

    private mutating func updateSides(of number: Int) {
        for index in devices.indices where devices[index].settings.isConnectable {
            let name = devices[index].settings.name
            let isInReach = strength(devices[index], at: gateways[number]) >= Self.sensitivity
            switch gateways[number].sides[name] ?? .withdrawn {
            case .none where !gateways[number].held.contains(name):
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
        let delay = Duration.milliseconds(Int.random(in: 5...60, using: &random))
        let isLost = gateways[number].isCut || centre.isDown
        // Half of what is lost was carried out.
        if isLost, centre.isDown || Bool.random(using: &random) {
            gateways[number].answer = (now + .seconds(5), ticket, nil)
            return
        }
        let rows = centre.exchange(requests, from: gateways[number].name, at: now)
        gateways[number].answer = isLost ? (now + .seconds(5), ticket, nil) : (now + delay, ticket, rows)
    }

    private mutating func deliverAnswer(to number: Int) {
        guard let answer = gateways[number].answer, now >= answer.due else { return }
        gateways[number].answer = nil
        guard let rows = answer.rows else { return handle(.failed(ticket: answer.ticket), at: number) }
        handle(.answered(ticket: answer.ticket, rows), at: number)
    }

    // MARK: - Rules

    /// Each epoch has the owner that the centre gave it, and no two gateways own a device at the same time.
    private func checkOwners() {
        for device in devices {
            let owners = gateways.compactMap { gateway -> (Int64, String)? in
                let time = now + gateway.clockOffset
                return gateway.machine.epoch(of: device.settings.name, at: time).map { ($0, gateway.name) }
            }
            for (epoch, name) in owners {
                #expect(centre.gave(epoch, of: device.settings.address, to: name))
            }
            #expect(Set(owners.map(\.0)).count == owners.count, "two owners of one epoch at \(now): \(owners)")
            if centre.clockOffset == .zero { #expect(owners.count <= 1, "two owners at \(now): \(owners)") }
        }
    }
}

extension LeaseWorld.Device {
    static func strap(_ name: String = "strap", at place: Double, gateways: [String]? = nil) -> Self {
        Self(settings: LeasedDevice(name: name, address: "A-\(name)", gateways: gateways), place: place)
    }

    static func tag(at place: Double) -> Self {
        let settings = LeasedDevice(name: "tag", address: "A-tag", isConnectable: false)
        return Self(settings: settings, place: place, interval: .seconds(1))
    }
}
