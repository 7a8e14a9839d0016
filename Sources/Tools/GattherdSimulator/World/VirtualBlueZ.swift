/// A simulated bluetoothd with its adapters: one gateway of a ``VirtualSite``.
///
/// Behaves like BlueZ 5.66 as observed. The effects of events and timers are in ``World/effects``.
final class VirtualBlueZ {
    enum Event: Hashable, Sendable {
        case call(MethodCall)
        /// A client's bus connection ended.
        case clientLeft(String)
        /// A client closed its end of an acquired socket.
        case socketClosed(SocketID)
        /// A client wrote a packet to an acquired socket.
        case packet([UInt8], SocketID)
        /// An agent answered the request with this number.
        case agentAnswered(UInt64, AgentAnswer)
        case control(ControlCommand)
    }

    let world: World
    let components: BlueZComponents
    private let calls: CallRouter
    private let commands: CommandPerformer

    init(_ scenario: Scenario, in air: Air, gateway: Int) {
        world = World(scenario, in: air, gateway: gateway)
        components = BlueZComponents(world)
        calls = CallRouter(world, components)
        commands = CommandPerformer(world, components)
        components.daemon.exportAll()
        _ = world.effects.dequeueAll()
    }

    /// Applies one event.
    func apply(_ event: Event) {
        switch event {
        case .call(let call): calls.answer(call)
        case .clientLeft(let client): removeClient(client)
        case .socketClosed(let socket): if components.sockets.closed(socket) { components.daemon.crash() }
        case .packet(let packet, let socket): components.gatt.receive(packet, from: socket)
        case .agentAnswered(let request, let answer): components.pairing.receive(answer, to: request)
        case .control(let command): commands.perform(command)
        }
    }

    /// Removes the state of a client that left the bus.
    private func removeClient(_ client: String) {
        components.pairing.removeClient(client)
        components.sockets.recordOrphans(of: client)
        components.daemon.removeClient(client)
        components.discovery.removeClient(client)
        components.gatt.removeClient(client)
        for key in world.devices.keys { components.sessions.removeClient(client, key) }
    }
}

// MARK: - Timers

extension VirtualBlueZ {
    /// Performs a timed action, which is late by `lag`.
    func run(_ timer: SimulationTimer, lag: Duration) {
        switch timer {
        case .advertise(let key, let scanEpoch, let airEpoch): components.discovery.advertise(key, scanEpoch, airEpoch)
        case .expire(let key): components.registry.expire(key)
        case .linkUp(let key, let attempt): components.links.linkUp(key, attempt: attempt)
        case .giveUp(let key, let attempt): components.attempts.giveUp(key, attempt: attempt)
        case .resolve(let key, let epoch): if world.isCurrent(key, epoch) { components.services.resolve(key) }
        case .linkDown(let key, let epoch, let reason):
            if world.isCurrent(key, epoch) { components.links.end(key, reason) }
        case .loseContact(let key, let absence):
            if components.range.endAbsence(absence, of: key) { components.links.loseContact(key) }
        case .checkRange(let index): components.range.check(index)
        case .rediscover(let key, let epoch): if world.isCurrent(key, epoch) { components.services.rediscover(key) }
        case .finish(let id): components.gatt.finish(id)
        case .timeOut(let id): components.gatt.timeOut(id)
        case .notify(let peripheral, let characteristic, let epoch):
            components.notifications.produce(peripheral, characteristic, epoch: epoch, lag: lag)
        case .sendRecords(let peripheral, let epoch): components.records.send(peripheral, epoch: epoch)
        case .finishPairing(let key, let id):
            for request in components.pairing.finish(key, pairing: id) { components.gatt.finish(request) }
        case .failPairing(let key, let id):
            if components.pairing.fail(key, pairing: id) { components.links.end(key, .authentication) }
        case .abandonPairing(let key, let id):
            if components.pairing.isCurrent(key, id) { components.links.end(key, .authentication) }
        case .deliver(let key, let last): components.notifications.deliverBuffered(key, through: last)
        case .failDiscovery(let call): world.effects.fail(call, .inProgress)
        case .remove(let key, let epoch): components.links.removeFailed(key, linkEpoch: epoch)
        case .abandon(let index): components.daemon.endAbandonedLink(index)
        case .connectAgain(let key): components.links.connectAgain(key)
        case .startDaemon: components.daemon.start()
        case .serve: serve()
        }
    }

    /// Completes the start of bluetoothd: answers the queued calls, and powers the adapters.
    private func serve() {
        for call in components.daemon.serve() { calls.answer(call) }
        components.adapters.powerAll()
    }
}

/// The components of a simulated bluetoothd.
///
/// Each knows only those above it, so that none needs the whole.
struct BlueZComponents {
    let objects: ObjectPublisher
    let registry: DeviceRegistry
    let discovery: DiscoveryControl
    let notifications: NotificationSender
    let records: RecordSender
    let sessions: NotifySessions
    let sockets: SocketAcquisitions
    let agents: AgentRegistry
    let requests = RequestTable()
    let pairing: PairingControl
    let gatt: GATTClient
    let services: ServiceDiscovery
    let attempts: ConnectionAttempts
    let range: RangeControl
    let links: LinkControl
    let adapters: AdapterControl
    let daemon: DaemonControl

    init(_ world: World) {
        objects = ObjectPublisher(world)
        registry = DeviceRegistry(world, objects)
        discovery = DiscoveryControl(world, registry)
        notifications = NotificationSender(world)
        records = RecordSender(world, notifications)
        sessions = NotifySessions(world)
        sockets = SocketAcquisitions(world)
        agents = AgentRegistry(world)
        pairing = PairingControl(world, agents, requests, registry)
        gatt = GATTClient(world, requests, sessions, sockets, notifications, records, pairing)
        services = ServiceDiscovery(world, objects, sessions, sockets, notifications, pairing)
        attempts = ConnectionAttempts(world, registry, discovery, pairing)
        range = RangeControl(world, notifications, attempts)
        links = LinkControl(world, registry, notifications, sockets, pairing, gatt, services, attempts)
        adapters = AdapterControl(world, objects, registry, discovery, attempts, links)
        daemon = DaemonControl(world, objects, agents, links, adapters)
    }
}
