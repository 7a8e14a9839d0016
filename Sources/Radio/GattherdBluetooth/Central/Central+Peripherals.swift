import GattherdSync

// The known peripherals.
extension Central {
    /// Returns the peripheral with that address on the used adapter; the platform need not know it.
    ///
    /// Returns `nil` without an adapter.
    public func peripheral(_ address: BluetoothAddress) -> Peripheral? {
        adapter.map { Peripheral(PeripheralID(adapter: $0.address, address: address), of: self) }
    }

    /// Returns the peripheral with that identity, on any adapter; the platform need not know it.
    public func peripheral(_ id: PeripheralID) -> Peripheral { Peripheral(id, of: self) }

    /// Returns the peripherals of `addresses` that the platform knows: seen recently, connected, or paired.
    public func retrievePeripherals(_ addresses: [BluetoothAddress]) -> [Peripheral] {
        guard let adapter else { return [] }
        return registry.withLock { registry in
            addresses.compactMap { registry.peripherals[PeripheralID(adapter: adapter.address, address: $0)]?.id }
        }.map { Peripheral($0, of: self) }
    }

    /// Returns the peripherals with a link of any program that have one of `services`; all if empty.
    ///
    /// Connect to a peripheral that is not ``ConnectionState/ready`` to adopt its link.
    public func connectedPeripherals(services: [BluetoothUUID] = []) -> [Peripheral] {
        guard let adapter else { return [] }
        let statuses = registry.withLock { registry in
            registry.peripherals.all.filter { status in
                status.isConnected && status.id.adapter == adapter.address
                    && (services.isEmpty || services.contains { status.services.contains($0) })
            }
        }
        return statuses.map(\.id).sorted { $0.address < $1.address }.map { Peripheral($0, of: self) }
    }

    /// Disconnects a peripheral and removes it from the platform, with its bond and its cached GATT table.
    ///
    /// - Throws: As ``disconnect(_:timeout:)``; the platform's error.
    public func forget(_ peripheral: Peripheral) async throws {
        do throws(BluetoothError) { try await awaitRun() } catch { throw error.during(.forget) }
        try await disconnect(peripheral)
        try await OperationLog(log, peripheral.address).record(.forget) { () throws(BluetoothError) in
            do throws(BluetoothError) {
                try await backend.forget(peripheral.id)
            } catch {
                throw error.during(.forget, of: "\(peripheral.address)")
            }
        }
    }

    /// All peripherals that the platform knows, by address, bonded or not; see ``Bond``.
    ///
    /// - Throws: The platform's error.
    public func bonds() async throws -> [Bond] {
        try await OperationLog(log).record(.listBonds) { () throws(BluetoothError) in
            try await awaitRun()
            return try await backend.bonds()
        }
    }

    /// Responds to pairing requests through `delegate` from now on.
    public func answerPairing(with delegate: any PairingDelegate) async {
        await backend.answerPairing(with: delegate)
    }

    // MARK: - One peripheral

    func status(_ id: PeripheralID) -> PeripheralStatus? { registry.withLock { $0.peripherals[id] } }

    func lastSeen(_ id: PeripheralID) -> ContinuousClock.Instant? { registry.withLock { $0.peripherals.lastSeen(id) } }

    func link(_ id: PeripheralID) -> Link? { registry.withLock { $0.links[id] } }

    /// Runs `body` with the peripheral's link object, which is created if necessary.
    ///
    /// The object is not removed meanwhile.
    func withLink<Value: Sendable>(_ id: PeripheralID, _ body: (Link) -> Value) -> Value {
        // Links are released without the lock.
        let (value, _) = registry.withLock { registry -> (Value, [Link]) in
            if let link = registry.links[id] { return (body(link), []) }
            let link = Link(id, log: log, isClosed: registry.isClosed)
            return (body(link), registry.addLink(link))
        }
        return value
    }
}
