public import GattherdBluetooth
import GattherdDBus

extension BlueZCentral {
    // MARK: - The table

    public func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        let deadline = SuspendingClock.now.advanced(by: timeout)
        let path = try devicePath(peripheral)
        _ = try? await refresh(path, within: timeout)
        try await wait(for: peripheral, until: deadline, "resolving its services") {
            () throws(BluetoothError) in
            try link(peripheral).isServicesResolved && !tableChanges.isChanging(peripheral) ? () : nil
        }
        activePeripherals.insert(peripheral)
        // BlueZ 5.66 may signal "resolved" before the last objects: a round trip brings those on their way.
        _ = try? await refresh(path, within: limits.operation)
        let table = try await table(of: peripheral, until: deadline)
        tableChanges.track(peripheral)
        let ignored = tree.ignoredAttributes(of: peripheral)
        if ignored > 0 { publish(.tableCut(peripheral, kept: AttributeTables.most, ignored: ignored)) }
        return table
    }

    public func services(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteService] {
        _ = try await characteristics(of: peripheral, timeout: timeout)
        return tree.services(of: peripheral)
    }

    /// The table; if it is still empty, its objects get a little time.
    private func table(
        of peripheral: PeripheralID,
        until deadline: SuspendingClock.Instant
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        let patience = min(deadline, SuspendingClock.now.advanced(by: Self.tablePatience))
        do throws(BluetoothError) {
            return try await wait(for: peripheral, until: patience, "its GATT table") {
                () throws(BluetoothError) in
                _ = try link(peripheral)
                let table = tree.table(of: peripheral)
                return table.isEmpty ? nil : table
            }
        } catch  where error.kind == .timedOut {
            return []
        }
    }

    /// The status of a connected peripheral.
    func link(_ id: PeripheralID) throws(BluetoothError) -> PeripheralStatus {
        let status = try status(id)
        guard status.isConnected else { throw BluetoothError(.notConnected, "\(id.address) is not connected") }
        return status
    }

    // MARK: - Values

    public func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        let path = try attributePath(characteristic)
        subscriptions.beginRead(path)
        do throws(DBusError) {
            let reply = try await call(
                path,
                BlueZ.characteristic,
                "ReadValue",
                [.properties([:])],
                onReply: { [weak self] outcome in
                    self?.assumeIsolated { $0.subscriptions.endRead(path, try? outcome.get().first?.octets) }
                }
            )
            return reply.first?.octets ?? []
        } catch {
            throw BluetoothError(error, missing: .unknownAttribute)
        }
    }

    public func write(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic,
        withResponse: Bool
    ) async throws(BluetoothError) {
        let path = try attributePath(characteristic)
        try checkLength(octets.count, path, withResponse)
        await releaseWriter(path)
        let options = DBusValue.properties(["type": .string(withResponse ? "request" : "command")])
        do throws(DBusError) {
            try await call(path, BlueZ.characteristic, "WriteValue", [.bytes(octets), options])
        } catch {
            throw BluetoothError(error, missing: .unknownAttribute)
        }
    }

    /// Refuses a command longer than one packet: BlueZ 5.66 would lose it.
    func checkLength(_ count: Int, _ path: String, _ withResponse: Bool) throws(BluetoothError) {
        guard !withResponse, let mtu = tree.attributes.characteristics[path]?.mtu, count > mtu - 3 else { return }
        throw BluetoothError(
            .invalidLength,
            "\(count) bytes do not fit into one write without response: the link takes \(mtu - 3)"
        )
    }

    /// - Throws: `unknownAttribute` if the characteristic is not, or no longer, there.
    func attributePath(_ characteristic: RemoteCharacteristic) throws(BluetoothError) -> String {
        _ = try link(characteristic.peripheral)
        guard tree.attributes.characteristics[characteristic.handle] != nil else {
            throw BluetoothError(.unknownAttribute, "\(characteristic.uuid) is no longer there")
        }
        return characteristic.handle
    }

    // MARK: - Descriptors and the link

    public func read(_ descriptor: RemoteDescriptor) async throws(BluetoothError) -> [UInt8] {
        let path = try descriptorPath(descriptor)
        do throws(DBusError) {
            return try await call(path, BlueZ.descriptor, "ReadValue", [.properties([:])]).first?.octets ?? []
        } catch {
            throw BluetoothError(error, missing: .unknownAttribute)
        }
    }

    public func write(_ octets: [UInt8], to descriptor: RemoteDescriptor) async throws(BluetoothError) {
        let path = try descriptorPath(descriptor)
        do throws(DBusError) {
            try await call(path, BlueZ.descriptor, "WriteValue", [.bytes(octets), .properties([:])])
        } catch {
            throw BluetoothError(error, missing: .unknownAttribute)
        }
    }

    private func descriptorPath(_ descriptor: RemoteDescriptor) throws(BluetoothError) -> String {
        _ = try attributePath(descriptor.characteristic)
        guard tree.attributes.descriptors[descriptor.handle] != nil else {
            throw BluetoothError(.unknownAttribute, "\(descriptor.uuid) is no longer there")
        }
        return descriptor.handle
    }

    public func status(of peripheral: PeripheralID) async -> PeripheralStatus? { tree.status(peripheral) }

    public func mtu(of peripheral: PeripheralID) async throws(BluetoothError) -> Int? {
        _ = try link(peripheral)
        return tree.mtu(of: peripheral)
    }

    public func rssi(of peripheral: PeripheralID) async throws(BluetoothError) -> Int {
        let path = try devicePath(peripheral)
        do throws(DBusError) {
            try await refresh(path, within: limits.operation)
        } catch {
            throw BluetoothError(error, missing: .unknownPeripheral)
        }
        guard let rssi = try status(peripheral).rssi else {
            throw BluetoothError(
                .notSupported,
                "BlueZ knows the signal strength only while a scan receives the peripheral"
            )
        }
        return rssi
    }
}
