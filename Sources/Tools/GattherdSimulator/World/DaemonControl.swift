/// The process of bluetoothd: its end, its start and its crashes.
final class DaemonControl {
    private enum Phase: Hashable {
        case running, stopped
        /// bluetoothd owns its bus name and does not answer calls yet.
        case starting
    }

    /// The time that bluetoothd is absent after a client has crashed it.
    private static let crashDowntime = Duration.seconds(2)
    /// The time that the kernel keeps links after a crash, until it notices that they are unused.
    private static let abandonedLinkDuration = Duration.milliseconds(2250)
    /// The time from taking the bus name to reading the adapters.
    private static let startDuration = Duration.milliseconds(50)

    private let world: World
    private let objects: ObjectPublisher
    private let agents: AgentRegistry
    private let links: LinkControl
    private let adapters: AdapterControl
    private var phase = Phase.running
    /// The calls that arrived during the start.
    private var queuedCalls: [MethodCall] = []

    init(
        _ world: World,
        _ objects: ObjectPublisher,
        _ agents: AgentRegistry,
        _ links: LinkControl,
        _ adapters: AdapterControl
    ) {
        self.world = world
        self.objects = objects
        self.agents = agents
        self.links = links
        self.adapters = adapters
    }

    var isRunning: Bool { phase == .running }

    /// Queues a call that arrives during the start.
    ///
    /// Returns false if it can be answered now.
    func queue(_ call: MethodCall) -> Bool {
        guard phase == .starting else { return false }
        queuedCalls.append(call)
        return true
    }

    func removeClient(_ client: String) {
        queuedCalls.removeAll { $0.sender == client }
    }

    /// Ends bluetoothd: gracefully, with signals for all removed objects, or as a crash.
    func stop(isGraceful: Bool, for downtime: Duration) {
        guard isRunning else { return }
        phase = .stopped
        queuedCalls.removeAll()
        for index in world.adapters.indices where world.adapters[index].isPresent {
            if !isGraceful { abandonLinks(ofAdapter: index) }
            adapters.stop(index)
        }
        agents.release()
        if !isGraceful { world.effects.removeBusEffects() }
        for index in world.adapters.indices { world.adapters[index].isPowered = !isGraceful }
        objects.removeAll()
        agents.removeAll()
        world.effects.append(.stopDaemon)
        world.clock.schedule(.startDaemon, after: downtime)
    }

    /// Ends bluetoothd because of a client.
    func crash() {
        world.effects.record(.crashed)
        stop(isGraceful: false, for: Self.crashDowntime)
    }

    private func abandonLinks(ofAdapter index: Int) {
        for peripheral in world.air.peripherals.indices where world.air.peripherals[peripheral].link?.adapter == index {
            world.air.peripherals[peripheral].abandonedBy = index
            world.clock.schedule(.abandon(peripheral: peripheral), after: Self.abandonedLinkDuration)
        }
    }

    /// Ends a link that the kernel has kept after a crash, unless it is ordered to survive for the next bluetoothd.
    func endAbandonedLink(_ peripheral: Int) {
        guard let adapter = world.air.peripherals[peripheral].abandonedBy.take() else { return }
        let key = DeviceKey(adapter: adapter, peripheral: peripheral)
        let isConnected = world.devices[key]?.isConnected == true
        if world.air.peripherals[peripheral].survivesCrash, isConnected {
            world.air.peripherals[peripheral].survivesCrash = false
            world.air.peripherals[peripheral].link = key
            return
        }
        world.effects.record(.disconnected(world.air.peripherals[peripheral].spec.address, .daemon))
        if isConnected { links.end(key, .daemon) } else { world.air.startAdvertising(peripheral) }
    }

    /// Starts bluetoothd, which acquires its name at once.
    ///
    /// Calls wait until it has read its adapters.
    func start() {
        phase = .starting
        world.effects.append(.startDaemon)
        world.clock.schedule(.serve, after: Self.startDuration)
    }

    /// Exports adapters and devices.
    ///
    /// Returns the calls that were queued meanwhile.
    func serve() -> [MethodCall] {
        defer { queuedCalls.removeAll() }
        phase = .running
        exportAll()
        return queuedCalls
    }

    /// Exports the root objects and the adapters that are plugged in.
    func exportAll() {
        objects.exportRoots()
        adapters.exportAll()
    }
}
