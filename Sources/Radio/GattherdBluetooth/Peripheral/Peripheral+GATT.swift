import GattherdSync

// Services, characteristics and descriptors of a peripheral.
extension Peripheral {
    /// Discovers the services with these UUIDs, with their contents; all services if empty.
    ///
    /// The platform is asked once for each link, and again after a change of the services.
    ///
    /// - Throws: `notConnected`, `timedOut`, `cancelled`.
    @discardableResult
    public func discoverServices(
        _ uuids: [BluetoothUUID] = [],
        timeout: Duration? = nil
    ) async throws -> [Service] {
        let link = try usableLink(.discover)
        let limit = timeout ?? central.configuration.discoveryTimeout
        let all = try await link.operate(.discover, within: limit) { () throws(BluetoothError) in
            try await self.table(of: link, within: limit)
        }
        return uuids.isEmpty ? all : all.filter { uuids.contains($0.uuid) }
    }

    /// Discovers all services, characteristics and descriptors.
    @discardableResult
    public func discoverAll(timeout: Duration? = nil) async throws -> [Service] {
        try await discoverServices(timeout: timeout)
    }

    /// Returns the characteristics of a service with these UUIDs; all if empty.
    ///
    /// The service has them too; this function checks that it still exists.
    ///
    /// - Throws: `unknownAttribute` if the service does not exist any more; as ``discoverServices(_:timeout:)``.
    @discardableResult
    public func discoverCharacteristics(
        _ uuids: [BluetoothUUID] = [],
        for service: Service
    ) async throws -> [Characteristic] {
        let all = try await current(service).characteristics
        return uuids.isEmpty ? all : all.filter { uuids.contains($0.uuid) }
    }

    /// Returns the services with these UUIDs that a service includes; all if empty.
    ///
    /// - Throws: `unknownAttribute` if that service is gone; as ``discoverServices(_:timeout:)``.
    @discardableResult
    public func discoverIncludedServices(
        _ uuids: [BluetoothUUID] = [],
        for service: Service
    ) async throws -> [Service] {
        let including = try await current(service)
        return try await discoverServices(uuids).filter { including.includes($0) }
    }

    /// Returns the descriptors of a characteristic.
    ///
    /// The characteristic has them too; this function checks that it still exists.
    ///
    /// - Throws: `unknownAttribute` if the characteristic is gone; as ``discoverServices(_:timeout:)``.
    @discardableResult
    public func discoverDescriptors(for characteristic: Characteristic) async throws -> [Descriptor] {
        try await self.characteristic(characteristic.id).descriptors
    }

    private func current(_ service: Service) async throws -> Service {
        guard let current = try await discoverServices().first(where: { $0.id == service.id }) else {
            throw BluetoothError(.unknownAttribute, "\(address) has no service \(service.uuid) any more").during(
                .discover
            )
        }
        return current
    }

    /// The services discovered on this link so far.
    public var services: [Service] { central.link(id)?.state.withLock { $0.table } ?? [] }

    /// Returns the characteristic with that identifier; discovers it if necessary.
    ///
    /// - Throws: `unknownAttribute` when there is none; as ``discoverServices(_:timeout:)``.
    public func characteristic(_ id: CharacteristicID) async throws -> Characteristic {
        for service in try await discoverServices() {
            if let found = service.characteristics.first(where: { id.matches($0.remote) }) { return found }
        }
        throw Self.missing(id, at: self).during(.discover)
    }

    /// Returns the changes of the peripheral's services from now on; each invalidates the discovered attributes.
    public func serviceChanges() -> BufferedSequence<Peripheral> {
        central.withLink(id) { $0.serviceChanges.listen(.bufferingNewest(16)) }
    }

    // MARK: - For operations

    /// - Throws: `notConnected` without a link of this central; `serviceUnavailable` if the central is closed.
    func usableLink(
        _ operation: BluetoothError.Operation,
        on subject: CharacteristicID? = nil
    ) throws(BluetoothError) -> Link {
        if !central.isClosed, let link = central.link(id), link.isUsable { return link }
        let error =
            central.isClosed ? central.unreadiness : BluetoothError(.notConnected, "\(address) is not connected")
        OperationLog(central.log, address).finished(operation, subject, since: .now, error)
        throw error.during(operation)
    }

    /// Returns the whole table; runs in its turn.
    func table(of link: Link, within timeout: Duration? = nil) async throws(BluetoothError) -> [Service] {
        let (table, number) = link.state.withLock { ($0.isTableOutdated ? nil : $0.table, $0.number) }
        if let table { return table }
        let limit = (timeout ?? central.configuration.discoveryTimeout).settable
        let services = try await central.backend.services(of: id, timeout: limit)
        let found = services.map(Service.init)
        link.state.withLock { state in
            // After the link's end, the table would stay for the next link.
            guard state.isUsable, state.number == number else { return }
            (state.table, state.isTableOutdated) = (found, false)
        }
        return found
    }

    /// Returns one characteristic of the table; runs in its turn.
    ///
    /// While the table changes, a characteristic that is there is used before the whole table is.
    func find(_ id: CharacteristicID, of link: Link) async throws(BluetoothError) -> RemoteCharacteristic {
        if let former = link.formerCharacteristic(id) {
            let limit = central.configuration.discoveryTimeout.settable
            let found = try await central.backend.successor(of: former, timeout: limit)
            if let found, id.matches(found) { return found }
        }
        for service in try await table(of: link) {
            if let found = service.remote.characteristics.first(where: id.matches) { return found }
        }
        throw Self.missing(id, at: self)
    }

    private static func missing(_ id: CharacteristicID, at peripheral: Peripheral) -> BluetoothError {
        BluetoothError(.unknownAttribute, "\(peripheral.address) has no characteristic \(id)")
    }

    /// Runs `body` in its turn, with the characteristic.
    func perform<Value: Sendable>(
        _ operation: BluetoothError.Operation,
        on id: CharacteristicID,
        within timeout: Duration?,
        _ body: @escaping @Sendable (RemoteCharacteristic, Link) async throws(BluetoothError) -> Value
    ) async throws(BluetoothError) -> Value {
        let link = try usableLink(operation, on: id)
        let limit = timeout ?? central.configuration.operationTimeout
        return try await link.operate(operation, within: limit, on: id) { () throws(BluetoothError) in
            try await body(try await self.find(id, of: link), link)
        }
    }
}

extension RemoteCharacteristic {
    /// - Throws: `notSupported` if the characteristic has none of these properties. Without reported properties all are
    ///   accepted.
    func check(_ wanted: CharacteristicProperties, _ what: String) throws(BluetoothError) {
        guard properties.isEmpty || !properties.isDisjoint(with: wanted) else {
            throw BluetoothError(.notSupported, "\(uuid) \(what)")
        }
    }
}
