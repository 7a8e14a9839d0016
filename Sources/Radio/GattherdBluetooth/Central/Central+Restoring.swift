import GattherdSync

// Links that outlive the program: bluetoothd keeps them when it ends.
extension Central {
    /// The current links and subscriptions, for ``restore(from:autoconnect:)`` in another run.
    ///
    /// The links survive only if this run ends with ``Configuration/keepsLinks``, or is killed.
    public var snapshot: CentralSnapshot {
        let links = registry.withLock { $0.links }.sorted { $0.key.address < $1.key.address }
        return CentralSnapshot(
            peripherals: links.map { id, link in
                CentralSnapshot.Entry(
                    id: id,
                    wasConnected: link.connection.isConnected,
                    notifying: Peripheral(id, of: self).notifyingCharacteristics
                )
            }
        )
    }

    /// Continues another run: adopts links that the platform still holds, with their subscriptions.
    ///
    /// Connection tasks run as after any connect. ``Peripheral/valueUpdates(buffering:)`` delivers the values: start
    /// listening first. A peripheral that cannot be adopted is left unchanged.
    ///
    /// - Parameters:
    ///   - snapshot: The links and subscriptions of the other run.
    ///   - autoconnect: The policy after the loss of an adopted link; ``Configuration/autoconnect`` when `nil`.
    /// - Returns: The peripherals that are ready, by address.
    /// - Throws: As ``waitUntilReady(timeout:)``.
    public func restore(
        from snapshot: CentralSnapshot,
        autoconnect: Autoconnect? = nil
    ) async throws -> [Peripheral] {
        try await waitUntilReady()
        let restored = await withTaskGroup(of: Peripheral?.self) { group in
            for entry in snapshot.peripherals where entry.wasConnected {
                group.addTask { await self.restore(entry, autoconnect) }
            }
            return await group.reduce(into: [Peripheral]()) { if let restored = $1 { $0.append(restored) } }
        }
        return restored.sorted { $0.address < $1.address }
    }

    private func restore(_ entry: CentralSnapshot.Entry, _ autoconnect: Autoconnect?) async -> Peripheral? {
        guard await backend.status(of: entry.id)?.isConnected == true else { return nil }
        let peripheral = Peripheral(entry.id, of: self)
        do {
            try await connect(peripheral, autoconnect: autoconnect)
            for characteristic in entry.notifying { try await peripheral.setNotifyValue(true, for: characteristic) }
            return peripheral
        } catch {
            return nil
        }
    }
}
