/// The movement of peripherals into and out of reach of a gateway's adapters.
final class RangeControl {
    /// The time between two checks of a moving peripheral.
    private static let period = Duration.milliseconds(100)

    /// A loss of contact during a link, until the contact returns.
    private struct Absence {
        let id: UInt64
        let linkEpoch: UInt64
    }

    private let world: World
    private let notifications: NotificationSender
    private let attempts: ConnectionAttempts
    /// The absences of linked peripherals, by device.
    private var absences: [DeviceKey: Absence] = [:]

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
            if world.isInRange(key) { startContact(key) } else { endContact(key) }
        }
    }

    /// Continues an attempt, or the notifications of a link that has not timed out.
    func startContact(_ key: DeviceKey) {
        attempts.resume(key)
        guard world.isInContact(key), absences.removeValue(forKey: key) != nil else { return }
        restartNotifications(key)
    }

    /// Stops the notifications of a link, which is lost after the supervision timeout.
    func endContact(_ key: DeviceKey) {
        guard world.air.peripherals[key.peripheral].link == key, let device = world.devices[key],
            absences[key]?.linkEpoch != device.linkEpoch
        else { return }
        notifications.stop(key.peripheral)
        let absence = Absence(id: world.clock.makeID(), linkEpoch: device.linkEpoch)
        absences[key] = absence
        let timer = SimulationTimer.loseContact(key, absence: absence.id)
        world.clock.schedule(timer, after: world.timing.supervisionTimeout)
    }

    /// Ends an absence after the supervision timeout.
    ///
    /// - Returns: False if the contact or the link ended it before.
    func endAbsence(_ id: UInt64, of key: DeviceKey) -> Bool {
        guard let absence = absences[key], absence.id == id else { return false }
        absences[key] = nil
        return world.isCurrent(key, absence.linkEpoch)
    }

    /// Starts the notifications of a resolved link again.
    func restartNotifications(_ key: DeviceKey) {
        guard world.air.peripherals[key.peripheral].link == key, world.devices[key]?.isResolved == true else { return }
        notifications.start(key.peripheral)
    }
}
