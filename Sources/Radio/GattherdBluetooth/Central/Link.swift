import GattherdLog
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
        /// True if a subscription has ended since the table was read: the platform may be changing the table.
        var isTableOutdated = false
        /// The GATT table before the last change, whose UUIDs the next one has as a rule.
        var formerTable: [Service]?
        var subscriptions: [String: SharedSubscription] = [:]
        /// True if the central is closed: nothing would end a later subscription.
        var isClosed = false
        /// The number of write commands that wait for room.
        var waitingCommands = 0
        var autoconnect = Autoconnect.never
        /// The number of callers that are connecting it.
        var claims = 0
        /// False after a requested disconnect.
        var isWanted = false
        /// True if the central made the last attempt by itself.
        var isAutomatic = false
        /// The error of the last lost link or failed attempt, until the link is ready or disconnected on request.
        var lastError: BluetoothError?
        /// The number of the task that reconnects it; `nil` for none.
        var reconnecter: UInt64?
        /// True if the reconnecting task continues after the last attempt.
        var willTryAgain = false
        /// The number of attempts to reconnect since the last stable link.
        var attempts = 0
        /// The next attempt to reconnect; `nil` if none is scheduled.
        var reconnection: Reconnection?

        /// True while GATT operations may begin: the link is up, and is not being ended.
        var isUsable: Bool { number != nil && connection.isConnected && !isClosed }

        var isDisconnected: Bool {
            if case .disconnected = connection { true } else { false }
        }

        /// True if the central keeps the link or is connecting it, or the link is up.
        var isInUse: Bool { isWanted && (reconnecter != nil || !isDisconnected) }

        /// Adds a claim; `keeper` continues if the link was reconnecting.
        mutating func want(_ policy: Autoconnect, _ keeper: UInt64) {
            if reconnecter != nil { (reconnecter, willTryAgain) = (keeper, true) }
            (autoconnect, isWanted, attempts, reconnection) = (policy, true, 0, nil)
            claims += 1
        }

        /// Changes the connection state.
        mutating func move(to next: ConnectionState) {
            connection = next
            switch next {
            case .disconnected(_, let error): lastError = error
            case .ready: lastError = nil
            case .connecting, .connected, .disconnecting: break
            }
        }
    }

    let id: PeripheralID
    /// The queue of GATT operations, reserved for connection tasks while they run.
    let operations: AsyncMutex
    /// The queue of connecting and disconnecting.
    let connecting: AsyncMutex
    /// The queue of reconnecting.
    let reconnecting: AsyncMutex
    /// The listeners of characteristics over all links.
    let lasting = LastingListeners()
    let values = Broadcast<CharacteristicValue>()
    let serviceChanges = Broadcast<Peripheral>()
    let names = Broadcast<String?>()
    let state = Locked(State())

    let log: OperationLog

    /// `isClosed` is true for a link of a closed central, which publishes nothing.
    init(_ id: PeripheralID, log: Log, isClosed: Bool) {
        self.id = id
        self.log = OperationLog(log, id.address)
        operations = AsyncMutex("\(id.address)", log: self.log)
        connecting = AsyncMutex("\(id.address)", log: self.log)
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
        return isIdle && lasting.isEmpty && !values.hasListeners && !serviceChanges.hasListeners && !names.hasListeners
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
        // Held while the change is published, so that changes stay in order; the state is not locked meanwhile.
        let (isMoved, change) = central.publishing.withLock { _ -> (Bool, ConnectionStateChange?) in
            let (isMoved, previous, isAutomatic) = state.withLock { state in
                let previous = state.connection
                guard condition(&state) else { return (false, previous, false) }
                state.move(to: connection)
                return (true, previous, state.isAutomatic)
            }
            guard isMoved, previous != connection else { return (isMoved, nil) }
            let change = ConnectionStateChange(
                peripheral: Peripheral(id, of: central),
                previous: previous,
                state: connection,
                willReconnect: willReconnect,
                isAutomatic: isAutomatic,
                isInitial: false
            )
            central.connectionChanges.send(change)
            return (true, change)
        }
        if let change { central.log(.info, "connection changed", Self.fields(of: change)) }
        return isMoved
    }

    private static func fields(of change: ConnectionStateChange) -> [LogField] {
        [LogField("peripheral", change.peripheral.address), LogField("state", change.state)]
            + (change.error.map { [LogField("error", $0)] } ?? [])
            + (change.willReconnect ? [LogField("reconnects", true)] : [])
    }

    /// The current state, as the beginning of a stream.
    func currentState(_ central: Central) -> ConnectionStateChange {
        let state = state.withLock { $0 }
        return ConnectionStateChange(
            peripheral: Peripheral(id, of: central),
            previous: state.connection,
            state: state.connection,
            willReconnect: state.reconnecter != nil,
            isAutomatic: state.isAutomatic,
            isInitial: true
        )
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
        endUse(.linkLost(BluetoothError(.notConnected, "\(id.address): the link was lost")))
        move(to: .disconnected(.requested), central) { $0.connection == .disconnecting }
    }

    /// Ends operations and subscriptions of a link that has ended or will end.
    func endUse(_ end: SubscriptionEnd) {
        let subscriptions = state.withLock { state in
            (state.table, state.formerTable, state.isTableOutdated) = (nil, nil, false)
            defer { state.subscriptions = [:] }
            return Array(state.subscriptions.values)
        }
        operations.stopAll(end.error ?? BluetoothError(.cancelled, "\(id.address) was disconnected on request"))
        for subscription in subscriptions { subscription.finish(end) }
        lasting.reset()
    }

    /// Ends waiting operations and listeners; the link itself may stay up.
    func close() {
        let subscriptions = state.withLock { state in
            state.isClosed = true
            return Array(state.subscriptions.values)
        }
        operations.stopAll(BluetoothError(.cancelled, "the central is closed"))
        for subscription in subscriptions { subscription.finish(.requested) }
        lasting.finish()
        values.finish()
        serviceChanges.finish()
        names.finish()
    }

    // MARK: - GATT

    var isUsable: Bool { state.withLock { $0.isUsable } }

    /// Runs a GATT operation in its turn; operations of connection tasks come before all others.
    ///
    /// - Throws: As ``AsyncMutex/perform(_:within:waiting:on:isPrivileged:_:)``; `notConnected` if the link of the call
    ///   is not usable when the turn comes.
    func operate<Value: Sendable>(
        _ operation: BluetoothError.Operation,
        within limit: Duration?,
        on subject: CharacteristicID? = nil,
        _ body: @escaping @Sendable () async throws(BluetoothError) -> Value
    ) async throws(BluetoothError) -> Value {
        let isPrivileged = ConnectionTaskRun.isCurrent(of: self)
        let number = state.withLock { $0.number }
        return try await operations.perform(
            operation,
            within: limit,
            on: subject,
            isPrivileged: isPrivileged
        ) { () throws(BluetoothError) in
            // `endUse` does not stop an operation that enters the queue a moment later; the next link may be up then.
            guard self.state.withLock({ $0.isUsable && $0.number == number }) else {
                throw BluetoothError(.notConnected, "\(self.id.address) is not connected")
            }
            return try await body()
        }
    }

    /// The only characteristic of an outdated table that `id` matches; `nil` if the table is current.
    func formerCharacteristic(_ id: CharacteristicID) -> RemoteCharacteristic? {
        let table = state.withLock { $0.isTableOutdated ? $0.table ?? $0.formerTable : nil } ?? []
        let matches = table.flatMap(\.remote.characteristics).filter(id.matches)
        return matches.count == 1 ? matches.first : nil
    }

    func servicesChanged(_ peripheral: Peripheral) {
        state.withLock { state in
            (state.formerTable, state.table, state.isTableOutdated) = (state.table ?? state.formerTable, nil, false)
        }
        lasting.reset()
        serviceChanges.send(peripheral)
    }

    func subscriptionEnded(_ token: SubscriptionToken) {
        let subscription = state.withLock { state -> SharedSubscription? in
            guard let entry = state.subscriptions.first(where: { $0.value.token == token }) else { return nil }
            state.isTableOutdated = true
            return state.subscriptions.removeValue(forKey: entry.key)
        }
        subscription?.finish(.ended(BluetoothError(.unknownAttribute, "\(id.address) ended the subscription")))
    }
}
