import GattherdSync

// Which peripherals there are.
extension Central {
    /// The peripheral with that address on the adapter that is used; nothing needs to be known of it.
    ///
    /// `nil` without an adapter.
    public func peripheral(_ address: BluetoothAddress) -> Peripheral? {
        adapter.map { Peripheral(PeripheralID(adapter: $0.address, address: address), of: self) }
    }

    /// The peripheral with that identity, which may be another adapter's; nothing needs to be known of it.
    public func peripheral(_ id: PeripheralID) -> Peripheral { Peripheral(id, of: self) }

    /// Those of `addresses` that the platform knows: seen by a scan a moment ago, connected, or paired.
    public func retrievePeripherals(_ addresses: [BluetoothAddress]) -> [Peripheral] {
        guard let adapter else { return [] }
        return registry.withLock { registry in
            addresses.compactMap { registry.peripherals[PeripheralID(adapter: adapter.address, address: $0)]?.id }
        }.map { Peripheral($0, of: self) }
    }

    /// Those with a link, whoever on this machine made it, that have one of `services`; all when empty.
    ///
    /// To use one that is not ``ConnectionState/ready``, connect to it: that adopts the link.
    public func connectedPeripherals(services: [BluetoothUUID] = []) -> [Peripheral] {
        guard let adapter else { return [] }
        let statuses = registry.withLock { registry in
            registry.peripherals.values.filter { status in
                status.isConnected && status.id.adapter == adapter.address
                    && (services.isEmpty || services.contains { status.services.contains($0) })
            }
        }
        return statuses.map(\.id).sorted { $0.address < $1.address }.map { Peripheral($0, of: self) }
    }

    /// Asks the platform to forget a peripheral, with its bond and its cached GATT table; it is disconnected first.
    public func forget(_ peripheral: Peripheral) async throws {
        try await awaitRun()
        try await disconnect(peripheral)
        try await backend.forget(peripheral.id)
    }

    /// All peripherals that the platform knows, by address, bonded or not; see ``Bond``.
    public func bonds() async throws -> [Bond] {
        try await awaitRun()
        return try await backend.bonds()
    }

    /// Lets `delegate` answer peripherals that want to pair, from now on; without one nobody does.
    public func answerPairing(with delegate: any PairingDelegate) async {
        await backend.answerPairing(with: delegate)
    }

    // MARK: - What is known of one

    func status(_ id: PeripheralID) -> PeripheralStatus? { registry.withLock { $0.peripherals[id] } }

    func lastSeen(_ id: PeripheralID) -> ContinuousClock.Instant? { registry.withLock { $0.lastSeen[id] } }

    func link(_ id: PeripheralID) -> Link? { registry.withLock { $0.links[id] } }

    /// Does something with the peripheral's link, which is made when nobody has asked for it before.
    ///
    /// It is not forgotten before that is done.
    func withLink<Value: Sendable>(_ id: PeripheralID, _ body: (Link) -> Value) -> Value {
        registry.withLock { registry in
            let link = registry.links[id] ?? Link(id, isClosed: registry.isClosed)
            registry.links[id] = link
            return body(link)
        }
    }
}
