import GattherdSync

// The states of connections.
extension Central {
    /// The current state of each peripheral in ``connectionStates``, then each change of any peripheral.
    ///
    /// The current states have ``ConnectionStateChange/isInitial`` set. The sequence buffers 1024 changes; slow
    /// consumers miss the oldest.
    public func connectionStateChanges() -> BufferedSequence<ConnectionStateChange> {
        publishing.withLock { _ in
            let present = usedLinks.map { $0.currentState(self) }
            return connectionChanges.listen(.bufferingNewest(1024), after: present)
        }
    }

    /// The peripherals whose name, bond or signal strength has changed; `nil` for all, also at first.
    ///
    /// The sequence buffers 1024 changes; slow consumers miss the oldest.
    func statusChanges() -> BufferedSequence<PeripheralID?> {
        statusUpdates.listen(.bufferingNewest(1024), after: [nil])
    }

    /// The connection states of all peripherals that were requested and that the platform still knows.
    public var connectionStates: [Peripheral: ConnectionState] {
        let states = usedLinks.map { (Peripheral($0.id, of: self), $0.connection) }
        return Dictionary(states, uniquingKeysWith: { $1 })
    }

    /// The links that were requested, by address.
    private var usedLinks: [Link] {
        let links = registry.withLock { Array($0.links.values) }
        return links.filter { $0.connection != .disconnected(nil) }.sorted { $0.id.address < $1.id.address }
    }
}

extension Peripheral {
    /// The current state of the connection.
    public var connectionState: ConnectionState { central.link(id)?.connection ?? .disconnected(nil) }

    /// The error of the last link that was lost or attempt that failed.
    ///
    /// `nil` once the peripheral is ready or was disconnected on request. The error stays while the central reconnects.
    public var connectionError: BluetoothError? { central.link(id)?.state.withLock { $0.lastError } }

    /// The current state of its connection, then each change.
    ///
    /// The current state has ``ConnectionStateChange/isInitial`` set. The sequence buffers 256 changes; slow consumers
    /// miss the oldest.
    public func connectionStateChanges() -> BufferedSequence<ConnectionStateChange> {
        central.publishing.withLock { _ in
            let link = central.withLink(id) { $0 }
            let present = link.currentState(central)
            return central.connectionChanges.listen(.bufferingNewest(256), after: [present]) { [id] in
                $0.peripheral.id == id
            }
        }
    }

    /// True while the central tries to reconnect the peripheral.
    public var isReconnecting: Bool { central.link(id)?.state.withLock { $0.reconnecter != nil } ?? false }

    /// The next attempt to reconnect; `nil` if none is scheduled.
    public var reconnection: Reconnection? { central.link(id)?.state.withLock { $0.reconnection } }

    /// Connects; see ``Central/connect(_:timeout:autoconnect:)-(Peripheral,_,_)``.
    public func connect(timeout: Duration? = nil, autoconnect: Autoconnect? = nil) async throws {
        try await central.connect(self, timeout: timeout, autoconnect: autoconnect)
    }

    /// Connects as soon as possible, and again after each loss; see ``Central/keepConnected(_:autoconnect:)``.
    public func keepConnected(autoconnect: Autoconnect = .whenUnexpected) {
        central.keepConnected(self, autoconnect: autoconnect)
    }

    /// Disconnects; see ``Central/disconnect(_:timeout:)``.
    public func disconnect(timeout: Duration? = nil) async throws {
        try await central.disconnect(self, timeout: timeout)
    }

    /// Adds a task that runs after each connect of this peripheral, before it is ready.
    @discardableResult
    public func addConnectionTask(
        _ task: @escaping @Sendable (Peripheral) async throws -> Void
    ) -> ConnectionTaskID {
        central.addConnectionTask(for: id, task)
    }

    /// Ends all waiting and running operations, including an attempt to connect, with `cancelled`.
    public func cancelAllOperations() {
        central.link(id)?.cancelAll()
    }
}
