import GattherdSync

/// What there is between us and one peripheral.
final class Link: Sendable {
    struct State: Sendable {
        var connection = ConnectionState.disconnected(nil)
        /// The number of the platform's link that is ours; `nil` without one.
        var number: UInt64?
        /// True when the link is gone, and why is still to come.
        var isEnding = false
        var readySince: ContinuousClock.Instant?
        /// What the peripheral has, once somebody wanted to know.
        var table: [Service]?
        var subscriptions: [String: SharedSubscription] = [:]
        /// How many write commands wait for room.
        var waitingCommands = 0
        var autoconnect = Autoconnect.never
        /// How many callers are at connecting it.
        var claims = 0
        /// False since somebody disconnected it on purpose.
        var isWanted = false
        /// Who tries to connect it again; `nil` for nobody.
        var reconnecter: UInt64?
        /// Whether who tries to connect it again goes on after the last attempt.
        var willTryAgain = false
        /// How often it was tried to connect again since the last link that lasted.
        var attempts = 0
        /// What is waited for before the next attempt; `nil` while nothing is.
        var reconnection: Reconnection?
    }

    let id: PeripheralID
    /// GATT operations.
    let operations: AsyncMutex
    /// Making and ending the link.
    let connecting: AsyncMutex
    /// Waiting to connect again.
    let reconnecting: AsyncMutex
    let values = Broadcast<CharacteristicValue>()
    let serviceChanges = Broadcast<Peripheral>()
    let names = Broadcast<String?>()
    let state = Locked(State())
    /// Held while a change is told, so that changes are told in their order; the state is free meanwhile.
    private let telling = Locked(())

    /// `isClosed` says that it comes after the end: nobody will be told anything.
    init(_ id: PeripheralID, isClosed: Bool) {
        self.id = id
        operations = AsyncMutex("\(id.address)")
        connecting = AsyncMutex("\(id.address)")
        reconnecting = AsyncMutex("\(id.address)")
        if isClosed { close() }
    }

    var connection: ConnectionState { state.withLock { $0.connection } }

    /// True when nothing is lost by forgetting it.
    var isForgettable: Bool {
        let isIdle = state.withLock { state in
            guard case .disconnected = state.connection, state.claims == 0 else { return false }
            return state.reconnecter == nil && !state.isEnding
        }
        return isIdle && !values.hasListeners && !serviceChanges.hasListeners && !names.hasListeners
    }

    // MARK: - States

    /// Moves on and tells, unless `condition` does not hold.
    ///
    /// - Returns: Whether it did.
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

    /// The platform tells of a link: ours has ended if this one is newer, or is ours and down.
    func follow(_ status: PeripheralStatus, _ central: Central) {
        let isOver = state.withLock { state in
            guard let number = state.number else { return false }
            return status.link > number || (status.link == number && !status.isConnected)
        }
        if isOver { drop(upTo: status.link, central) }
    }

    /// Our link is gone, if it is that one or an older one; whatever needed it ends.
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

    /// Ends operations and subscriptions; the link is, or will be, gone.
    func endUse(_ error: BluetoothError?) {
        let subscriptions = state.withLock { state in
            state.table = nil
            defer { state.subscriptions = [:] }
            return Array(state.subscriptions.values)
        }
        operations.stopAll(error ?? BluetoothError(.cancelled, "\(id.address) was disconnected on request"))
        for subscription in subscriptions { subscription.finish(error) }
    }

    /// Ends whatever waits for it, or listens to it; the link itself may stay up.
    func close() {
        operations.stopAll(BluetoothError(.cancelled, "the central is closed"))
        for subscription in state.withLock({ Array($0.subscriptions.values) }) { subscription.finish(nil) }
        values.finish()
        serviceChanges.finish()
        names.finish()
    }

    // MARK: - GATT news

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
