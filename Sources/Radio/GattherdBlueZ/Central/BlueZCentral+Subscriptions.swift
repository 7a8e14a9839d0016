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
        channel.add(NotificationChannel.Subscriber(token: token, sink: sink))
        paths[token] = object
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
        guard let path = paths.removeValue(forKey: token), let channel = channels[path] else { return }
        guard channel.subscribers.allSatisfy({ $0.token == token }) else { return channel.remove(token) }
        if tableChanges.hold(channel) {
            channels[path] = nil
            channel.endRun(isAnswered: false)
            channel.decide()
            channel.remove(token)
        } else if channel.takesSignals {
            try await stopNotify(channel)
        } else {
            close(channel)
        }
    }

    /// Until bluetoothd answers, what comes is still for the subscriber.
    private func stopNotify(_ channel: NotificationChannel) async throws(BluetoothError) {
        channel.isEnding = true
        stopping[channel.path, default: 0] += 1
        defer {
            close(channel)
            stopping[channel.path] = stopping[channel.path].flatMap { $0 > 1 ? $0 - 1 : nil }
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
        if channels[channel.path] === channel { channels[channel.path] = nil }
    }

    private func channel(_ path: String, of characteristic: RemoteCharacteristic) -> NotificationChannel {
        if let channel = channels[path], !channel.isEnding { return channel }
        let channel =
            tableChanges.removeHeld(path, of: characteristic.peripheral)
            ?? NotificationChannel(characteristic, path: path, burst: burst)
        channel.openReads = openReads[path] ?? 0
        channels[path] = channel
        return channel
    }

    // MARK: - The two ways

    /// Asks for signals: values may come before the answer, and having a session already is success.
    private func startNotify(_ channel: NotificationChannel) async throws(BluetoothError) {
        channel.takesSignals = true
        do throws(DBusError) {
            try await startNotifying(channel)
        } catch  where error.name == "org.bluez.Error.InProgress" {
            // The session has outlived the last link.
        } catch {
            throw BluetoothError(error, missing: .unknownAttribute)
        }
        try checkCurrent(channel)
        channel.isConfirmed = true
    }

    /// BlueZ up to 5.83 never answers when the peripheral refuses; it then must be asked nothing more about the
    /// characteristic, least of all `StopNotify`, which ends it.
    private func acquireNotify(_ channel: NotificationChannel) async throws(BluetoothError) {
        let reply = try await awaitAcquisition(channel)
        try checkCurrent(channel)
        guard case .fileDescriptor(let descriptor) = reply.first else {
            throw BluetoothError(.other, "AcquireNotify gave no socket")
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

    /// Calls `AcquireNotify`; what was given up is still under way.
    private func awaitAcquisition(_ channel: NotificationChannel) async throws(BluetoothError) -> [DBusValue] {
        acquisitions[channel.path] = channel.peripheral
        var isUnderWay = false
        defer {
            if !isUnderWay { acquisitions[channel.path] = nil }
            wakeWaiters(of: channel.peripheral)
        }
        do throws(DBusError) {
            return try await call(channel.path, BlueZ.characteristic, "AcquireNotify", [.properties([:])])
        } catch {
            let fault = BluetoothError(error, missing: .unknownAttribute)
            isUnderWay = fault.kind == .cancelled || fault.kind == .timedOut
            throw fault
        }
    }

    /// The link, or bluetoothd, may have gone while the answer was on its way.
    private func checkCurrent(_ channel: NotificationChannel) throws(BluetoothError) {
        guard channels[channel.path] === channel else {
            throw BluetoothError(.notConnected, "\(channel.peripheral.address) was disconnected")
        }
    }

    // MARK: - Ends

    /// The socket of a link that ends is closed just before the link's end is told.
    private func socketEnded(_ channel: NotificationChannel) {
        channel.socket = nil
        loop.schedule(after: .milliseconds(500)) {
            guard self.channels[channel.path] === channel, channel.socket == nil else { return }
            self.endChannel(channel.path)
        }
    }

    /// A subscription that ended although the link is up.
    func endChannel(_ path: String) {
        guard let channel = channels[path] else { return }
        close(channel)
        for subscriber in channel.subscribers where paths.removeValue(forKey: subscriber.token) != nil {
            tell(.subscriptionEnded(subscriber.token, channel.peripheral))
        }
    }

    private func abandon(_ token: SubscriptionToken, of channel: NotificationChannel, after error: BluetoothError) {
        channel.remove(token)
        if paths[token] == channel.path { paths[token] = nil }
        guard channel.subscribers.isEmpty, channels[channel.path] === channel else { return }
        channels[channel.path] = nil
        guard !tableChanges.hold(channel) else { return }
        channel.close()
        // The answer that nobody waits for may still be yes.
        if channel.takesSignals, error.kind == .cancelled || error.kind == .timedOut { endSession(channel.path) }
    }

    /// Closes all; true when there was a socket among them.
    func closeChannels() -> Bool {
        var hadSockets = closeWriters()
        for path in Set(paths.values) {
            guard let channel = channels[path] else { continue }
            hadSockets = hadSockets || channel.socket != nil
            channel.close()
            channels[path] = nil
        }
        for channel in tableChanges.removeAll() {
            hadSockets = hadSockets || channel.socket != nil
            channel.close()
        }
        paths = [:]
        return hadSockets
    }
}
