import GattherdSync

// Links.
extension Central {
    /// Connects, and returns when the peripheral is ready; being ready already is success.
    ///
    /// A scan searches for a peripheral that the platform does not know. An existing link of another program, or of an
    /// earlier run, is adopted.
    ///
    /// In a connection task of the same peripheral the function returns at once, because the link is up. If the link
    /// has been lost, it throws `notConnected`.
    ///
    /// - Parameters:
    ///   - peripheral: The peripheral, which need not have been seen by a scan.
    ///   - timeout: From the call until it is ready: connection tasks, and waiting for attempts of other peripherals,
    ///     are part of it. ``Configuration/connectTimeout`` when `nil`.
    ///   - autoconnect: The policy after the loss of the link; ``Configuration/autoconnect`` when `nil`.
    /// - Throws: The reason of the failure, or the error of a connection task; the peripheral is disconnected then. A
    ///   connection task that still runs at the deadline is cancelled, and waited for.
    public func connect(
        _ peripheral: Peripheral,
        timeout: Duration? = nil,
        autoconnect: Autoconnect? = nil
    ) async throws {
        do throws(BluetoothError) { try await awaitRun() } catch { throw error.during(.connect) }
        guard try !isInConnectionTask(of: peripheral.id) else { return }
        let link = want(peripheral, autoconnect ?? configuration.autoconnect)
        defer { link.state.withLock { $0.claims -= 1 } }
        link.reconnecting.stopAll(BluetoothError(.cancelled, "connected on request"))
        try await connect(link, timeout ?? configuration.connectTimeout, isAutomatic: false)
    }

    /// Marks the link as wanted and adds a claim, which the caller must release.
    func want(_ peripheral: Peripheral, _ autoconnect: Autoconnect) -> Link {
        // The previous policy may own objects whose deinit needs the locks.
        let (link, _) = withLink(peripheral.id) { link in
            let before = link.state.withLock { state in
                defer { state.autoconnect = autoconnect }
                state.isWanted = true
                state.attempts = 0
                state.claims += 1
                (state.reconnecter, state.reconnection) = (nil, nil)
                return state.autoconnect
            }
            return (link, before)
        }
        return link
    }

    /// Connects to the peripheral with that address.
    ///
    /// - Throws: As ``connect(_:timeout:autoconnect:)-(Peripheral,_,_)``.
    @discardableResult
    public func connect(
        _ address: BluetoothAddress,
        timeout: Duration? = nil,
        autoconnect: Autoconnect? = nil
    ) async throws -> Peripheral {
        guard let peripheral = peripheral(address) else { throw unreadiness.during(.connect) }
        try await connect(peripheral, timeout: timeout, autoconnect: autoconnect)
        return peripheral
    }

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
            try await self.end(link)
            // Between two attempts there is no link to end, but the last change announced another attempt.
            if wasReconnecting { link.move(to: .disconnected(.requested), self, if: \.isDisconnected) }
        }
    }

    /// Hands the link to another program: ours ends its subscriptions and operations, and the link stays up.
    public func detach(_ peripheral: Peripheral) async throws {
        guard let link = link(peripheral.id) else { return }
        let wasReconnecting = release(link)
        try await link.connecting.perform(.disconnect, within: configuration.disconnectTimeout) {
            () throws(BluetoothError) in
            let tokens = link.state.withLock { state in
                state.number = nil
                return state.subscriptions.values.map(\.token)
            }
            link.endUse(nil)
            for token in tokens { try await self.backend.unsubscribe(token) }
            link.move(to: .disconnected(.detached), self) { state in
                state.connection.isConnected || wasReconnecting && state.isDisconnected
            }
        }
    }

    /// Ends all waiting and running operations of all peripherals, including attempts to connect, with `cancelled`.
    public func cancelAllOperations() {
        for link in registry.withLock({ Array($0.links.values) }) { link.cancelAll() }
    }

    /// Marks the link as unwanted and stops all attempts.
    ///
    /// - Returns: True if it was reconnecting.
    @discardableResult
    private func release(_ link: Link) -> Bool {
        let stop = BluetoothError(.cancelled, "\(link.id.address): disconnected on request")
        let wasReconnecting = link.state.withLock { state in
            defer { (state.isWanted, state.reconnecter, state.reconnection) = (false, nil, nil) }
            return state.reconnecter != nil
        }
        _ = link.lasting.removeKept { _ in true }
        link.reconnecting.stopAll(stop)
        link.connecting.stopAll(stop)
        return wasReconnecting
    }

    // MARK: - Connecting

    /// Makes one attempt; `isAutomatic` is true if nobody waits for it.
    func connect(_ link: Link, _ timeout: Duration, isAutomatic: Bool) async throws(BluetoothError) {
        let start = ContinuousClock.now
        let turnTimeout = isAutomatic ? nil : timeout
        try await link.connecting.perform(.connect, within: nil, waiting: turnTimeout) { () throws(BluetoothError) in
            guard await !self.isReady(link) else { return }
            guard link.state.withLock({ $0.isWanted }) else {
                throw BluetoothError(.cancelled, "\(link.id.address): disconnected on request")
            }
            link.finishEnd(self)
            let isDying = link.connection == .disconnecting
            link.move(to: .connecting, self) { state in
                state.isAutomatic = isAutomatic
                return true
            }
            let deadline = ConnectDeadline(timeout, includesTurns: !isAutomatic, from: isAutomatic ? .now : start)
            do throws(BluetoothError) {
                if isDying { try await self.completeEnd(link, deadline) }
                try await self.connect(link, deadline)
            } catch {
                await self.giveUp(link, error)
                throw error
            }
        }
    }

    private func connect(_ link: Link, _ deadline: ConnectDeadline) async throws(BluetoothError) {
        var deadline = deadline
        try await makeLink(link, &deadline)
        try await adopt(link)
        try await runConnectionTasks(link, until: deadline.end, late: Self.late(link, deadline))
        try link.becomeReady(self)
        // For sequences that began meanwhile.
        joinLasting(link)
    }

    /// Completes a disconnect that was cancelled or timed out: the attempt would adopt the dying link.
    private func completeEnd(_ link: Link, _ deadline: ConnectDeadline) async throws(BluetoothError) {
        let late = Self.late(link, deadline, "its former link has not ended")
        let isComplete = try await withDeadline(deadline.end, late) { () throws(BluetoothError) in
            try await self.backend.disconnect(link.id)
            return true
        }
        guard isComplete != nil else { throw BluetoothError(.cancelled, "cancelled") }
        link.state.withLock { $0.number = nil }
    }

    /// True if the link is ready, also by the platform's current state.
    private func isReady(_ link: Link) async -> Bool {
        guard link.connection == .ready else { return false }
        if let status = await backend.status(of: link.id) { link.follow(status, self) }
        return link.state.withLock { $0.connection == .ready && !$0.isEnding }
    }

    /// Adopts the platform's link and follows its end from now on.
    private func adopt(_ link: Link) async throws(BluetoothError) {
        guard let status = await backend.status(of: link.id), status.isConnected else {
            throw BluetoothError(.connectionFailed, "\(link.id.address): the link was lost at once")
        }
        link.operations.reserve()
        link.move(to: .connected, self) { state in
            state.number = status.link
            return true
        }
        // The end may have been published before the link was ours.
        if let told = self.status(link.id) { link.follow(told, self) }
    }

    /// Cleans up after a failed attempt; the peripheral is disconnected then.
    private func giveUp(_ link: Link, _ error: BluetoothError) async {
        defer { link.operations.open() }
        await awaitReason(link)
        let (wasMade, lost, isAgain) = link.state.withLock { state in
            defer { state.number = nil }
            return (state.number != nil, state.isDisconnected ? state.connection : nil, state.reconnecter != nil)
        }
        let failure = DisconnectReason(failedBy: error, afterConnecting: wasMade || lost != nil)
        let cause = failure == .requested ? nil : error.during(.connect)
        let willReconnect = isAgain && mayReconnect(link, lost?.reason ?? failure, lost?.error ?? cause)
        link.state.withLock { $0.willTryAgain = willReconnect }
        // The end of a lost link was published with its reason.
        guard lost == nil || willReconnect != isAgain else { return }
        if wasMade {
            link.endUse(cause.map { BluetoothError(.notConnected, "\(link.id.address) was disconnected: \($0)") })
            // A cancelled task could make no further calls.
            await Task { try? await backend.disconnect(link.id) }.value
        }
        link.move(to: .disconnected(failure, error: cause), self, willReconnect: willReconnect)
    }

    /// Waits until the end of a link that was lost during its attempt is published; the reason may come later.
    private func awaitReason(_ link: Link) async {
        guard link.state.withLock({ $0.number == nil && $0.connection.isConnected }) else { return }
        let changes = Peripheral(link.id, of: self).connectionStateChanges()
        let late = BluetoothError(.timedOut, "no reason")
        // A cancelled task would not wait.
        await Task {
            _ = try? await withDeadline(.now + .seconds(1), late) { () throws(BluetoothError) in
                for await change in changes where !change.state.isConnected { return true }
                return nil
            }
        }.value
        ended(link, .remote)
    }

    // MARK: - Disconnecting

    private func end(_ link: Link) async throws(BluetoothError) {
        link.finishEnd(self)
        guard link.connection.isConnected || link.connection == .disconnecting else { return }
        link.move(to: .disconnecting, self) { state in
            state.isAutomatic = false
            return true
        }
        link.endUse(nil)
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
        guard !configuration.keepsLinks else { return }
        await withDiscardingTaskGroup { group in
            // Without the mutexes, because a cancelled task gets no turn.
            for link in links where link.connection.isConnected { group.addTask { try? await self.end(link) } }
        }
    }
}

extension Link {
    /// Completes the end of a link whose reason is not known yet.
    func finishEnd(_ central: Central) {
        central.ended(self, .remote, reasonIsMissing: true)
    }

    func becomeReady(_ central: Central) throws(BluetoothError) {
        let isReady = move(to: .ready, central) { state in
            guard state.number != nil else { return false }
            state.readySince = .now
            // The reconnecting task is done: the next end starts another one.
            state.reconnecter = nil
            return true
        }
        guard isReady else { throw BluetoothError(.notConnected, "\(id.address): the link was lost") }
        operations.open()
    }

    func cancelAll() {
        let error = BluetoothError(.cancelled, "\(id.address): cancelled on request")
        operations.stopAll(error)
        connecting.stopAll(error)
    }
}
