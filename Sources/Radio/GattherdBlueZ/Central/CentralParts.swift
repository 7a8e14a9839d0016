import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdSync

/// The parts of a central, each with its own state, on one loop.
final class CentralParts {
    let events = EventQueue()
    let client: BluetoothdClient
    let objects: BlueZObjects
    let waiters: ChangeWaiters
    let tableChanges: TableChanges
    let sequencer: SignalSequencer
    let acquirer: SocketAcquirer
    let sockets: NotificationSockets
    let notifications: NotificationClient
    let links: Links
    let reader: AttributeReader
    let writer: AttributeWriter
    let discovery: Discovery
    let monitors: AdvertisementMonitors
    let pairing: PairingClient
    let liveness: LivenessMonitor

    init(bus address: DBusAddress, on loop: EventLoop, limits: BlueZCentral.Limits, log: Log) {
        let limit = limits.operation
        client = BluetoothdClient(limits: limits)
        objects = BlueZObjects(client)
        waiters = ChangeWaiters(on: loop)
        tableChanges = TableChanges(on: loop, limits: limits)
        sequencer = SignalSequencer(client, on: loop)
        acquirer = SocketAcquirer(client, waiters)
        sockets = NotificationSockets(on: loop, longestPause: limits.batchDelay)
        notifications = NotificationClient(
            client,
            objects,
            tableChanges,
            sequencer,
            acquirer,
            sockets,
            events,
            on: loop
        )
        links = Links(client, objects, waiters, operationLimit: limit)
        reader = AttributeReader(client, objects, waiters, tableChanges, notifications, operationLimit: limit)
        writer = AttributeWriter(client, objects, waiters, acquirer, on: loop)
        discovery = Discovery(client, objects, log: log)
        monitors = AdvertisementMonitors(client, objects, log: log)
        pairing = PairingClient(client, objects, links, bus: address, on: loop, operationLimit: limit, log: log)
        liveness = LivenessMonitor(client, objects, on: loop, limits: limits)
    }

    /// Closes all channels and sockets.
    func closeSockets() {
        notifications.closeAll()
        writer.closeSockets()
    }

    /// Ends everything on the connection to bluetoothd so that it is safe to leave the bus.
    func prepareToLeave() async {
        client.beginLeaving()
        closeSockets()
        await acquirer.finish()
    }

    /// Resets everything that was known of a bluetoothd.
    func reset() {
        closeSockets()
        sequencer.reset()
        acquirer.reset()
        objects.clear()
        client.setOwner(nil)
        pairing.reset()
        links.removeAll()
        discovery.reset()
        waiters.wakeAll()
    }

    /// The number of entries in each table that grows with links.
    var entryCounts: [Int] {
        [
            notifications.count, acquirer.count, writer.count, tableChanges.count, links.count, pairing.count,
            waiters.count,
        ]
    }
}
