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
    ///   - timeout: The limit from the call until the peripheral is ready. It includes connection tasks, and the wait
    ///     for attempts of other peripherals. ``Configuration/connectTimeout`` when `nil`.
    ///   - autoconnect: The policy after the loss of the link. When `nil`, a kept or connected peripheral keeps its
    ///     policy, and others have ``Configuration/autoconnect``. A peripheral that was kept or reconnecting continues
    ///     after a failure if the policy allows it.
    /// - Throws: The reason of the failure, or the error of a connection task; the peripheral is disconnected then. A
    ///   connection task that still runs at the deadline is cancelled, and waited for, and so is the end of the link.
    public func connect(
        _ peripheral: Peripheral,
        timeout: Duration? = nil,
        autoconnect: Autoconnect? = nil
    ) async throws {
        do throws(BluetoothError) { try await awaitRun() } catch { throw error.during(.connect) }
        guard try !isInConnectionTask(of: peripheral.id) else { return }
        let (link, keeper) = want(peripheral, autoconnect)
        defer { link.state.withLock { $0.claims -= 1 } }
        link.reconnecting.stopAll(BluetoothError(.cancelled, "connected on request"))
        do throws(BluetoothError) {
            try await connect(link, timeout ?? configuration.connectTimeout, isAutomatic: false, keeper)
            // The link may have been lost again.
            continueReconnecting(link, keeper)
        } catch {
            continueReconnecting(link, keeper)
            throw error
        }
    }

    /// Marks the link as wanted and adds a claim, which the caller must release.
    ///
    /// - Parameters:
    ///   - peripheral: The peripheral.
    ///   - autoconnect: The new policy; `nil` for that of a link that is kept or used, else the configuration's.
    /// - Returns: The link, and the number of the task that will go on reconnecting it if the caller does not.
    func want(_ peripheral: Peripheral, _ autoconnect: Autoconnect?) -> (link: Link, keeper: UInt64) {
        let keeper = registry.withLock { $0.makeID() }
        // The previous policy may own objects whose deinit needs the locks.
        let (link, _) = withLink(peripheral.id) { link in
            let before = link.state.withLock { state in
                let before = state.autoconnect
                state.want(autoconnect ?? (state.isInUse ? before : configuration.autoconnect), keeper)
                return before
            }
            return (link, before)
        }
        return (link, keeper)
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

    // MARK: - Connecting

    /// Makes one attempt.
    ///
    /// - Parameters:
    ///   - link: The link.
    ///   - timeout: The limit of the attempt.
    ///   - isAutomatic: True if no caller waits for the attempt.
    ///   - keeper: The number of the task that will go on reconnecting the link if the attempt fails.
    /// - Throws: The reason of the failure; the peripheral is disconnected then.
    func connect(
        _ link: Link,
        _ timeout: Duration,
        isAutomatic: Bool,
        _ keeper: UInt64
    ) async throws(BluetoothError) {
        let start = ContinuousClock.now
        let turnTimeout = isAutomatic ? nil : timeout
        try await link.connecting.perform(.connect, within: nil, waiting: turnTimeout) { () throws(BluetoothError) in
            // `close()` ends only the attempts that have begun.
            guard !self.isClosed else { throw self.unreadiness }
            guard await !self.isReady(link) else { return }
            guard link.state.withLock({ $0.isWanted }) else {
                throw BluetoothError(.cancelled, "\(link.id.address): disconnected on request")
            }
            link.finishEnd(self, keeper: keeper)
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
        return link.state.withLock { $0.connection == .ready && $0.number != nil }
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
        // The end, or the peripheral's removal, may have been published before the link was ours.
        if let now = await backend.status(of: link.id) {
            link.follow(now, self)
        } else {
            link.drop(upTo: status.link, self)
        }
    }

    /// Cleans up after a failed attempt; the peripheral is disconnected then.
    private func giveUp(_ link: Link, _ error: BluetoothError) async {
        defer { link.operations.open() }
        await awaitReason(link, after: error)
        let (wasMade, lost, isAgain, isWanted) = link.state.withLock { state in
            defer { state.number = nil }
            let lost = state.isDisconnected ? state.connection : nil
            return (state.number != nil, lost, state.reconnecter != nil, state.isWanted)
        }
        let reason = DisconnectReason(failedBy: error, afterConnecting: wasMade || lost != nil)
        let failure = isWanted ? reason : .requested
        let cause = failure == .requested ? nil : error.during(.connect)
        // A cancelled attempt is no evidence about the peripheral: a kept one stays kept.
        let isCancelled = isWanted && failure == .requested && lost == nil
        let willReconnect =
            isAgain && (isCancelled || mayReconnect(link, lost?.reason ?? failure, lost?.error ?? cause))
        link.state.withLock { state in
            state.willTryAgain = willReconnect
            if !willReconnect { (state.reconnecter, state.reconnection) = (nil, nil) }
        }
        // The end of a lost link was published with its reason.
        guard lost == nil || willReconnect != isAgain else { return }
        if wasMade {
            let end = cause.map { BluetoothError(.notConnected, "\(link.id.address) was disconnected: \($0)") }
            link.endUse(end.map(SubscriptionEnd.ended) ?? .requested)
            // A cancelled task could make no further calls.
            await Task { try? await backend.disconnect(link.id) }.value
        }
        link.move(to: .disconnected(failure, error: cause), self, willReconnect: willReconnect)
    }

    /// Waits until the end of a link that was lost during its attempt is published; the reason may come later.
    ///
    /// An operation may fail before the platform publishes the end. A link that stays up was not lost.
    private func awaitReason(_ link: Link, after error: BluetoothError) async {
        let seemsLost = link.state.withLock { state in
            state.connection.isConnected && (state.number == nil || error.mayMeanLostLink)
        }
        guard seemsLost else { return }
        let changes = Peripheral(link.id, of: self).connectionStateChanges()
        let late = BluetoothError(.timedOut, "no reason")
        // A cancelled task would not wait.
        await Task {
            _ = try? await withDeadline(.now + waits.endReason, late) { () throws(BluetoothError) in
                for await change in changes where !change.state.isConnected { return true }
                return nil
            }
        }.value
        ended(link, .remote)
    }
}

extension Link {
    /// Completes the end of a link whose reason is not known yet.
    ///
    /// - Parameters:
    ///   - central: The central.
    ///   - keeper: The number of the task that reconnects if the attempt fails that is about to begin.
    func finishEnd(_ central: Central, keeper: UInt64? = nil) {
        central.ended(self, .remote, reasonIsMissing: true, keeper: keeper)
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
}

extension BluetoothError {
    /// True if the link may just have ended: BlueZ fails operations in progress with 0x0E then, or without a code.
    fileprivate var mayMeanLostLink: Bool {
        switch kind {
        case .notConnected, .att(0x0E): true
        case .other: original != nil
        default: false
        }
    }
}
