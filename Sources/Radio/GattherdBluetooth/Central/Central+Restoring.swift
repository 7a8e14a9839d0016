import GattherdSync

/// The result of ``Central/restore(from:autoconnect:)``.
public struct Restoration: Sendable {
    /// The peripherals whose links were adopted and that are ready, by address.
    public let adopted: [Peripheral]
    /// The peripherals without a link that the central connects again, by address.
    public let reconnecting: [Peripheral]
    /// The peripherals without a link that the policy does not reconnect, by address.
    public let lost: [Peripheral]
    /// The scans of the other run; each begins with its loop, without a time limit.
    public let scans: [Scan]
}

// Links that outlive the program: bluetoothd keeps them when it ends.
extension Central {
    /// The current links, subscriptions and scans, for ``restore(from:autoconnect:)`` in another run.
    ///
    /// The links survive only if this run ends with ``Configuration/keepsLinks``, or is killed.
    public var snapshot: CentralSnapshot {
        let (links, scanners) = registry.withLock { registry in
            (
                registry.links.sorted { $0.key.address < $1.key.address },
                registry.scanners.sorted
            )
        }
        return CentralSnapshot(
            peripherals: links.map { CentralSnapshot.Entry($1) },
            scans: scanners.filter { !$0.isInternal }.map { scanner in
                CentralSnapshot.ScanEntry(filter: scanner.filter, allowsDuplicates: scanner.allowsDuplicates)
            }
        )
    }

    /// Continues another run: its links, subscriptions and scans.
    ///
    /// A link that the platform still holds is adopted. If a link is gone, the policy is asked about a first attempt
    /// with the reason ``DisconnectReason/unknown``. If a link could not be adopted, the policy gets the reason and the
    /// error of that failure. The central then connects the peripheral as soon as it can, as
    /// ``keepConnected(_:autoconnect:)`` does. Peripherals that the other run was reconnecting are treated the same.
    ///
    /// Connection tasks run as after any connect. Subscriptions are restored on each link until
    /// ``disconnect(_:timeout:)`` or ``Peripheral/setNotifyValue(_:for:timeout:)-(_,CharacteristicID,_)``. The values
    /// arrive in ``Peripheral/valueUpdates(buffering:)`` and
    /// ``Peripheral/lastingNotifications(of:from:buffering:)``: start listening first.
    ///
    /// - Parameters:
    ///   - snapshot: The links, subscriptions and scans of the other run.
    ///   - autoconnect: The policy for links that are gone or lost later; ``Configuration/autoconnect`` when `nil`.
    /// - Returns: The outcome of each peripheral, and the scans.
    /// - Throws: As ``waitUntilReady(timeout:)``, also if the central is closed meanwhile. With `cancelled`,
    ///   peripherals that were restored before stay so.
    public func restore(
        from snapshot: CentralSnapshot,
        autoconnect: Autoconnect? = nil
    ) async throws -> Restoration {
        try await waitUntilReady()
        let policy = autoconnect ?? configuration.autoconnect
        let entries = snapshot.peripherals.filter { $0.wasConnected || $0.wasReconnecting }
        let outcomes = await withTaskGroup(of: (Peripheral, Outcome).self) { group in
            for entry in entries { group.addTask { await self.restore(entry, policy) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        guard !Task.isCancelled else { throw BluetoothError(.cancelled, "cancelled").during(.connect) }
        guard !isClosed else { throw unreadiness.during(.connect) }
        func all(_ outcome: Outcome) -> [Peripheral] {
            outcomes.filter { $0.1 == outcome }.map(\.0).sorted { $0.address < $1.address }
        }
        return Restoration(
            adopted: all(.adopted),
            reconnecting: all(.reconnecting),
            lost: all(.lost),
            scans: snapshot.scans.map { scan($0.filter, allowDuplicates: $0.allowsDuplicates) }
        )
    }

    private enum Outcome {
        case adopted
        case reconnecting
        case lost
    }

    private func restore(_ entry: CentralSnapshot.Entry, _ policy: Autoconnect) async -> (Peripheral, Outcome) {
        let peripheral = Peripheral(entry.id, of: self)
        keepNotifying(entry.notifying, of: entry.id)
        guard let (reason, error) = await adopt(peripheral, policy) else { return (peripheral, .adopted) }
        guard !Task.isCancelled,
            policy.decide(.init(peripheral: peripheral, reason: reason, error: error, number: 1))
        else {
            _ = link(entry.id)?.lasting.removeKept { _ in true }
            return (peripheral, .lost)
        }
        keepConnected(peripheral, autoconnect: policy)
        return (peripheral, .reconnecting)
    }

    /// Adopts the platform's link; returns `nil` if it is ready, else the reason and the error for the policy.
    private func adopt(
        _ peripheral: Peripheral,
        _ policy: Autoconnect
    ) async -> (reason: DisconnectReason, error: BluetoothError?)? {
        let unknown = DisconnectReason.unknown
        guard await backend.status(of: peripheral.id)?.isConnected == true else {
            return (unknown, unknown.error(of: peripheral.address))
        }
        do {
            try await connect(peripheral, autoconnect: policy)
            return nil
        } catch {
            return (peripheral.connectionState.reason ?? unknown, error as? BluetoothError)
        }
    }
}

extension CentralSnapshot.Entry {
    fileprivate init(_ link: Link) {
        let (table, active) = link.state.withLock { state in
            (
                state.table?.flatMap(\.remote.characteristics),
                state.subscriptions.values.map(\.characteristic).sorted { $0.handle < $1.handle }
            )
        }
        let lasting = link.lasting.characteristics.filter { id in !active.contains(where: id.matches) }
        id = link.id
        wasConnected = link.connection.isConnected
        wasReconnecting = link.state.withLock { $0.reconnecter != nil }
        let stored = (active.map(CharacteristicID.init) + lasting).map { $0.stored(among: table ?? active) }
        notifying = Set(stored).sorted { ($0.description, $0.handle ?? "") < ($1.description, $1.handle ?? "") }
    }
}

extension CharacteristicID {
    /// The identifier without the platform's handle, if its UUIDs alone find the same characteristic.
    ///
    /// Handles change with the GATT table; UUIDs stay valid.
    fileprivate func stored(among characteristics: [RemoteCharacteristic]) -> CharacteristicID {
        guard handle != nil, let service else { return self }
        let plain = CharacteristicID(uuid, in: service)
        return characteristics.first(where: plain.matches)?.handle == handle ? plain : self
    }
}
