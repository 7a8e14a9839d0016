import GattherdSync

/// Joins and leaves the subscriptions of a link, which all listeners of a characteristic share.
struct Subscriber: Sendable {
    let central: Central
    let link: Link

    /// Joins the existing subscription, or a new one; called in the turn of an operation.
    ///
    /// `join` runs first, because values may arrive before the reply. It returns false if the subscription has ended.
    @discardableResult
    func join(
        _ remote: RemoteCharacteristic,
        _ join: (SharedSubscription) -> Bool
    ) async throws(BluetoothError) -> SharedSubscription {
        if let subscription = link.state.withLock({ $0.subscriptions[remote.handle] }) {
            guard join(subscription) else { throw linkIsLost }
            return subscription
        }
        try remote.check([.notify, .indicate], "neither notifies nor indicates")
        let token = SubscriptionToken(central.registry.withLock { $0.makeID() })
        let subscription = SharedSubscription(remote, token, link)
        _ = join(subscription)
        try await begin(subscription)
        return subscription
    }

    /// Joins until the sequence is released; called in the turn of an operation.
    func listen(
        to remote: RemoteCharacteristic,
        _ policy: BufferingPolicy
    ) async throws(BluetoothError) -> ValueListener {
        let mailbox = Mailbox<CharacteristicValue>(policy)
        let id = central.registry.withLock { $0.makeID() }
        try await join(remote) { $0.add(mailbox, as: id) }
        return ValueListener(mailbox: mailbox, lease: Cancellable { leave(id) })
    }

    /// Removes a listener; ends subscriptions without listeners in the background.
    func leave(_ listener: UInt64) {
        let left = link.state.withLock { state in state.subscriptions.values.filter { $0.remove(listener) } }
        for subscription in left where subscription.isIdle {
            central.inBackground { await releaseInTurn(subscription) }
        }
    }

    /// Ends the subscription as soon as it has its turn, also if other operations are cancelled meanwhile.
    ///
    /// If the link ends meanwhile, the subscription ends too.
    private func releaseInTurn(_ subscription: SharedSubscription) async {
        let handle = subscription.characteristic.handle
        while subscription.isIdle, !central.isClosed, !Task.isCancelled,
            link.state.withLock({ $0.subscriptions[handle] === subscription })
        {
            do throws(BluetoothError) {
                return try await link.operate(.subscribe, within: nil) { () throws(BluetoothError) in
                    try await release(handle)
                }
            } catch {
                guard error.kind == .cancelled else { return }
            }
        }
    }

    /// Ends the subscription unless it is in use; called in the turn of an operation.
    func release(_ handle: String) async throws(BluetoothError) {
        guard let subscription = link.state.withLock({ $0.subscriptions[handle] }), subscription.isIdle else { return }
        forget(subscription)
        try await central.backend.unsubscribe(subscription.token)
    }

    private func begin(_ subscription: SharedSubscription) async throws(BluetoothError) {
        // Nothing would end a subscription that is added after the link's end: later subscribers would join it.
        let number = link.state.withLock { state -> UInt64? in
            guard state.isUsable else { return nil }
            state.subscriptions[subscription.characteristic.handle] = subscription
            return state.number
        }
        guard let number else { throw central.isClosed ? central.unreadiness : linkIsLost }
        do throws(BluetoothError) {
            try await subscribe(subscription)
        } catch {
            forget(subscription)
            throw error
        }
        guard link.state.withLock({ $0.number == number }) else { throw linkIsLost }
    }

    private var linkIsLost: BluetoothError { BluetoothError(.notConnected, "\(link.id.address): the link was lost") }

    /// Subscribes on the platform; indications have no socket and arrive as signals.
    ///
    /// A socket is not possible while another program receives signals.
    private func subscribe(_ subscription: SharedSubscription) async throws(BluetoothError) {
        let (remote, token) = (subscription.characteristic, subscription.token)
        let indicates = remote.properties.isDisjoint(with: .notify) && remote.properties.contains(.indicate)
        let path = indicates ? .signals : central.configuration.notificationPath
        do throws(BluetoothError) {
            try await central.backend.subscribe(to: remote, by: path, token: token, sink: subscription)
        } catch {
            guard path == .socket, error.kind == .notSupported || error.kind == .busy else { throw error }
            try await central.backend.subscribe(to: remote, by: .signals, token: token, sink: subscription)
        }
    }

    private func forget(_ subscription: SharedSubscription) {
        let handle = subscription.characteristic.handle
        link.state.withLock { if $0.subscriptions[handle] === subscription { $0.subscriptions[handle] = nil } }
    }
}
