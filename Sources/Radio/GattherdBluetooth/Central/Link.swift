import GattherdSync

/// The state of the connection to one peripheral.
final class Link: Sendable {
    struct State: Sendable {
        var connection = ConnectionState.disconnected(nil)
        /// The number of the platform's link that this central uses; `nil` without one.
        var number: UInt64?
        /// True between a link's end and the event with its reason.
        var isEnding = false
        var readySince: ContinuousClock.Instant?
        /// The GATT table, once it was requested.
        var table: [Service]?
        var subscriptions: [String: SharedSubscription] = [:]
        /// The number of write commands that wait for room.
        var waitingCommands = 0
        var autoconnect = Autoconnect.never
        /// The number of callers that are connecting it.
        var claims = 0
        /// False after a requested disconnect.
        var isWanted = false
        /// The number of the task that reconnects it; `nil` for none.
        var reconnecter: UInt64?
        /// True if the reconnecting task continues after the last attempt.
        var willTryAgain = false
        /// The number of attempts to reconnect since the last stable link.
        var attempts = 0
        /// The next attempt to reconnect; `nil` if none is scheduled.
        var reconnection: Reconnection?
    }

    let id: PeripheralID
    /// The queue of GATT operations.
    let operations: AsyncMutex
    /// The queue of connecting and disconnecting.
    let connecting: AsyncMutex
    /// The queue of reconnecting.
    let reconnecting: AsyncMutex
    let values = Broadcast<CharacteristicValue>()
    let serviceChanges = Broadcast<Peripheral>()
    let names = Broadcast<String?>()
    let state = Locked(State())
    /// Held while a change is published, so that changes stay in order; the state is not locked meanwhile.
    private let telling = Locked(())

    /// `isClosed` is true for a link of a closed central, which publishes nothing.
    init(_ id: PeripheralID, isClosed: Bool) {
        self.id = id
        operations = AsyncMutex("\(id.address)")
        connecting = AsyncMutex("\(id.address)")
        reconnecting = AsyncMutex("\(id.address)")
        if isClosed { close() }
    }

    var connection: ConnectionState { state.withLock { $0.connection } }

    /// True if the object can be removed without losing state.
    var isForgettable: Bool {
        let isIdle = state.withLock { state in
            guard case .disconnected = state.connection, state.claims == 0 else { return false }
            return state.reconnecter == nil && !state.isEnding
        }
        return isIdle && !values.hasListeners && !serviceChanges.hasListeners && !names.hasListeners
    }

    // MARK: - States

    /// Changes the state and publishes the change if `condition` holds.
    ///
    /// - Returns: True if the state changed.
    @discardableResult
    func move(
        to connection: ConnectionState,
        _ central: Central,
        willReconnect: Bool = false,
        if condition: (inout State) -> Bool = { _ in true }
    ) -> Bool {
        telling.withLock { _ in
            let (isMoved, previous) = state.withLock { state in
                guard condition(&state) else { return (false, state.connection) }
                defer { state.connection = connection }
                return (true, state.connection)
            }
            guard isMoved, previous != connection else { return isMoved }
            central.connectionChanges.send(
                ConnectionStateChange(
                    peripheral: Peripheral(id, of: central),
                    previous: previous,
                    state: connection,
                    willReconnect: willReconnect
                )
            )
            return true
        }
    }

    /// Handles a status of the platform: our link has ended if the status has a newer one, or ours is down.
    func follow(_ status: PeripheralStatus, _ central: Central) {
        let isOver = state.withLock { state in
            guard let number = state.number else { return false }
            return status.link > number || (status.link == number && !status.isConnected)
        }
        if isOver { drop(upTo: status.link, central) }
    }

    /// Ends our link if its number is at most the given one.
    func drop(upTo newest: UInt64, _ central: Central) {
        let isDropped = state.withLock { state in
            guard let number = state.number, number <= newest else { return false }
            state.number = nil
            state.isEnding = state.connection.isConnected
            return true
        }
        guard isDropped else { return }
        let lost = BluetoothError(.notConnected, "\(id.address): the link was lost")
        endUse(lost)
        move(to: .disconnected(.requested), central) { $0.connection == .disconnecting }
    }

    /// Ends operations and subscriptions of a link that has ended or will end.
    func endUse(_ error: BluetoothError?) {
        let subscriptions = state.withLock { state in
            state.table = nil
            defer { state.subscriptions = [:] }
            return Array(state.subscriptions.values)
        }
        operations.stopAll(error ?? BluetoothError(.cancelled, "\(id.address) was disconnected on request"))
        for subscription in subscriptions { subscription.finish(error) }
    }

    /// Ends waiting operations and listeners; the link itself may stay up.
    func close() {
        operations.stopAll(BluetoothError(.cancelled, "the central is closed"))
        for subscription in state.withLock({ Array($0.subscriptions.values) }) { subscription.finish(nil) }
        values.finish()
        serviceChanges.finish()
        names.finish()
    }

    // MARK: - GATT changes

    func servicesChanged(_ peripheral: Peripheral) {
        state.withLock { $0.table = nil }
        serviceChanges.send(peripheral)
    }

    func subscriptionEnded(_ token: SubscriptionToken) {
        let subscription = state.withLock { state -> SharedSubscription? in
            guard let entry = state.subscriptions.first(where: { $0.value.token == token }) else { return nil }
            return state.subscriptions.removeValue(forKey: entry.key)
        }
        subscription?.finish(BluetoothError(.unknownAttribute, "\(id.address) ended the subscription"))
    }
}
