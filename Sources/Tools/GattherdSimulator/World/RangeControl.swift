/// The movement of peripherals into and out of reach of a gateway's adapters.
final class RangeControl {
    /// The time between two checks of a moving peripheral.
    private static let period = Duration.milliseconds(100)

    private let world: World
    private let notifications: NotificationSender
    private let attempts: ConnectionAttempts
    /// The links without contact at the last check.
    private var lost: Set<DeviceKey> = []

    init(_ world: World, _ notifications: NotificationSender, _ attempts: ConnectionAttempts) {
        self.world = world
        self.notifications = notifications
        self.attempts = attempts
        for index in world.air.peripherals.indices where world.air.field.isChanging(index) { check(index) }
    }

    /// Starts and ends radio contact with the gateway's adapters, and schedules the next check.
    func check(_ index: Int) {
        world.clock.schedule(.checkRange(peripheral: index), after: Self.period)
        for adapter in world.adapters.indices {
            let key = DeviceKey(adapter: adapter, peripheral: index)
            if world.isInRange(key) { startContact(key) } else { loseContact(key) }
        }
    }

    private func startContact(_ key: DeviceKey) {
        attempts.resume(key)
        if lost.remove(key) != nil { restartNotifications(key) }
    }

    private func loseContact(_ key: DeviceKey) {
        guard world.air.peripherals[key.peripheral].link == key else {
            lost.remove(key)
            return
        }
        if lost.insert(key).inserted { endContact(key) }
    }

    /// Stops the notifications of a link, which is lost after the supervision timeout.
    func endContact(_ key: DeviceKey) {
        guard world.air.peripherals[key.peripheral].link == key, let device = world.devices[key] else { return }
        notifications.stop(key.peripheral)
        let timer = SimulationTimer.loseContact(key, linkEpoch: device.linkEpoch)
        world.clock.schedule(timer, after: world.timing.supervisionTimeout)
    }

    /// Starts the notifications of a resolved link again.
    func restartNotifications(_ key: DeviceKey) {
        guard world.air.peripherals[key.peripheral].link == key, world.devices[key]?.isResolved == true else { return }
        notifications.start(key.peripheral)
    }
}
