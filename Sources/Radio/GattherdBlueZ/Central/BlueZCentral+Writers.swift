public import GattherdBluetooth
import GattherdDBus
import GattherdSync

// Write commands, through sockets: a writer that is faster than the link waits for room.
extension BlueZCentral {
    public func writeWithoutResponse(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError) {
        let path = try attributePath(characteristic)
        try checkLength(octets.count, path, false)
        // BlueZ takes an empty packet for the end of the socket.
        guard !octets.isEmpty, let socket = try await writeSocket(path, of: characteristic.peripheral) else {
            return try await write(octets, to: characteristic, withResponse: false)
        }
        let deadline = SuspendingClock.now.advanced(by: limits.operation)
        try await wait(for: characteristic.peripheral, until: deadline, "room for a write") {
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
    private func writeSocket(_ path: String, of id: PeripheralID) async throws(BluetoothError) -> WriteSocket? {
        switch writers.route(to: path) {
        case .socket(let socket): return socket
        case .calls: return nil
        case nil: break
        }
        guard let descriptor = try await acquireWrite(path, of: id), (try? link(id)) != nil else { return nil }
        // Another command may have made a socket meanwhile.
        if let route = writers.route(to: path) { return if case .socket(let socket) = route { socket } else { nil } }
        do throws(WatchError) {
            let socket = try WriteSocket(descriptor, on: loop) { [waiters] in waiters.wake(id) }
            writers.add(.socket(socket), to: path, of: id)
            return socket
        } catch {
            throw BluetoothError(.other, error.description)
        }
    }

    private func acquireWrite(_ path: String, of id: PeripheralID) async throws(BluetoothError) -> DBusDescriptor? {
        do throws(DBusError) {
            let reply = try await call(path, BlueZ.characteristic, "AcquireWrite", [.properties([:])])
            guard case .fileDescriptor(let descriptor) = reply.first else { return nil }
            return descriptor
        } catch {
            let fault = BluetoothError(error, missing: .unknownAttribute)
            guard Self.meansNoSocket(fault) else { throw fault }
            writers.add(.calls, to: path, of: id)
            return nil
        }
    }

    /// True for a stack without sockets, a characteristic without one, or one whose socket another client has.
    private static func meansNoSocket(_ fault: BluetoothError) -> Bool {
        fault.kind == .notSupported || fault.kind == .busy || fault.original?.name.hasSuffix(".UnknownMethod") == true
    }

    /// Closes the socket to `path`: BlueZ refuses other writes until it has seen that, in a round trip.
    func releaseWriter(_ path: String) async {
        if writers.closeSocket(to: path) { await makeRoundTrip() }
    }
}
