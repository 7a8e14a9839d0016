import GattherdSync

// The states of connections.
extension Central {
    /// Each change of the connection of any peripheral, from now on.
    ///
    /// For a complete picture start to listen, then read ``connectionStates``.
    public func connectionStateChanges() -> BufferedSequence<ConnectionStateChange> {
        connectionChanges.listen(.bufferingNewest(1024))
    }

    /// The connection states of all peripherals that were requested and that the platform still knows.
    public var connectionStates: [Peripheral: ConnectionState] {
        let links = registry.withLock { $0.links }
        return Dictionary(
            links.map { (Peripheral($0.key, of: self), $0.value.connection) },
            uniquingKeysWith: { $1 }
        )
    }
}

extension Peripheral {
    /// The current state of the connection.
    public var connectionState: ConnectionState { central.link(id)?.connection ?? .disconnected(nil) }

    /// Each change of its connection, from now on.
    public func connectionStateChanges() -> BufferedSequence<ConnectionStateChange> {
        central.connectionChanges.listen(.bufferingNewest(256)) { [id] in $0.peripheral.id == id }
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
