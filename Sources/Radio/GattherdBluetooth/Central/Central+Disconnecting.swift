import GattherdSync

// Ends of links on request.
extension Central {
    /// Ends the link or the attempt to connect, and does not reconnect.
    ///
    /// Not being connected is success.
    public func disconnect(_ peripheral: Peripheral, timeout: Duration? = nil) async throws {
        guard let link = link(peripheral.id) else { return }
        guard !isClosed || !configuration.keepsLinks || !link.connection.isConnected else {
            throw unreadiness.during(.disconnect)
        }
        let wasReconnecting = release(link)
        try await link.connecting.perform(.disconnect, within: timeout ?? configuration.disconnectTimeout) {
            () throws(BluetoothError) in
            // Between two attempts there is no link to end, but the last change announced another attempt. A link
            // that has just been lost has ended for another reason.
            let isOver = link.state.withLock { $0.isEnding } || wasReconnecting
            try await self.end(link)
            if isOver { link.move(to: .disconnected(.requested), self, if: \.isDisconnected) }
        }
    }

    /// Leaves the link to another program: ends our subscriptions and operations, and keeps the link up.
    ///
    /// A disconnect under way ends first, which may take ``Configuration/disconnectTimeout``; nothing is left to detach
    /// then. A link whose disconnect failed, timed out or was cancelled is detached.
    ///
    /// - Throws: The platform's error if a subscription could not be ended; the link is detached all the same.
    ///   `timedOut` if a disconnect under way has not ended in time.
    public func detach(_ peripheral: Peripheral) async throws {
        guard let link = link(peripheral.id) else { return }
        let wasReconnecting = release(link)
        try await link.connecting.perform(.disconnect, within: configuration.disconnectTimeout) {
            () throws(BluetoothError) in
            let tokens = link.state.withLock { state in
                state.number = nil
                return state.subscriptions.values.map(\.token)
            }
            link.endUse(.requested)
            link.move(to: .disconnected(.detached), self) { state in
                state.connection.mayHaveLink || wasReconnecting && state.isDisconnected
            }
            // A cancelled task could make no further calls.
            try await Task { await self.unsubscribe(tokens) }.value.get()
        }
    }

    /// Ends subscriptions at the same time, so that the limit of one call bounds all; returns the first error.
    private func unsubscribe(_ tokens: [SubscriptionToken]) async -> Result<Void, BluetoothError> {
        await withTaskGroup(of: Result<Void, BluetoothError>.self) { group in
            for token in tokens { group.addTask { await self.unsubscribe(token) } }
            return await group.reduce(.success(())) { first, next in
                if case .success = first { next } else { first }
            }
        }
    }

    private func unsubscribe(_ token: SubscriptionToken) async -> Result<Void, BluetoothError> {
        do throws(BluetoothError) {
            return .success(try await backend.unsubscribe(token))
        } catch {
            return .failure(error)
        }
    }

    /// Ends all waiting and running operations of all peripherals, including attempts to connect, with `cancelled`.
    ///
    /// Kept peripherals stay kept: another attempt follows.
    public func cancelAllOperations() {
        for link in registry.withLock({ Array($0.links.values) }) { link.cancelAll() }
    }

    /// Marks the link as unwanted and stops all attempts.
    ///
    /// A disconnect goes on: whoever requested it relies on the end of the link.
    ///
    /// - Returns: True if it was reconnecting.
    @discardableResult
    private func release(_ link: Link) -> Bool {
        let stop = BluetoothError(.cancelled, "\(link.id.address): disconnected on request")
        let wasReconnecting = link.state.withLock { state in
            defer {
                (state.isWanted, state.reconnecter, state.reconnection) = (false, nil, nil)
                state.isAutomatic = false
            }
            return state.reconnecter != nil
        }
        _ = link.lasting.removeKept { _ in true }
        link.reconnecting.stopAll(stop)
        link.connecting.stopAll(stop, except: .disconnect)
        return wasReconnecting
    }

    // MARK: - One link

    private func end(_ link: Link) async throws(BluetoothError) {
        link.finishEnd(self)
        guard link.connection.mayHaveLink else { return }
        link.move(to: .disconnecting, self) { state in
            state.isAutomatic = false
            return true
        }
        link.endUse(.requested)
        try await backend.disconnect(link.id)
        link.move(to: .disconnected(.requested), self) { state in
            state.number = nil
            return state.connection == .disconnecting
        }
    }

    /// Ends all links of this central when it closes.
    func endLinks() async {
        let links = registry.withLock { Array($0.links.values) }
        for link in links { release(link) }
        await withDiscardingTaskGroup { group in
            for link in links { group.addTask { await self.endLast(link) } }
        }
    }

    /// Waits for the end of an attempt, which the platform would continue without us, then ends the link.
    private func endLast(_ link: Link) async {
        let limit = ConnectionTaskRun.isCurrent(of: link) ? .zero : configuration.disconnectTimeout
        try? await link.connecting.perform(.disconnect, within: limit) { () throws(BluetoothError) in }
        guard !configuration.keepsLinks, link.connection.mayHaveLink else { return }
        try? await end(link)
    }
}

extension ConnectionState {
    /// True if the link may be up, also after a disconnect that failed, timed out or was cancelled.
    fileprivate var mayHaveLink: Bool { isConnected || self == .disconnecting }
}

extension Link {
    func cancelAll() {
        let error = BluetoothError(.cancelled, "\(id.address): cancelled on request")
        operations.stopAll(error)
        connecting.stopAll(error)
    }
}
