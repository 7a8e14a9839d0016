import GattherdDBus

/// Creation and expiry of bluetoothd's devices.
final class DeviceRegistry {
    private let world: World
    private let objects: ObjectPublisher

    init(_ world: World, _ objects: ObjectPublisher) {
        self.world = world
        self.objects = objects
    }

    /// Creates a device, which is not exported yet.
    func make(_ key: DeviceKey) {
        let data = world.air.peripherals[key.peripheral].spec.advertising.data(at: world.clock.now)
        world.devices[key] = SimulatedDevice(key, path: world.path(of: key), at: world.clock.now, data: data)
        armExpiry(key)
    }

    func export(_ key: DeviceKey) {
        objects.exportDevice(key)
    }

    func remove(_ key: DeviceKey) {
        guard world.devices[key] != nil else { return }
        objects.unexportDevice(key)
        world.devices[key] = nil
    }

    /// Schedules the removal of a temporary device that no longer advertises.
    func armExpiry(_ key: DeviceKey) {
        guard let device = world.devices[key], device.canExpire, !device.isExpiryArmed else { return }
        world.devices[key]?.isExpiryArmed = true
        let due = device.lastSeen + world.timing.temporaryTimeout
        world.clock.schedule(.expire(key), after: max(.zero, due - world.clock.now))
    }

    func expire(_ key: DeviceKey) {
        world.devices[key]?.isExpiryArmed = false
        guard let device = world.devices[key], device.canExpire else { return }
        guard world.clock.now >= device.lastSeen + world.timing.temporaryTimeout else { return armExpiry(key) }
        remove(key)
    }

    /// Schedules a device's removal, which a new link or a pairing prevents.
    func scheduleRemoval(_ key: DeviceKey, after delay: Duration) {
        guard let device = world.devices[key] else { return }
        world.clock.schedule(.remove(key, linkEpoch: device.linkEpoch), after: delay)
    }
}

extension SimulatedDevice {
    /// True if the device is removed when it no longer advertises.
    fileprivate var canExpire: Bool { isTemporary && !isConnected && attempt == nil }
}
