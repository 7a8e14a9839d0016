import GattherdBluetooth
import GattherdDBus
import GattherdSync

/// Writes of values; on the Bluetooth thread only.
///
/// Write commands go through sockets: a writer that is faster than the link waits for room.
final class AttributeWriter {
    private let client: BluetoothdClient
    private let objects: BlueZObjects
    private let waiters: ChangeWaiters
    private let acquirer: SocketAcquirer
    private let loop: EventLoop
    private var routes = CommandRoutes()

    init(
        _ client: BluetoothdClient,
        _ objects: BlueZObjects,
        _ waiters: ChangeWaiters,
        _ acquirer: SocketAcquirer,
        on loop: EventLoop
    ) {
        (self.client, self.objects, self.waiters, self.acquirer) = (client, objects, waiters, acquirer)
        self.loop = loop
    }

    /// The number of known routes of commands.
    var count: Int { routes.count }

    // MARK: - Calls

    func write(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic,
        withResponse: Bool
    ) async throws(BluetoothError) {
        let path = try objects.path(of: characteristic)
        if !withResponse { try checkLength(octets.count, path) }
        // BlueZ refuses other writes until it has seen the end of the socket.
        if routes.closeSocket(to: path) { await client.makeRoundTrip() }
        let options = DBusValue.properties(["type": .string(withResponse ? "request" : "command")])
        try await writeValue(octets, path, BlueZ.characteristic, options)
    }

    func write(_ octets: [UInt8], to descriptor: RemoteDescriptor) async throws(BluetoothError) {
        try await writeValue(octets, try objects.path(of: descriptor), BlueZ.descriptor, .properties([:]))
    }

    private func writeValue(
        _ octets: [UInt8],
        _ path: String,
        _ interface: String,
        _ options: DBusValue
    ) async throws(BluetoothError) {
        do throws(DBusError) {
            let arguments = [.bytes(octets), options]
            try await client.call(path, interface, "WriteValue", arguments, within: client.attributeLimit)
        } catch {
            throw BluetoothError(error, missing: .unknownAttribute)
        }
    }

    /// The maximum length of a value: Core Specification, Vol 3, Part F, "Long attribute values".
    private static let maximumLength = 512

    /// Refuses a command longer than one packet, which BlueZ 5.66 would lose, or than a value, which it would truncate.
    private func checkLength(_ count: Int, _ path: String) throws(BluetoothError) {
        let room = objects.tree.attributes.characteristics[path]?.mtu.map { $0 - 3 }
        let limit = min(room ?? Self.maximumLength, Self.maximumLength)
        guard count > limit else { return }
        throw BluetoothError(
            .invalidLength,
            "\(count) bytes do not fit into one write without response: the link takes \(limit)"
        )
    }

    // MARK: - Sockets

    func writeWithoutResponse(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError) {
        let path = try objects.path(of: characteristic)
        try checkLength(octets.count, path)
        // For BlueZ an empty packet is the end of the socket.
        guard !octets.isEmpty, let socket = try await socket(to: path, of: characteristic.peripheral) else {
            return try await write(octets, to: characteristic, withResponse: false)
        }
        let deadline = SuspendingClock.now.advanced(by: client.attributeLimit)
        try await waiters.wait(for: characteristic.peripheral, until: deadline, "room for a write") {
            () throws(BluetoothError) in
            switch socket.send(octets) {
            case .sent: ()
            case .full: nil
            case .closed:
                throw BluetoothError(.notConnected, "\(characteristic.peripheral.address) was disconnected")
            }
        }
    }

    /// The socket to `path`; `nil` if BlueZ has none and commands are sent by calls.
    private func socket(to path: String, of id: PeripheralID) async throws(BluetoothError) -> WriteSocket? {
        if let route = routes.route(to: path) { return route.socket }
        guard let descriptor = try await acquire(path, of: id) else { return nil }
        try objects.connectedStatus(id)
        // Another command may have made a socket meanwhile.
        if let route = routes.route(to: path) { return route.socket }
        do throws(WatchError) {
            let socket = try WriteSocket(descriptor, on: loop) { [waiters] in waiters.wake(id) }
            routes.add(.socket(socket), to: path, of: id)
            return socket
        } catch {
            throw BluetoothError(.other, error.description)
        }
    }

    private func acquire(_ path: String, of id: PeripheralID) async throws(BluetoothError) -> DBusDescriptor? {
        do throws(BluetoothError) {
            return try await acquirer.acquire("AcquireWrite", path, of: id)
        } catch  where Self.meansNoSocket(error) {
            routes.add(.calls, to: path, of: id)
            return nil
        }
    }

    /// True for a stack without sockets, a characteristic without one, or one whose socket another client has.
    private static func meansNoSocket(_ fault: BluetoothError) -> Bool {
        fault.kind == .notSupported || fault.kind == .busy || fault.original?.name.hasSuffix(".UnknownMethod") == true
    }

    // MARK: - Ends

    /// Closes the socket of a characteristic that was removed.
    func remove(_ path: String) {
        routes.remove(path)
    }

    /// Closes the sockets of a peripheral whose link ended.
    func closeSockets(of id: PeripheralID) {
        routes.close(of: id)
    }

    func closeSockets() {
        routes.closeAll()
    }
}
