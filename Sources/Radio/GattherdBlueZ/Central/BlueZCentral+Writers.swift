public import GattherdBluetooth
import GattherdDBus
import GattherdSync

// Write commands, through sockets: who writes faster than the link waits for room.
extension BlueZCentral {
    public func writeWithoutResponse(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError) {
        let path = try attributePath(characteristic)
        try checkLength(octets.count, path, false)
        // BlueZ takes an empty packet for the end of the socket.
        guard !octets.isEmpty, let socket = try await writer(path, of: characteristic.peripheral) else {
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

    /// The socket to `path`; `nil` when BlueZ gives none and commands go by calls.
    private func writer(_ path: String, of id: PeripheralID) async throws(BluetoothError) -> WriteSocket? {
        if let writer = writers[path], writer.socket?.isOpen != false { return writer.socket }
        writers[path] = nil
        let reply: [DBusValue]
        do throws(DBusError) {
            reply = try await call(path, BlueZ.characteristic, "AcquireWrite", [.properties([:])])
        } catch {
            let fault = BluetoothError(error, missing: .unknownAttribute)
            guard Self.meansNoWriter(fault) else { throw fault }
            writers[path] = CommandWriter(peripheral: id, socket: nil)
            return nil
        }
        guard case .fileDescriptor(let descriptor) = reply.first else { return nil }
        guard (try? link(id)) != nil, writers[path] == nil else { return writers[path]?.socket }
        let socket: WriteSocket
        do throws(WatchError) {
            socket = try WriteSocket(descriptor, on: loop) { [weak self] in
                self?.assumeIsolated { $0.wakeWaiters(of: id) }
            }
        } catch {
            throw BluetoothError(.other, error.description)
        }
        writers[path] = CommandWriter(peripheral: id, socket: socket)
        return socket
    }

    /// A stack without sockets, a characteristic that has none, or one whose socket somebody else has.
    private static func meansNoWriter(_ fault: BluetoothError) -> Bool {
        fault.kind == .notSupported || fault.kind == .busy || fault.original?.name.hasSuffix(".UnknownMethod") == true
    }

    /// BlueZ refuses other writes while a socket is there; a round trip lets it see that the socket is closed.
    func releaseWriter(_ path: String) async {
        guard let writer = writers[path], let socket = writer.socket else { return }
        writers[path] = nil
        socket.close()
        await makeRoundTrip()
    }

    func closeWriters(of id: PeripheralID) {
        for (path, writer) in writers where writer.peripheral == id {
            writer.socket?.close()
            writers[path] = nil
        }
    }

    /// Closes all; true when there was a socket among them.
    func closeWriters() -> Bool {
        let sockets = writers.values.compactMap(\.socket)
        for socket in sockets { socket.close() }
        writers = [:]
        return !sockets.isEmpty
    }
}

/// How write commands to one characteristic go.
struct CommandWriter {
    let peripheral: PeripheralID
    /// `nil` when they go by calls.
    let socket: WriteSocket?
}
