import GattherdBluetooth
import GattherdGATT
import GattherdModel
import GattherdSync

/// Passes the advertisements of sensors to the intake and tracks which sensors are away.
final class SensorWatch: AdvertisementSink {
    /// A change of a sensor's presence.
    enum PresenceChange: Hashable, Sendable {
        /// The sensor returned with this advertisement.
        case present(HeardAdvertisement)
        /// The sensor is away: no advertisement was received for this time.
        case away(silence: Duration)
    }

    /// A sensor and what was heard of it.
    private final class Watched: Sendable {
        struct State: Sendable {
            var presence = SensorPresence()
            var sighting: SupervisorStatus.Sighting?
        }

        let sensor: Sensor
        let state = Locked(State())

        init(_ sensor: Sensor) {
            self.sensor = sensor
        }

        /// Records an advertisement; returns the payloads to decode, and whether the sensor was away.
        func record(
            _ advertisement: HeardAdvertisement,
            at time: Timestamp,
            now: SuspendingClock.Instant
        ) -> (isBack: Bool, payloads: [SensorPresence.Heard]) {
            guard sensor.mayBeHeard(advertisement) else { return (false, []) }
            return state.withLock { state in
                let isBack = state.presence.isAway
                state.sighting = .init(time: time, rssi: advertisement.rssi)
                return (isBack, state.presence.record(advertisement, of: sensor, now: now))
            }
        }
    }

    private let sensors = Locked<[BluetoothAddress: Watched]>([:])
    private let intake: Intake
    private let leases: LeaseBoard?
    /// The devices that are connected; with leases, the strength of their advertisements is recorded.
    ///
    /// The supervisor acts on each of their advertisements, and on others from time to time.
    private let connectable = Locked<Set<BluetoothAddress>>([])
    /// The private addresses of sensors with an identity key.
    private let privateAddresses: Locked<PrivateAddresses>
    private let clock = LoopClock.loop
    /// The sensors to follow from now on.
    private let arrivals: AsyncStream<Sensor>
    private let arrived: AsyncStream<Sensor>.Continuation
    /// Yields one element when the set of sensors has changed.
    let replacements: AsyncStream<Void>
    private let replaced: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - intake: The destination of advertisements.
    ///   - addressHash: The hash that resolves private addresses; `nil`: they are not resolved.
    ///   - leases: Receives the strength of advertisements; `nil` without leases.
    init(intake: Intake, addressHash: PrivateAddresses.Hash? = nil, leases: LeaseBoard? = nil) {
        (self.intake, self.leases) = (intake, leases)
        privateAddresses = Locked(PrivateAddresses(hash: addressHash))
        // Bounded by the number of devices and reloads.
        (arrivals, arrived) = AsyncStream.makeStream(of: Sensor.self, bufferingPolicy: .unbounded)
        (replacements, replaced) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// All sensors, by name.
    var devices: [SupervisedDevice] { all.map(\.device).sorted { $0.name < $1.name } }

    subscript(name: String) -> SupervisedDevice? { devices.first { $0.name == name } }

    /// Returns the advertised traits of a sensor; `nil` if it was not heard.
    func traits(of device: SupervisedDevice) -> AdvertisedTraits? {
        watched(device)?.state.withLock(\.presence.lastAdvertisement).map { AdvertisedTraits($0) }
    }

    /// Returns the last advertisement of a sensor, also from a private address; `nil` if it was not heard.
    func sighting(of device: SupervisedDevice) -> SupervisorStatus.Sighting? {
        watched(device)?.state.withLock(\.sighting)
    }

    private func watched(_ device: SupervisedDevice) -> Watched? {
        let watched = sensors.withLock { $0[device.address] }
        return watched?.sensor.device.name == device.name ? watched : nil
    }

    /// The adapters that must listen; `nil` for all.
    var adapters: Set<BluetoothAddress>? {
        let pinned = all.map(\.device.adapter)
        return pinned.contains(nil) ? nil : Set(pinned.compactMap(\.self))
    }

    /// The advertisements that the central must pass on.
    var advertisementWatch: AdvertisementWatch {
        let frames = all.flatMap(\.profiles).flatMap(\.advertisements)
        let connectable = connectable.withLock(\.self)
        return AdvertisementWatch(
            addresses: Set(all.map(\.device.address)).union(leases == nil ? [] : connectable),
            sources: Set(frames.flatMap { $0.source.sources ?? [] }),
            hasChangingPayloads: !frames.isEmpty && frames.allSatisfy(\.canBeHeardPassively),
            includesResolvable: all.contains { $0.device.listening?.identity != nil },
            promptAddresses: connectable,
            sink: self
        )
    }

    /// Sets the devices that are connected.
    func setConnectable(_ addresses: Set<BluetoothAddress>) {
        let before = connectable.withLock { current in
            defer { current = addresses }
            return current
        }
        if before != addresses { replaced.yield() }
    }

    private var all: [Sensor] { sensors.withLock { $0.values.map(\.sensor) } }

    /// Replaces the sensors by those of `devices` that are never connected.
    ///
    /// - Returns: The changed or renamed sensors, and the removed ones. `isOther` is true of a sensor with another
    ///   address than the former one of its name.
    @discardableResult
    func replace(
        with devices: [SupervisedDevice],
        _ profiles: [any Profile],
        _ catalogue: StreamCatalogue,
        describe: @escaping @Sendable (DeviceDescription) -> Void
    ) -> (changed: [(device: SupervisedDevice, isNew: Bool, isOther: Bool)], gone: [SupervisedDevice]) {
        let before = all
        let wanted = devices.compactMap { device in
            before.first { $0.isMade(of: device, profiles) }
                ?? Sensor(device, profiles, makeDecoderID: catalogue.makeDecoderID, describe: describe)
        }
        let outdated = before.filter { old in !wanted.contains { $0.metricCatalogue === old.metricCatalogue } }
        sensors.withLock { sensors in
            let old = sensors
            sensors = Dictionary(
                wanted.map { sensor in
                    let known = old[sensor.device.address].flatMap {
                        $0.sensor.metricCatalogue === sensor.metricCatalogue ? $0 : nil
                    }
                    return (sensor.device.address, known ?? Watched(sensor))
                },
                uniquingKeysWith: { first, _ in first }
            )
        }
        let keys = wanted.compactMap { sensor in
            sensor.device.listening?.identity.map { (device: sensor.device.address, key: $0) }
        }
        privateAddresses.withLock { $0.replace(keys) }
        for sensor in outdated { sensor.wake.finish() }
        intake.unbind([], decoders: outdated.flatMap(\.decoders))
        let changed = wanted.filter { sensor in !before.contains { $0.metricCatalogue === sensor.metricCatalogue } }
        for sensor in changed { arrived.yield(sensor) }
        if !changed.isEmpty || !outdated.isEmpty { replaced.yield() }
        let former = Dictionary(before.map { ($0.device.name, $0.device.address) }) { first, _ in first }
        let names = Set(wanted.map(\.device.name))
        return (
            changed.map(\.device).map { device in
                let address = former[device.name]
                let isOther = address.map { $0 != device.address } ?? false
                return (device: device, isNew: address == nil, isOther: isOther)
            },
            before.map(\.device).filter { !names.contains($0.name) }
        )
    }

    func receive(_ advertisement: HeardAdvertisement, at time: Timestamp) {
        let now = clock.now
        let sender = advertisement.peripheral.address
        let address = privateAddresses.withLock { $0.device(of: sender) } ?? sender
        recordStrength(advertisement, of: address)
        guard let watched = sensors.withLock({ $0[address] }) else { return }
        let heard = watched.record(advertisement, at: time, now: now)
        for payload in heard.payloads { intake.add(payload, at: time, rssi: advertisement.rssi) }
        if heard.isBack { watched.sensor.wake.yield(advertisement) }
    }

    func flush() {
        if intake.count > 0 { intake.flush() }
    }

    /// Records the strength under the device's configured address, by which leases know it.
    private func recordStrength(_ advertisement: HeardAdvertisement, of address: BluetoothAddress) {
        guard let leases, let rssi = advertisement.rssi else { return }
        let adapter = advertisement.peripheral.adapter.description
        leases.record(LeaseBoard.Sighting(address: address.description, adapter: adapter, rssi: rssi))
    }

    /// Reports each sensor's return and absence until cancelled.
    func run(_ report: @escaping @Sendable (Sensor, PresenceChange) async -> Void) async {
        await withDiscardingTaskGroup { group in
            for await sensor in arrivals { group.addTask { await self.follow(sensor, report) } }
        }
    }

    /// Follows one sensor; a replaced sensor is left at the latest when it would be away.
    private func follow(_ sensor: Sensor, _ report: (Sensor, PresenceChange) async -> Void) async {
        for await advertisement in sensor.arrivals where isWatched(sensor) {
            await report(sensor, .present(advertisement))
            guard let silence = await waitForAbsence(of: sensor), isWatched(sensor) else { continue }
            await report(sensor, .away(silence: silence))
        }
    }

    /// Waits until the sensor counts as away, and returns the time in which it was not heard; `nil` for a sensor that
    /// was replaced, and after a cancellation.
    private func waitForAbsence(of sensor: Sensor) async -> Duration? {
        while let status = check(sensor) {
            switch status {
            case .away(let silence): return silence
            case .present(let rest): guard (try? await clock.sleep(for: rest)) != nil else { return nil }
            }
        }
        return nil
    }

    func isWatched(_ sensor: Sensor) -> Bool {
        watched(sensor) != nil
    }

    private func watched(_ sensor: Sensor) -> Watched? {
        let watched = sensors.withLock { $0[sensor.device.address] }
        return watched?.sensor.metricCatalogue === sensor.metricCatalogue ? watched : nil
    }

    /// Checks whether the sensor is still heard; `nil` if it was replaced.
    private func check(_ sensor: Sensor) -> SensorPresence.Status? {
        let now = clock.now
        return watched(sensor)?.state.withLock { $0.presence.check(sensor, now: now) }
    }
}

extension AdvertisementDescriptor {
    /// True if a passive scan loses nothing: it omits repetitions and scan responses, and needs to know the company.
    fileprivate var canBeHeardPassively: Bool {
        isCounted && before.isEmpty && source.sources != nil
    }
}
