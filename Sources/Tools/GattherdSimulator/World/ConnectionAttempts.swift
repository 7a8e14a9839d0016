import GattherdDBus

/// The pending attempts to connect, which wait for their peripherals to advertise and for their adapters.
final class ConnectionAttempts {
    private let world: World
    private let registry: DeviceRegistry
    private let discovery: DiscoveryControl
    private let pairing: PairingControl
    /// The earliest time of the next link, by adapter: each makes one link at a time.
    private var freeTimes: [Int: Duration] = [:]

    init(_ world: World, _ registry: DeviceRegistry, _ discovery: DiscoveryControl, _ pairing: PairingControl) {
        self.world = world
        self.registry = registry
        self.discovery = discovery
        self.pairing = pairing
        world.air.onAdvertising { [weak self] index in self?.receive(index) }
    }

    /// Starts an attempt.
    ///
    /// The `Connect` call is answered at its end.
    func start(_ key: DeviceKey, for call: CallToken?, isRetry: Bool = false) {
        let id = world.clock.makeID()
        world.devices[key]?.attempt = SimulatedDevice.Attempt(id: id, call: call, isRetry: isRetry)
        world.clock.schedule(.giveUp(key, attempt: id), after: world.timing.connectTimeout)
        resume(key)
    }

    /// Continues an attempt that waits for the peripheral to advertise.
    func resume(_ key: DeviceKey) {
        guard let device = world.devices[key], let attempt = device.attempt, attempt.isWaiting,
            world.adapters[key.adapter].isUsable
        else { return }
        let peripheral = world.air.peripherals[key.peripheral]
        guard peripheral.isAdvertising, peripheral.spec.advertising.isConnectable, world.isInRange(key),
            !device.isBlocked
        else { return }
        world.devices[key]?.attempt?.isWaiting = false
        let end = max(world.clock.now, freeTimes[key.adapter] ?? .zero) + peripheral.spec.connectLatency
        freeTimes[key.adapter] = end
        world.clock.schedule(.linkUp(key, attempt: attempt.id), at: end)
    }

    /// The attempt with this number, if it is pending and the peripheral still advertises in range.
    func ready(_ key: DeviceKey, attempt id: UInt64) -> SimulatedDevice.Attempt? {
        guard let attempt = world.devices[key]?.attempt, attempt.id == id else { return nil }
        guard world.air.peripherals[key.peripheral].isAdvertising, world.isInRange(key) else {
            world.devices[key]?.attempt?.isWaiting = true
            return nil
        }
        return attempt
    }

    func giveUp(_ key: DeviceKey, attempt id: UInt64) {
        guard world.devices[key]?.attempt?.id == id else { return }
        world.devices[key]?.lastSeen = world.clock.now
        end(key, .connectAborted)
    }

    func end(_ key: DeviceKey, _ error: DBusError) {
        guard let attempt = world.devices[key]?.attempt else { return }
        world.devices[key]?.attempt = nil
        if let call = attempt.call { world.effects.fail(call, error) }
        pairing.end(key, .connectionAborted)
        registry.armExpiry(key)
    }

    /// Cancels a device's attempt and its pairing.
    func cancel(_ key: DeviceKey) {
        pairing.withdraw(key)
        end(key, .connectCanceled)
    }

    /// Receives a peripheral that has started to advertise.
    private func receive(_ index: Int) {
        for adapter in world.adapters.indices {
            let key = DeviceKey(adapter: adapter, peripheral: index)
            discovery.listen(key)
            resume(key)
        }
    }
}
