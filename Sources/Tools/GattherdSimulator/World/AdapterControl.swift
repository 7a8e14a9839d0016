import GattherdDBus

/// The power and presence of adapters.
final class AdapterControl {
    /// The remembered devices of an adapter, by peripheral.
    private typealias Memories = [Int: SimulatedDevice.Memory]

    private let world: World
    private let objects: ObjectPublisher
    private let registry: DeviceRegistry
    private let discovery: DiscoveryControl
    private let attempts: ConnectionAttempts
    private let links: LinkControl
    /// The memories of each adapter, while bluetoothd or the adapter is absent.
    private var remembered: [Int: Memories] = [:]

    init(
        _ world: World,
        _ objects: ObjectPublisher,
        _ registry: DeviceRegistry,
        _ discovery: DiscoveryControl,
        _ attempts: ConnectionAttempts,
        _ links: LinkControl
    ) {
        self.world = world
        self.objects = objects
        self.registry = registry
        self.discovery = discovery
        self.attempts = attempts
        self.links = links
    }

    /// Exports the adapters that are plugged in.
    func exportAll() {
        for index in world.adapters.indices where world.adapters[index].isPresent { export(index) }
    }

    /// Exports an adapter and the devices that it remembers.
    private func export(_ index: Int) {
        objects.exportAdapter(index)
        for (peripheral, memory) in remembered.removeValue(forKey: index) ?? [:] {
            let key = DeviceKey(adapter: index, peripheral: peripheral)
            registry.make(key)
            world.devices[key]?.restore(memory)
            // After a crash the kernel still has the link, but nothing is transferred over it.
            if world.air.peripherals[peripheral].abandonedBy == index {
                let epoch = world.clock.makeID()
                world.devices[key]?.adoptLink(epoch: epoch)
            }
            registry.export(key)
        }
    }

    func setPower(_ index: Int, _ isOn: Bool) {
        guard world.adapters[index].isPowered != isOn else { return }
        guard isOn else { return powerOff(index, .powerOff) }
        world.adapters[index].isPowered = true
        world.signal(adapter: index, [Property("Powered", .boolean(true))])
    }

    /// Powers the adapters that are plugged in, as bluetoothd does after its start (AutoEnable).
    func powerAll() {
        for index in world.adapters.indices where world.adapters[index].isPresent { setPower(index, true) }
    }

    /// Ends links, attempts, scans and filters, and removes temporary devices.
    ///
    /// Other objects remain.
    private func powerOff(_ index: Int, _ reason: TruthEvent.DisconnectReason) {
        for key in world.keys(ofAdapter: index) {
            attempts.cancel(key)
            if let device = world.devices[key], device.isTemporary, !device.isConnected { registry.remove(key) }
        }
        for key in world.keys(ofAdapter: index) { links.end(key, reason) }
        discovery.removeResults(index)
        world.adapters[index].isPowered = false
        world.adapters[index].discovery.removeAll()
        world.signal(
            adapter: index,
            [Property("Powered", .boolean(false)), Property("Discovering", .boolean(false))]
        )
    }

    func unplug(_ index: Int) {
        guard world.adapters[index].isPresent else { return }
        remembered[index] = memories(ofAdapter: index)
        if world.adapters[index].isPowered { powerOff(index, .unplugged) }
        removeDevices(ofAdapter: index)
        world.adapters[index].isPresent = false
        objects.unexportAdapter(index)
    }

    /// Plugs an adapter in, which a running bluetoothd powers (AutoEnable).
    func plug(_ index: Int, isDaemonRunning: Bool) {
        guard !world.adapters[index].isPresent else { return }
        world.adapters[index].isPresent = true
        world.adapters[index].isPowered = false
        guard isDaemonRunning else { return }
        export(index)
        setPower(index, true)
    }

    /// Removes an adapter's objects because bluetoothd ends, and keeps its memory.
    func stop(_ index: Int) {
        let memories = memories(ofAdapter: index)
        powerOff(index, .daemon)
        removeDevices(ofAdapter: index)
        objects.unexportAdapter(index)
        remembered[index] = memories
    }

    private func removeDevices(ofAdapter index: Int) {
        for key in world.keys(ofAdapter: index) { registry.remove(key) }
    }

    /// The devices that are kept without their objects: the connected, trusted and paired ones.
    private func memories(ofAdapter index: Int) -> Memories {
        let devices = world.keys(ofAdapter: index).compactMap { world.devices[$0] }
        let kept = devices.filter { $0.isConnected || !$0.isTemporary }
        return Dictionary(uniqueKeysWithValues: kept.map { ($0.key.peripheral, $0.memory) })
    }

    /// Hangs a controller, or lets it answer again and report the link ends that it missed.
    func setHung(_ index: Int, _ isHung: Bool) {
        world.adapters[index].isHung = isHung
        guard !isHung else { return }
        for key in world.keys(ofAdapter: index) { attempts.resume(key) }
        links.reportEnds(ofAdapter: index)
    }
}
