import GattherdDBus

/// Service discovery, and the battery level that bluetoothd reads on its own.
final class ServiceDiscovery {
    private let world: World
    private let objects: ObjectPublisher
    private let sessions: NotifySessions
    private let sockets: SocketAcquisitions
    private let notifications: NotificationSender
    private let pairing: PairingControl
    /// The layout versions in bluetoothd's attribute cache, by device.
    ///
    /// Removed devices stay in it.
    private var cache: [DeviceKey: Int] = [:]

    init(
        _ world: World,
        _ objects: ObjectPublisher,
        _ sessions: NotifySessions,
        _ sockets: SocketAcquisitions,
        _ notifications: NotificationSender,
        _ pairing: PairingControl
    ) {
        self.world = world
        self.objects = objects
        self.sessions = sessions
        self.sockets = sockets
        self.notifications = notifications
        self.pairing = pairing
    }

    /// Schedules the end of discovery on a new link.
    func start(_ key: DeviceKey, linkEpoch: UInt64) {
        let peripheral = world.air.peripherals[key.peripheral]
        let isKnown = cache[key] == peripheral.layoutVersion
        let isSilent = peripheral.silence == .all
        let latency = isSilent ? world.timing.attTimeout : peripheral.resolveLatency(isKnown: isKnown)
        world.clock.schedule(.resolve(key, linkEpoch: linkEpoch), after: latency)
    }

    /// Ends service discovery.
    ///
    /// A peripheral that never answered is resolved with its previous objects and then disconnected.
    func resolve(_ key: DeviceKey) {
        let isSilent = !world.isReachable(key)
        if !isSilent { discover(key) }
        guard let device = world.devices[key] else { return }
        world.devices[key]?.markResolved()
        if !isSilent { sessions.subscribeAgain(key) }
        world.signal(key, [Property("UUIDs", uuids(of: device)), Property("ServicesResolved", .boolean(true))])
        guard !isSilent else {
            let timer = SimulationTimer.linkDown(key, linkEpoch: device.linkEpoch, .unanswered)
            return world.clock.schedule(timer, after: GATTClient.unansweredDisconnectDelay)
        }
        showBattery(key)
        notifications.start(key.peripheral)
        pairing.negotiate(key)
    }

    /// Makes the GATT objects, unless those of the last connection are current.
    ///
    /// Objects with unchanged handles are kept.
    ///
    /// bluetoothd signals removed objects at once and new objects when it is idle, usually before the removals. The
    /// simulator alternates the two orders.
    private func discover(_ key: DeviceKey) {
        let peripheral = world.air.peripherals[key.peripheral]
        guard let device = world.devices[key], device.gatt?.version != peripheral.layoutVersion else { return }
        var gatt = GATTObjects(peripheral.layout, version: peripheral.layoutVersion, under: device.path)
        sockets.endAll(key, except: gatt.paths)
        let old = world.devices[key]?.gatt
        if let old { gatt.keep(old) }
        let addsFirst = !peripheral.layoutVersion.isMultiple(of: 2)
        if !addsFirst, let old { objects.unexport(old, except: gatt.paths) }
        cache[key] = peripheral.layoutVersion
        world.devices[key]?.gatt = gatt
        objects.exportGATT(key)
        if addsFirst, let old { objects.unexport(old, except: gatt.paths) }
    }

    /// Discovers the services again after a Service Changed indication.
    func rediscover(_ key: DeviceKey) {
        guard let before = world.devices[key].map({ uuids(of: $0) }) else { return }
        discover(key)
        guard let device = world.devices[key] else { return }
        let after = uuids(of: device)
        if after != before { world.signal(key, [Property("UUIDs", after)]) }
    }

    /// The services that were advertised or discovered.
    private func uuids(of device: SimulatedDevice) -> DBusValue {
        device.uuids(of: world.air.peripherals[device.key.peripheral].spec)
    }

    private func showBattery(_ key: DeviceKey) {
        let peripheral = world.air.peripherals[key.peripheral]
        let level = peripheral.characteristics.first { $0.spec.uuid == .batteryLevel }?.value.first
        guard let device = world.devices[key], let level else { return }
        world.devices[key]?.battery = level
        let properties = [Property("Percentage", .byte(level))]
        world.effects.append(.added(path: device.path, [Interface(InterfaceName.battery, properties)]))
    }

    /// Removes the battery level at the end of a link.
    func hideBattery(_ key: DeviceKey) {
        guard let device = world.devices[key], device.battery != nil else { return }
        world.devices[key]?.battery = nil
        world.effects.append(.removed(path: device.path, [InterfaceName.battery]))
    }
}
