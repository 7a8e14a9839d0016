import GattherdSync

// Notifications and indications.
extension Peripheral {
    /// Subscribes, waits until the peripheral confirms the subscription, and returns the values of a characteristic.
    ///
    /// Notifications are preferred to indications if the characteristic has both. All sequences share one subscription,
    /// which ends with the last of them.
    ///
    /// - Parameters:
    ///   - type: The type of the values.
    ///   - characteristic: The characteristic, for example by its UUID.
    ///   - buffering: The policy for values that are not consumed in time; ``Central/Configuration/buffering`` if
    ///     `nil`.
    ///   - timeout: For the subscription; ``Central/Configuration/operationTimeout`` when `nil`.
    /// - Returns: The values from now on.
    /// - Throws: As ``read(_:from:timeout:)-(_,CharacteristicID,_)``.
    public func notifications<Value: Readable>(
        of type: Value.Type = Value.self,
        from characteristic: CharacteristicID,
        buffering: BufferingPolicy? = nil,
        timeout: Duration? = nil
    ) async throws -> Notifications<Value> {
        let policy = buffering ?? central.configuration.buffering
        let values = try await perform(.subscribe, on: characteristic, within: timeout) {
            (remote, link) throws(BluetoothError) in
            try await listen(to: remote, policy, of: link)
        }
        return Notifications(values: values)
    }

    /// Subscribes on this link without a sequence, or unsubscribes; for ``valueUpdates(buffering:)``.
    ///
    /// - Throws: As ``read(_:from:timeout:)-(_,CharacteristicID,_)``.
    public func setNotifyValue(
        _ isEnabled: Bool,
        for characteristic: CharacteristicID,
        timeout: Duration? = nil
    ) async throws {
        try await perform(.subscribe, on: characteristic, within: timeout) { (remote, link) throws(BluetoothError) in
            if isEnabled {
                try await subscription(to: remote, of: link) { $0.pin(true) }
            } else {
                link.state.withLock { $0.subscriptions[remote.handle] }?.pin(false)
                try await self.release(remote.handle, of: link)
            }
        }
    }

    /// The currently subscribed characteristics.
    public var notifyingCharacteristics: [CharacteristicID] {
        let subscriptions = central.link(id)?.state.withLock { Array($0.subscriptions.values) } ?? []
        return subscriptions.map { CharacteristicID($0.characteristic) }.sorted { $0.description < $1.description }
    }

    /// Returns true while the characteristic is subscribed.
    public func isNotifying(_ characteristic: CharacteristicID) -> Bool {
        let subscriptions = central.link(id)?.state.withLock { Array($0.subscriptions.values) } ?? []
        return subscriptions.contains { characteristic.matches($0.characteristic) }
    }

    /// Returns all values of all subscribed characteristics from now on, over all later links.
    ///
    /// This function does not subscribe. For that use ``setNotifyValue(_:for:timeout:)-(_,CharacteristicID,_)`` or
    /// ``notifications(of:from:buffering:timeout:)-(_,CharacteristicID,_,_)``, for example in a connection task.
    public func valueUpdates(buffering: BufferingPolicy? = nil) -> BufferedSequence<CharacteristicValue> {
        central.withLink(id) { $0.values.listen(buffering ?? central.configuration.buffering) }
    }

    /// Writes, and waits for the answer that a control point notifies or indicates.
    ///
    /// No other operation of the peripheral runs in between. Values that are no `Answer`, or for which `isAnswer`
    /// returns false, are skipped.
    ///
    /// - Parameters:
    ///   - value: The request.
    ///   - characteristic: The characteristic that is written.
    ///   - listening: The characteristic that answers; the same one when `nil`.
    ///   - type: The type of the answer.
    ///   - writeType: With response by default.
    ///   - timeout: From the call to the answer; ``Central/Configuration/operationTimeout`` when `nil`.
    ///   - isAnswer: A function that returns true for the answer to this request.
    /// - Returns: The answer.
    /// - Throws: `timedOut` without an answer; as ``write(_:to:type:timeout:)-(_,CharacteristicID,_,_)``.
    public func writeAndListen<Answer: Readable>(
        _ value: some Writable,
        to characteristic: CharacteristicID,
        listeningTo listening: CharacteristicID? = nil,
        as type: Answer.Type = Answer.self,
        writeType: WriteType = .withResponse,
        timeout: Duration? = nil,
        where isAnswer: @escaping @Sendable (Answer) -> Bool = { _ in true }
    ) async throws -> Answer {
        let octets = try value.value()
        return try await perform(.writeAndListen, on: characteristic, within: timeout) {
            (remote, link) throws(BluetoothError) in
            let source = try await find(listening ?? CharacteristicID(remote), of: link)
            let answers = try await listen(to: source, .bufferingNewest(64), of: link)
            try await send(octets, to: remote, writeType)
            while let answer = try await answers.mailbox.next() {
                guard let answer = try? Answer(octets: answer.octets), isAnswer(answer) else { continue }
                return answer
            }
            throw BluetoothError(.cancelled, "cancelled")
        }
    }

    private func send(
        _ octets: [UInt8],
        to remote: RemoteCharacteristic,
        _ type: WriteType
    ) async throws(BluetoothError) {
        switch type {
        case .withResponse:
            try remote.check(.write, "cannot be written with response")
            try await central.backend.write(octets, to: remote, withResponse: true)
        case .withoutResponse:
            try remote.check(.writeWithoutResponse, "cannot be written without response")
            try await central.backend.writeWithoutResponse(octets, to: remote)
        }
    }

    // MARK: - One subscription for all

    /// Joins the subscription until the sequence is released; runs in its turn.
    private func listen(
        to remote: RemoteCharacteristic,
        _ policy: BufferingPolicy,
        of link: Link
    ) async throws(BluetoothError) -> ValueListener {
        let mailbox = Mailbox<CharacteristicValue>(policy)
        let listener = central.registry.withLock { $0.makeID() }
        let subscription = try await subscription(to: remote, of: link) { $0.add(mailbox, as: listener) }
        let lease = Cancellable {
            subscription.remove(listener)
            guard subscription.isIdle else { return }
            self.central.inBackground {
                // If the link ends meanwhile, the subscription ends too.
                try? await link.operate(.subscribe, within: self.central.configuration.operationTimeout) {
                    () throws(BluetoothError) in
                    try await self.release(remote.handle, of: link)
                }
            }
        }
        return ValueListener(mailbox: mailbox, lease: lease)
    }

    /// Returns the existing subscription, or a new one.
    ///
    /// `join` runs first, because values may arrive before the reply.
    @discardableResult
    private func subscription(
        to remote: RemoteCharacteristic,
        of link: Link,
        join: (SharedSubscription) -> Bool
    ) async throws(BluetoothError) -> SharedSubscription {
        if let subscription = link.state.withLock({ $0.subscriptions[remote.handle] }) {
            guard join(subscription) else { throw linkIsLost }
            return subscription
        }
        try remote.check([.notify, .indicate], "neither notifies nor indicates")
        let token = SubscriptionToken(central.registry.withLock { $0.makeID() })
        let subscription = SharedSubscription(remote, token, link.values)
        _ = join(subscription)
        try await begin(subscription, on: link)
        return subscription
    }

    private func begin(_ subscription: SharedSubscription, on link: Link) async throws(BluetoothError) {
        let number = link.state.withLock { state in
            state.subscriptions[subscription.characteristic.handle] = subscription
            return state.number
        }
        do throws(BluetoothError) {
            try await subscribe(subscription)
        } catch {
            link.forget(subscription)
            throw error
        }
        guard link.state.withLock({ $0.number == number && number != nil }) else { throw linkIsLost }
    }

    private var linkIsLost: BluetoothError { BluetoothError(.notConnected, "\(address): the link was lost") }

    /// Subscribes on the platform; indications have no socket and arrive as signals.
    private func subscribe(_ subscription: SharedSubscription) async throws(BluetoothError) {
        let (remote, token) = (subscription.characteristic, subscription.token)
        let indicates = remote.properties.isDisjoint(with: .notify) && remote.properties.contains(.indicate)
        let path = indicates ? .signals : central.configuration.notificationPath
        do throws(BluetoothError) {
            try await central.backend.subscribe(to: remote, by: path, token: token, sink: subscription)
        } catch {
            guard path == .socket, error.kind == .notSupported else { throw error }
            try await central.backend.subscribe(to: remote, by: .signals, token: token, sink: subscription)
        }
    }

    /// Ends the subscription unless it is in use; runs in its turn.
    private func release(_ handle: String, of link: Link) async throws(BluetoothError) {
        guard let subscription = link.state.withLock({ $0.subscriptions[handle] }), subscription.isIdle else { return }
        link.forget(subscription)
        try await central.backend.unsubscribe(subscription.token)
    }
}

extension Link {
    func forget(_ subscription: SharedSubscription) {
        let handle = subscription.characteristic.handle
        state.withLock { if $0.subscriptions[handle] === subscription { $0.subscriptions[handle] = nil } }
    }
}
