public import GattherdBluetooth
import GattherdDBus
import GattherdModel
import GattherdSync

extension BlueZCentral {
    public func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        token: SubscriptionToken,
        sink: any NotificationSink
    ) async throws(BluetoothError) {
        let object = try attributePath(characteristic)
        tableChanges.track(characteristic.peripheral)
        let channel = channel(object, of: characteristic)
        subscriptions.add(NotificationChannel.Subscriber(token: token, sink: sink), to: channel)
        do throws(BluetoothError) {
            guard channel.socket == nil, !channel.isConfirmed else { return }
            switch path {
            case .signals: try await startNotify(channel)
            case .socket: try await acquireNotify(channel)
            }
        } catch {
            abandon(token, of: channel, after: error)
            throw error
        }
    }

    public func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError) {
        guard let channel = subscriptions.removePath(of: token) else { return }
        guard channel.subscribers.allSatisfy({ $0.token == token }) else { return channel.remove(token) }
        if tableChanges.hold(channel) {
            subscriptions.remove(channel)
            channel.endRun(isAnswered: false)
            channel.decide()
            channel.remove(token)
        } else if channel.takesSignals {
            try await stopNotify(channel)
        } else {
            close(channel)
        }
    }

    /// Calls `StopNotify`; until the answer the subscriber receives what comes.
    private func stopNotify(_ channel: NotificationChannel) async throws(BluetoothError) {
        channel.isEnding = true
        subscriptions.beginEnding(channel.path)
        defer {
            close(channel)
            subscriptions.endEnding(channel.path)
        }
        do throws(DBusError) {
            try await call(channel.path, BlueZ.characteristic, "StopNotify")
        } catch {
            let fault = BluetoothError(error, missing: .unknownAttribute)
            let isStopped = error.name == "org.bluez.Error.Failed" || fault.kind == .notConnected
            guard isStopped || fault.kind == .unknownAttribute else { throw fault }
        }
    }

    private func close(_ channel: NotificationChannel) {
        channel.close()
        subscriptions.remove(channel)
    }

    private func channel(_ path: String, of characteristic: RemoteCharacteristic) -> NotificationChannel {
        if let channel = subscriptions[path], !channel.isEnding { return channel }
        let channel =
            tableChanges.removeHeld(path, of: characteristic.peripheral)
            ?? NotificationChannel(characteristic, path: path, notifier: notifier)
        subscriptions.insert(channel)
        return channel
    }

    // MARK: - Signals

    /// Requests signals: values may come before the answer, and an existing session is success.
    private func startNotify(_ channel: NotificationChannel) async throws(BluetoothError) {
        channel.takesSignals = true
        askForOtherSubscribers(channel.path)
        let path = channel.path
        do throws(DBusError) {
            try await call(
                path,
                BlueZ.characteristic,
                "StartNotify",
                onReply: { [weak self] outcome in
                    guard case .success = outcome else { return }
                    self?.assumeIsolated { $0.subscriptions[path]?.recordStart(at: $0.signals.gaps) }
                }
            )
        } catch  where error.name == "org.bluez.Error.InProgress" {
            // The session has outlived the last link.
        } catch {
            throw BluetoothError(error, missing: .unknownAttribute)
        }
        try checkCurrent(channel)
        channel.isConfirmed = true
    }

    /// Finds out whether another client has notifications already.
    private func askForOtherSubscribers(_ path: String) {
        guard let bus, let owner else { return }
        let property: [DBusValue] = [.string(BlueZ.characteristic), .string("Notifying")]
        bus.ask(owner, path, BlueZ.properties, "Get", property, timeout: limits.operation) { [weak self] outcome in
            let isQuiet = (try? outcome.get().first?.bool) == false
            self?.assumeIsolated { $0.subscriptions[path]?.recordQuiet(at: isQuiet ? $0.signals.gaps : nil) }
        }
    }

    // MARK: - Sockets

    /// Requests a socket.
    ///
    /// BlueZ up to 5.83 never answers when the peripheral refuses.
    ///
    /// Then no other call may concern the characteristic, least of all `StopNotify`, which ends bluetoothd.
    private func acquireNotify(_ channel: NotificationChannel) async throws(BluetoothError) {
        let reply = try await awaitAcquisition(channel)
        try checkCurrent(channel)
        guard case .fileDescriptor(let descriptor) = reply.first else {
            throw BluetoothError(.other, "AcquireNotify returned no socket")
        }
        do throws(WatchError) {
            channel.socket = try NotificationSocket(
                descriptor,
                on: loop,
                deliver: { [unowned channel] octets, time in channel.deliver(octets, at: time) },
                ended: { [weak channel] in channel.map { self.socketEnded($0) } }
            )
        } catch {
            throw BluetoothError(.other, error.description)
        }
    }

    /// Calls `AcquireNotify`; a call that was given up counts as unanswered until the link ends.
    private func awaitAcquisition(_ channel: NotificationChannel) async throws(BluetoothError) -> [DBusValue] {
        subscriptions.beginAcquisition(channel.path, of: channel.peripheral)
        var isUnanswered = false
        defer {
            if !isUnanswered { subscriptions.endAcquisition(channel.path) }
            waiters.wake(channel.peripheral)
        }
        do throws(DBusError) {
            return try await call(channel.path, BlueZ.characteristic, "AcquireNotify", [.properties([:])])
        } catch {
            let fault = BluetoothError(error, missing: .unknownAttribute)
            isUnanswered = fault.kind == .cancelled || fault.kind == .timedOut
            throw fault
        }
    }

    /// Waits for the answers to all `AcquireNotify`, also in a task that is cancelled.
    func finishAcquisitions() async {
        let deadline = SuspendingClock.now + Self.acquisitionPatience
        while let id = subscriptions.acquiringPeripheral {
            let reason = await sleepUninterrupted(on: id, for: deadline - SuspendingClock.now)
            guard reason == .changed else { return }
        }
    }

    /// Throws if the link, or bluetoothd, has gone while the answer was on its way.
    private func checkCurrent(_ channel: NotificationChannel) throws(BluetoothError) {
        guard subscriptions.isCurrent(channel) else {
            throw BluetoothError(.notConnected, "\(channel.peripheral.address) was disconnected")
        }
    }

    // MARK: - Ends

    /// Ends the channel of a socket that ended, unless the link ends too: its signal comes just after that.
    private func socketEnded(_ channel: NotificationChannel) {
        channel.socket = nil
        loop.schedule(after: Self.linkEndDelay) {
            guard self.subscriptions.isCurrent(channel), channel.socket == nil else { return }
            self.endChannel(channel.path)
        }
    }

    /// Ends the subscriptions to a characteristic although the link is up.
    func endChannel(_ path: String) {
        guard let channel = subscriptions[path] else { return }
        close(channel)
        for token in subscriptions.removeSubscribers(of: channel) {
            publish(.subscriptionEnded(token, channel.peripheral))
        }
    }

    private func abandon(_ token: SubscriptionToken, of channel: NotificationChannel, after error: BluetoothError) {
        subscriptions.remove(token, from: channel)
        guard channel.subscribers.isEmpty, subscriptions.isCurrent(channel) else { return }
        subscriptions.remove(channel)
        guard !tableChanges.hold(channel) else { return }
        channel.close()
        // The abandoned call may still succeed.
        if channel.takesSignals, error.kind == .cancelled || error.kind == .timedOut { endSession(channel.path) }
    }

    /// Ends a session of signals in bluetoothd.
    ///
    /// Otherwise BlueZ would enable the notifications by itself at the next connection, and the values before our next
    /// subscription would have no subscriber.
    func endSession(_ path: String) {
        guard let bus, let owner else { return }
        try? bus.post(owner, path, BlueZ.characteristic, "StopNotify")
    }

    /// Closes channels, and ends their sessions in bluetoothd.
    func endSessions(of channels: [NotificationChannel]) {
        for channel in channels {
            channel.close()
            if channel.takesSignals { endSession(channel.path) }
        }
    }

    /// Closes all channels and sockets; returns true if there was a socket among them.
    func closeChannels() -> Bool {
        let channels = subscriptions.removeAll() + tableChanges.removeAll()
        let hadSockets = channels.contains { $0.socket != nil }
        for channel in channels { channel.close() }
        return writers.closeAll() || hadSockets
    }
}
