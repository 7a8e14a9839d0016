import GattherdSync

// Reading and writing; one operation of a peripheral at a time, in the order of the calls.
extension Peripheral {
    /// Reads a value.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - characteristic: The characteristic, for example by its UUID `0x2A19`.
    ///   - timeout: The limit from the call on; ``Central/Configuration/operationTimeout`` when `nil`.
    /// - Returns: The value.
    /// - Throws: `notConnected`, `unknownAttribute`, `notSupported`, `authentication`, `timedOut`, `cancelled`, `att`;
    ///   `invalidValue` when the bytes are no `Value`.
    public func read<Value: Readable>(
        _ type: Value.Type = Value.self,
        from characteristic: CharacteristicID,
        timeout: Duration? = nil
    ) async throws -> Value {
        let octets = try await perform(.read, on: characteristic, within: timeout) {
            (remote, link) throws(BluetoothError) in
            try remote.check(.read, "cannot be read")
            let octets = try await central.backend.read(remote)
            link.log.bytes(.read, characteristic, octets)
            return octets
        }
        do throws(BluetoothError) {
            return try Value(value: octets)
        } catch {
            throw error.during(.read, of: "\(characteristic) of \(address)")
        }
    }

    /// Writes a value; without response it waits until there is room for it.
    ///
    /// - Parameters:
    ///   - value: The value; no longer than ``maximumWriteValueLength(for:)``.
    ///   - characteristic: The characteristic, for example by its UUID.
    ///   - type: The kind of write; with response by default.
    ///   - timeout: The limit from the call on; ``Central/Configuration/operationTimeout`` when `nil`.
    /// - Throws: As ``read(_:from:timeout:)-(_,CharacteristicID,_)``, and `invalidLength`, `notPermitted`.
    public func write(
        _ value: some Writable,
        to characteristic: CharacteristicID,
        type: WriteType = .withResponse,
        timeout: Duration? = nil
    ) async throws {
        let octets = try value.value(for: characteristic, of: self)
        switch type {
        case .withResponse:
            try await perform(.write, on: characteristic, within: timeout) { (remote, link) throws(BluetoothError) in
                try remote.check(.write, "cannot be written with response")
                link.log.bytes(.write, characteristic, octets)
                try await central.backend.write(octets, to: remote, withResponse: true)
            }
        case .withoutResponse: try await command(octets, characteristic, timeout)
        }
    }

    private func command(
        _ octets: [UInt8],
        _ characteristic: CharacteristicID,
        _ timeout: Duration?
    ) async throws(BluetoothError) {
        let link = central.link(id)
        link?.state.withLock { $0.waitingCommands += 1 }
        defer { link?.state.withLock { $0.waitingCommands -= 1 } }
        try await perform(.write, on: characteristic, within: timeout) { (remote, link) throws(BluetoothError) in
            try remote.check(.writeWithoutResponse, "cannot be written without response")
            link.log.bytes(.write, characteristic, octets)
            try await central.backend.writeWithoutResponse(octets, to: remote)
        }
    }

    /// True when a write without response would not have to wait for an earlier one.
    public var canSendWriteWithoutResponse: Bool {
        central.link(id)?.state.withLock { $0.number != nil && $0.waitingCommands == 0 } ?? false
    }

    /// The maximum size of a value in bytes.
    ///
    /// With response 512; without response the payload of one packet, but at most 512.
    ///
    /// - Throws: `notConnected`.
    public func maximumWriteValueLength(for type: WriteType) async throws -> Int {
        switch type {
        case .withResponse: 512
        case .withoutResponse: min(try await mtu() - 3, 512)
        }
    }

    /// The ATT MTU of the link in bytes; 23, the minimum, while the platform does not report it.
    ///
    /// - Throws: `notConnected`.
    public func mtu() async throws -> Int {
        // The MTU is agreed on before the services are known.
        try await discoverServices()
        return try await central.backend.mtu(of: id) ?? 23
    }

    /// The current signal strength in dBm.
    ///
    /// - Throws: `notSupported` if the platform does not know; BlueZ does while a scan receives the peripheral.
    public func readRSSI() async throws -> Int {
        try await OperationLog(central.log, address).record(.readRSSI) { () throws(BluetoothError) in
            try await central.awaitRun()
            return try await central.backend.rssi(of: id)
        }
    }

    /// Pairs; being paired already is success.
    ///
    /// Pairing waits for connection tasks, but not for other operations, because bluetoothd may delay these until the
    /// pairing ends.
    ///
    /// Connects first when it is not connected, as ``connect(timeout:autoconnect:)`` does, and leaves it connected.
    ///
    /// - Parameters:
    ///   - method: The proof that is required of the peripheral.
    ///   - timeout: The limit from the call on; connecting is part of it.
    /// - Throws: `authentication` if either side refuses; as ``connect(timeout:autoconnect:)``.
    public func pair(
        by method: PairingMethod = .justWorks,
        timeout: Duration = .seconds(60)
    ) async throws {
        let deadline = ContinuousClock.now.advanced(by: timeout.settable)
        if !isPaired, !hasLink { try await connect(timeout: timeout) }
        try await OperationLog(central.log, address).record(.pair) { () throws(BluetoothError) in
            try await central.awaitRun()
            try await waitForConnectionTasks(until: deadline)
            do throws(BluetoothError) {
                try await central.backend.pair(id, by: method, timeout: max(.zero, deadline - .now))
            } catch {
                throw error.unlessCancelled(.authentication)
            }
            // The platform's event may not have arrived yet.
            central.registry.withLock { $0.peripherals.markPaired(id) }
            central.statusUpdates.send(id)
        }
    }

    /// Waits while connection tasks run, unless the caller is one of them.
    private func waitForConnectionTasks(until deadline: ContinuousClock.Instant) async throws(BluetoothError) {
        guard let link = central.link(id), link.connection == .connected, !ConnectionTaskRun.isCurrent(of: link) else {
            return
        }
        let changes = connectionStateChanges()
        let late = BluetoothError(.timedOut, "\(address): the connection tasks did not end in time")
        let next = try await withDeadline(deadline, late) { () throws(BluetoothError) in
            await changes.first { $0.state != .connected }?.state
        }
        guard let next else { throw BluetoothError(.cancelled, "cancelled") }
        guard next == .ready else { throw BluetoothError(.notConnected, "\(address) is not connected") }
    }
}

extension Peripheral {
    /// True while this program has a link.
    private var hasLink: Bool { central.link(id)?.state.withLock { $0.number != nil } ?? false }
}

// Descriptors.
extension Peripheral {
    /// Reads a descriptor.
    ///
    /// - Throws: As ``read(_:from:timeout:)-(_,CharacteristicID,_)``.
    public func read<Value: Readable>(
        _ type: Value.Type = Value.self,
        from descriptor: Descriptor,
        timeout: Duration? = nil
    ) async throws -> Value {
        let link = try usableLink(.read)
        let limit = timeout ?? central.configuration.operationTimeout
        return try await link.operate(.read, within: limit, on: CharacteristicID(descriptor.uuid)) {
            () throws(BluetoothError) in
            let octets = try await central.backend.read(descriptor.remote)
            link.log.bytes(.read, CharacteristicID(descriptor.uuid), octets)
            return try Value(value: octets)
        }
    }

    /// Writes a descriptor, except the one that enables notifications, which the platform writes.
    ///
    /// - Throws: As ``write(_:to:type:timeout:)-(_,CharacteristicID,_,_)``.
    public func write(
        _ value: some Writable,
        to descriptor: Descriptor,
        timeout: Duration? = nil
    ) async throws {
        let octets = try value.value(for: CharacteristicID(descriptor.uuid), of: self)
        let link = try usableLink(.write)
        let limit = timeout ?? central.configuration.operationTimeout
        try await link.operate(.write, within: limit, on: CharacteristicID(descriptor.uuid)) {
            () throws(BluetoothError) in
            link.log.bytes(.write, CharacteristicID(descriptor.uuid), octets)
            try await central.backend.write(octets, to: descriptor.remote)
        }
    }
}
