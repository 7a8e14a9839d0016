import GattherdSync

// Reconnecting after links that end by themselves.
extension Central {
    /// Records the end of a link and its reason; reconnects if the link was ready and the policy allows it.
    ///
    /// - Parameters:
    ///   - link: The link.
    ///   - reason: The reason.
    ///   - reasonIsMissing: True if a request could not wait for the reason.
    ///   - keeper: The number of the task that reconnects if the requested attempt fails; `nil` without an attempt.
    func ended(
        _ link: Link,
        _ reason: DisconnectReason,
        reasonIsMissing: Bool = false,
        keeper: UInt64? = nil
    ) {
        let (isEnding, wasReady) = link.state.withLock { state in
            guard state.isEnding else { return (false, false) }
            let since = state.readySince
            if let since, since.duration(to: .now) >= state.autoconnect.stableAfter { state.attempts = 0 }
            (state.isEnding, state.readySince, state.isAutomatic) = (false, nil, false)
            return (true, since != nil)
        }
        guard isEnding else { return }
        let error = reason.error(of: link.id.address)
        let (isReconnecting, hasReconnecter) = link.state.withLock { state in
            (state.isWanted && (reasonIsMissing || state.reconnecter != nil), state.reconnecter != nil)
        }
        let needsReconnecter = keeper == nil ? !isReconnecting : !hasReconnecter
        let isDue = needsReconnecter && wasReady && mayReconnect(link, reason, error)
        let reconnecter = isDue ? makeReconnecter(of: link, keeper) : nil
        link.lasting.reportLoss(error)
        // Another attempt may have begun while the policy decided.
        link.move(
            to: .disconnected(reason, error: error),
            self,
            willReconnect: isReconnecting || reconnecter != nil
        ) { $0.connection.isConnected && $0.number == nil }
        // Only after the state is disconnected: a connected peripheral would not be connected again.
        if let reconnecter, keeper == nil { inBackground { await self.reconnect(link, reconnecter) } }
    }

    /// Connects as soon as the peripheral can be connected, however long that takes, and again when it is lost.
    ///
    /// Returns at once; the results are published by ``connectionStateChanges()``. ``disconnect(_:timeout:)`` ends it.
    ///
    /// - Parameters:
    ///   - peripheral: The peripheral, which may be out of range.
    ///   - autoconnect: The policy after a failed attempt and after the loss of the link.
    public func keepConnected(_ peripheral: Peripheral, autoconnect: Autoconnect = .whenUnexpected) {
        let (link, _) = want(peripheral, autoconnect)
        link.reconnecting.stopAll(BluetoothError(.cancelled, "connected on request"))
        // The new policy decides about a loss that was not handled yet; the former one has decided about any other.
        let isKept = link.state.withLock { $0.connection == .ready && ($0.number != nil || $0.isEnding) }
        if !isKept {
            if let reconnecter = makeReconnecter(of: link) { inBackground { await self.reconnect(link, reconnecter) } }
        }
        link.state.withLock { $0.claims -= 1 }
    }

    /// Returns the number of the task that reconnects the link; `nil` if it was disconnected on request meanwhile.
    private func makeReconnecter(of link: Link, _ keeper: UInt64? = nil) -> UInt64? {
        let id = keeper ?? registry.withLock { $0.makeID() }
        return link.state.withLock { state in
            guard state.isWanted else { return nil }
            // An attempt that is cancelled before it begins is followed by another one.
            (state.reconnecter, state.willTryAgain) = (id, true)
            return id
        }
    }

    /// Continues reconnecting after a call has connected the peripheral, or has failed to.
    ///
    /// - Parameters:
    ///   - link: The link.
    ///   - keeper: The number of the task that continues, unless the link is ready, the policy has refused, or another
    ///     call has taken over.
    func continueReconnecting(_ link: Link, _ keeper: UInt64) {
        guard link.state.withLock({ $0.reconnecter == keeper }) else { return }
        inBackground { await self.reconnect(link, keeper) }
    }

    func mayReconnect(_ link: Link, _ reason: DisconnectReason, _ error: BluetoothError?) -> Bool {
        let (isWanted, policy, number) = link.state.withLock { ($0.isWanted, $0.autoconnect, $0.attempts + 1) }
        guard isWanted else { return false }
        let peripheral = Peripheral(link.id, of: self)
        return policy.decide(.init(peripheral: peripheral, reason: reason, error: error, number: number))
    }

    /// Tries until the link is ready, the policy refuses, or another call takes over.
    private func reconnect(_ link: Link, _ id: UInt64) async {
        // The result of each attempt is published as a change of the connection.
        try? await link.reconnecting.perform(.connect, within: nil) { () throws(BluetoothError) in
            while try await self.tryAgain(link, id) {}
        }
        link.state.withLock { state in
            guard state.reconnecter == id else { return }
            (state.reconnecter, state.reconnection) = (nil, nil)
        }
    }

    /// Makes one attempt; returns true if another one is due.
    private func tryAgain(_ link: Link, _ id: UInt64) async throws(BluetoothError) -> Bool {
        let delay = link.state.withLock { state -> Duration? in
            guard state.reconnecter == id else { return nil }
            state.attempts += 1
            let delay = state.autoconnect.delay(before: state.attempts)
            state.reconnection = Reconnection(
                attempt: state.attempts,
                due: .now.advanced(by: delay),
                error: state.lastError
            )
            return delay
        }
        guard let delay, (try? await Task.sleep(for: delay)) != nil, await isPoweredOn(link.id.adapter) else {
            return false
        }
        link.state.withLock { if $0.reconnecter == id { $0.reconnection = nil } }
        do throws(BluetoothError) {
            try await connect(link, configuration.connectTimeout, isAutomatic: true, id)
            return false
        } catch {
            guard !Task.isCancelled else { throw error }
            return link.state.withLock { $0.willTryAgain }
        }
    }

    /// Waits until an adapter is on, however long that takes; false when the task is cancelled.
    private func isPoweredOn(_ adapter: BluetoothAddress) async -> Bool {
        for await powered in poweredAdapters.watch() where powered.contains(adapter) { return true }
        return false
    }
}

// Connection tasks, which run after each connect.
extension Central {
    /// Adds a task that runs after each connect of any peripheral, before it is ready.
    ///
    /// Tasks run in the order of the calls.
    ///
    /// If the task throws, the peripheral is disconnected and connecting fails with its error.
    ///
    /// - Returns: The identifier for ``removeConnectionTask(_:)``.
    @discardableResult
    public func addConnectionTask(
        _ task: @escaping @Sendable (Peripheral) async throws -> Void
    ) -> ConnectionTaskID {
        addConnectionTask(for: nil, task)
    }

    func addConnectionTask(
        for peripheral: PeripheralID?,
        _ task: @escaping @Sendable (Peripheral) async throws -> Void
    ) -> ConnectionTaskID {
        registry.withLock { $0.addConnectionTask(for: peripheral, task) }
    }

    /// Removes a task of the central or of a peripheral; runs that have begun are not affected.
    public func removeConnectionTask(_ id: ConnectionTaskID) {
        // Objects of the task are released when the lock is free.
        _ = registry.withLock { $0.removeConnectionTask(id) }
    }
}

/// The identifier of a connection task.
public struct ConnectionTaskID: Hashable, Sendable {
    let value: UInt64
}
