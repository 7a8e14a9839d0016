import Glibc

/// The strength of each peripheral's signal at each adapter.
///
/// A function of the time: equal seeds give equal fields. Strength falls with the logarithm of the distance. Bodies
/// that come and go weaken it, and single advertisements vary by noise. A scenario without gateways has no positions:
/// all adapters receive all peripherals.
struct RadioField: Sendable {
    /// The gateway of an adapter.
    private struct Listener: Sendable {
        let gateway: Int
        let position: ScenarioPosition
    }

    private struct Sender: Sendable {
        /// The strength at a distance of 1 m, in dBm.
        let strength: Double
        let path: WalkingPath
    }

    private let air: AirSpec
    /// The places of the adapters, by their numbers; empty without positions.
    private let listeners: [Listener]
    private let senders: [Sender]

    init(_ scenario: Scenario) {
        air = scenario.air
        listeners = scenario.gateways.enumerated().flatMap { number, gateway in
            gateway.adapters.map { _ in Listener(gateway: number, position: gateway.position) }
        }
        senders = scenario.peripherals.map {
            Sender(strength: Double($0.advertising.rssi), path: WalkingPath($0.path))
        }
    }

    var hasPositions: Bool { !listeners.isEmpty }

    /// True if the peripheral may enter or leave the range of an adapter.
    func isChanging(_ peripheral: Int) -> Bool {
        hasPositions && (senders[peripheral].path.isMoving || air.bodies != nil)
    }

    /// True if links between both can exist.
    ///
    /// Links repeat their packets, so that noise does not matter.
    func reaches(_ key: DeviceKey, at time: Duration) -> Bool {
        !hasPositions || mean(key, at: time) >= Double(air.sensitivity)
    }

    /// True if the adapter hears an advertisement at this time.
    func hears(_ key: DeviceKey, at time: Duration) -> Bool {
        !hasPositions || level(key, at: time) >= Double(air.sensitivity)
    }

    /// The strength of an advertisement in dBm; `nil` without positions.
    func strength(_ key: DeviceKey, at time: Duration) -> Int16? {
        hasPositions ? Int16(level(key, at: time).rounded().clamped(to: -127...20)) : nil
    }

    /// The strength of an advertisement with its noise, in dBm.
    private func level(_ key: DeviceKey, at time: Duration) -> Double {
        mean(key, at: time) + air.noise * hash(key.peripheral, key.adapter, microseconds(time)).gaussian
    }

    /// The strength without noise, in dBm.
    private func mean(_ key: DeviceKey, at time: Duration) -> Double {
        let (listener, sender) = (listeners[key.adapter], senders[key.peripheral])
        let distance = sender.path.position(at: time).distance(to: listener.position)
        return sender.strength - air.loss(distance) - attenuation(key.peripheral, listener.gateway, at: time)
    }

    /// The attenuation by a body between the two, in dB.
    private func attenuation(_ peripheral: Int, _ gateway: Int, at time: Duration) -> Double {
        guard let bodies = air.bodies else { return 0 }
        // The complement keeps bodies apart from the noise of the same numbers.
        let period = ~UInt64(bitPattern: Int64(time / bodies.stay))
        return hash(peripheral, gateway, period).uniform < bodies.share ? bodies.attenuation : 0
    }

    private func hash(_ peripheral: Int, _ listener: Int, _ time: UInt64) -> RadioHash {
        RadioHash(air.seed, [UInt64(peripheral), UInt64(listener), time])
    }

    private func microseconds(_ time: Duration) -> UInt64 {
        UInt64(bitPattern: Int64(time / .microseconds(1)))
    }
}

extension AirSpec {
    /// The distance in metres below which the signal gets no stronger.
    private static let minimumDistance = 0.1

    /// The path loss in dB, compared with a distance of 1 m.
    fileprivate func loss(_ distance: Double) -> Double {
        10 * exponent * log10(max(distance, Self.minimumDistance))
    }
}

extension Scenario {
    /// The peripherals whose paths enter the range of a gateway, without the effect of bodies.
    package func peripherals(inReachOf gateway: GatewaySpec) -> [PeripheralSpec] {
        peripherals.filter { peripheral in
            let names = gateway.adapters.map { SimulatedAdapter($0, of: gateway.name).names }
            let isAdmitted = peripheral.adapters.isEmpty || names.contains { !$0.isDisjoint(with: peripheral.adapters) }
            let distance = WalkingPath(peripheral.path).minimumDistance(to: gateway.position)
            let strength = Double(peripheral.advertising.rssi) - air.loss(distance)
            return isAdmitted && strength >= Double(air.sensitivity)
        }
    }
}

/// The walk of a peripheral along its waypoints, at constant speed from each to the next.
///
/// A path that ends at its start is repeated. Otherwise the peripheral stays at the end.
struct WalkingPath: Hashable, Sendable {
    private let waypoints: [Waypoint]

    init(_ waypoints: [Waypoint]) {
        self.waypoints = waypoints
    }

    var isMoving: Bool { waypoints.count > 1 }

    func position(at time: Duration) -> ScenarioPosition {
        guard let first = waypoints.first, let last = waypoints.last else { return ScenarioPosition(x: 0, y: 0) }
        let time = timeOfRound(time, from: first, through: last)
        guard let next = waypoints.firstIndex(where: { $0.time > time }) else { return last.position }
        guard next > 0 else { return first.position }
        let (start, end) = (waypoints[next - 1], waypoints[next])
        let share = (time - start.time) / (end.time - start.time)
        return start.position.moved(towards: end.position, by: share)
    }

    /// The distance to the closest point of the path.
    func minimumDistance(to point: ScenarioPosition) -> Double {
        let starts = waypoints.map(\.position)
        let distances = zip(starts, starts.dropFirst()).map { point.distance(toWayFrom: $0, to: $1) }
        return distances.min() ?? starts.first?.distance(to: point) ?? .infinity
    }

    private func timeOfRound(_ time: Duration, from first: Waypoint, through last: Waypoint) -> Duration {
        let period = last.time - first.time
        guard isMoving, first.position == last.position, time > last.time, period > .zero else { return time }
        let elapsed = time - first.time
        return first.time + elapsed - period * Int((elapsed / period).rounded(.down))
    }
}

/// A random number that depends only on a seed and on some numbers.
private struct RadioHash {
    private let bits: UInt64

    init(_ seed: UInt64, _ numbers: [UInt64]) {
        bits = numbers.reduce(Self.mix(seed)) { Self.mix($0 ^ $1) }
    }

    /// The output function of SplitMix64.
    private static func mix(_ number: UInt64) -> UInt64 {
        var mixed = number &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A random number, uniformly distributed from 0 to 1.
    var uniform: Double { Double(bits >> 11) / Double(UInt64(1) << 53) }

    /// About normally distributed, with the standard deviation 1 and at most 3.5: a sum of four uniform numbers.
    var gaussian: Double {
        let sum = (0..<4).reduce(0.0) { $0 + Double((bits >> (16 * UInt64($1))) & 0xFFFF) / 32_768 - 1 }
        return sum * 0.75.squareRoot()
    }
}

extension Double {
    fileprivate func clamped(to range: ClosedRange<Double>) -> Double {
        Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}
