import BlueZKit
import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit
import Testing

/// gattherd's own client of org.bluez, running, with its events.
struct OurClient: Sendable {
    let central: BlueZCentral
    private let received = Locked<[CentralEvent]>([])

    struct NotFound: Error {}

    /// Runs a client on a bus during `body`.
    ///
    /// The client leaves the bus before this returns.
    static func run(on bus: String, _ body: (OurClient) async throws -> Void) async throws {
        let client = OurClient(central: BlueZCentral(bus: .address(bus), log: .silent))
        async let running: Void = client.central.run()
        async let listening: Void = client.listen()
        let result: Result<Void, any Error>
        do {
            try await body(client)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await client.central.close()
        _ = await (running, listening)
        try result.get()
    }

    private func listen() async {
        for await event in central.events { received.withLock { $0.append(event) } }
    }

    /// The events so far.
    var events: [CentralEvent] { received.withLock { $0 } }

    /// Removes the events so far.
    func removeEvents() { received.withLock { $0.removeAll() } }

    /// Leaves the bus and returns under a new unique name.
    func reconnectToBus() async throws {
        removeEvents()
        await central.reconnectToBus()
        try await eventually { events.contains(.available) }
    }

    /// Finds peripherals by scanning, unless they are known.
    func find(_ addresses: [String]) async throws -> [PeripheralID] {
        var adapter: BluetoothAddress?
        try await eventually {
            adapter = adapterThatIsOn
            return adapter != nil
        }
        guard let adapter else { throw NotFound() }
        let ids = try addresses.map {
            PeripheralID(adapter: adapter, address: try #require(BluetoothAddress($0)))
        }
        try await central.startDiscovery(on: adapter)
        try await eventually { Set(ids).isSubset(of: known) }
        try await central.stopDiscovery(on: adapter)
        return ids
    }

    /// Connects and returns a characteristic.
    func connect(_ id: PeripheralID, _ uuid: UInt16 = 0x2A37) async throws -> RemoteCharacteristic {
        try await central.connect(id, timeout: .seconds(60))
        let table = try await central.characteristics(of: id, timeout: .seconds(60))
        guard let found = table.first(where: { $0.uuid == BluetoothUUID(uuid) }) else { throw NotFound() }
        return found
    }

    private var adapterThatIsOn: BluetoothAddress? {
        for event in events {
            if case .adapterChanged(let status) = event, status.isPowered { return status.address }
        }
        return nil
    }

    private var known: Set<PeripheralID> {
        Set(events.compactMap { if case .peripheralChanged(let status) = $0 { status.id } else { nil } })
    }
}

/// Collects the received values by subscription.
final class ValueCollector: NotificationSink {
    private let values = Locked<[UInt64: [[UInt8]]]>([:])

    func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        let copy = octets.indices.map { octets[$0] }
        values.withLock { $0[token.value, default: []].append(copy) }
    }

    subscript(number: UInt64) -> [[UInt8]] { values.withLock { $0[number] ?? [] } }
}
