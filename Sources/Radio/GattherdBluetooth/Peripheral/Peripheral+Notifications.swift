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
    ///   - timeout: The limit of the subscription; ``Central/Configuration/operationTimeout`` when `nil`.
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
            try await Subscriber(central: central, link: link).listen(to: remote, policy)
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
            let subscriber = Subscriber(central: central, link: link)
            guard !isEnabled else {
                try await subscriber.join(remote) { $0.pin(true) }
                return
            }
            let (table, subscription) = link.state.withLock { state in
                (state.isTableOutdated ? nil : state.table, state.subscriptions[remote.handle])
            }
            // UUIDs also match further characteristics, but are the first one's.
            let all = table?.flatMap(\.remote.characteristics) ?? [remote]
            let kept = link.lasting.removeKept { all.first(where: $0.matches)?.handle == remote.handle }
            subscription?.pin(false)
            for id in kept { _ = subscription?.remove(id) }
            try await subscriber.release(remote.handle)
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
    ///   - writeType: The kind of write; with response by default.
    ///   - timeout: The limit from the call to the answer; ``Central/Configuration/operationTimeout`` when `nil`.
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
        let octets = try value.value(for: characteristic, of: self)
        return try await perform(.writeAndListen, on: characteristic, within: timeout) {
            (remote, link) throws(BluetoothError) in
            let source = try await find(listening ?? CharacteristicID(remote), of: link)
            let subscriber = Subscriber(central: central, link: link)
            let answers = try await subscriber.listen(to: source, .bufferingNewest(64))
            link.log.bytes(.writeAndListen, characteristic, octets)
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
}
