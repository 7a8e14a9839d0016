import GattherdBluetooth
import GattherdDBus
import GattherdSync

/// The subscriptions to characteristics, and the values that bluetoothd sends for them; on the Bluetooth thread only.
final class NotificationClient {
    /// The time after a socket's end in which the signal of the link's end arrives.
    private static let linkEndDelay = Duration.milliseconds(500)

    private let client: BluetoothdClient
    private let objects: BlueZObjects
    private let tableChanges: TableChanges
    private let sequencer: SignalSequencer
    private let acquirer: SocketAcquirer
    private let starter: NotificationStarter
    private let notifier: SinkNotifier
    private let events: EventQueue
    private let loop: EventLoop
    private var subscriptions = Subscriptions()
    /// The channels with sockets; some may be closed.
    private var socketChannels: [NotificationChannel] = []

    init(
        _ client: BluetoothdClient,
        _ objects: BlueZObjects,
        _ tableChanges: TableChanges,
        _ sequencer: SignalSequencer,
        _ acquirer: SocketAcquirer,
        _ sockets: NotificationSockets,
        _ events: EventQueue,
        on loop: EventLoop
    ) {
        (self.client, self.objects, self.tableChanges) = (client, objects, tableChanges)
        (self.sequencer, self.acquirer, self.events, self.loop) = (sequencer, acquirer, events, loop)
        starter = NotificationStarter(client, acquirer, sequencer, sockets)
        notifier = SinkNotifier(on: loop)
    }

    /// The number of entries of all tables.
    var count: Int { subscriptions.count }

    // MARK: - Subscribers

    func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        _ subscriber: NotificationChannel.Subscriber
    ) async throws(BluetoothError) {
        let object = try objects.path(of: characteristic)
        tableChanges.track(characteristic.peripheral)
        let channel = channel(object, of: characteristic)
        subscriptions.add(subscriber, to: channel)
        do throws(BluetoothError) {
            guard channel.socket == nil, !channel.isConfirmed else { return }
            // BlueZ before 5.80 has no sockets for indications.
            let isIndicated = !characteristic.properties.isEmpty && !characteristic.properties.contains(.notify)
            try await start(channel, by: isIndicated ? .signals : path)
        } catch {
            abandon(subscriber.token, of: channel, after: error)
            throw error
        }
    }

    private func channel(_ path: String, of characteristic: RemoteCharacteristic) -> NotificationChannel {
        if let channel = subscriptions[path], !channel.isEnding { return channel }
        let channel =
            tableChanges.removeHeld(path, of: characteristic.peripheral)
            ?? NotificationChannel(characteristic, path: path, notifier: notifier)
        subscriptions.insert(channel)
        return channel
    }

    private func start(_ channel: NotificationChannel, by path: NotificationPath) async throws(BluetoothError) {
        switch path {
        case .signals:
            try await starter.startNotify(channel)
            try checkCurrent(channel)
            channel.isConfirmed = true
        case .socket:
            let descriptor = try await starter.acquireNotify(channel)
            try checkCurrent(channel)
            try starter.open(descriptor, for: channel) { [weak self] in self?.socketEnded($0) }
            socketChannels.removeAll { $0.socket == nil || $0 === channel }
            socketChannels.append(channel)
        }
    }

    /// Throws if the link, or bluetoothd, has gone while the answer was on its way.
    private func checkCurrent(_ channel: NotificationChannel) throws(BluetoothError) {
        guard subscriptions.isCurrent(channel) else {
            throw BluetoothError(.notConnected, "\(channel.peripheral.address) was disconnected")
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

    func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError) {
        guard let channel = subscriptions.removePath(of: token) else { return }
        guard channel.subscribers.allSatisfy({ $0.token == token }) else { return channel.remove(token) }
        if tableChanges.hold(channel) {
            subscriptions.remove(channel)
            channel.endRun(isAnswered: false)
            channel.decide()
            channel.remove(token)
        } else if channel.takesSignals, !acquirer.hasUnansweredNotify(channel.path) {
            try await stopNotify(channel)
        } else {
            close(channel)
        }
    }

    /// Calls `StopNotify`; until the answer the subscriber receives further values.
    private func stopNotify(_ channel: NotificationChannel) async throws(BluetoothError) {
        guard !Task.isCancelled else {
            // A cancelled task cannot wait for an answer.
            close(channel)
            endSession(channel.path)
            throw BluetoothError(.cancelled, "cancelled")
        }
        channel.isEnding = true
        subscriptions.beginEnding(channel.path)
        defer {
            close(channel)
            subscriptions.endEnding(channel.path)
        }
        do throws(DBusError) {
            try await client.call(channel.path, BlueZ.characteristic, "StopNotify")
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

    // MARK: - Values

    /// Passes the value of a characteristic on; returns true if the signal has no other content.
    ///
    /// Every notification passes here: nothing is decoded, copied or allocated.
    func receive(_ signal: borrowing DBusSignal, follows: Bool) -> Bool {
        guard let change = signal.changedBytes("Value", of: BlueZ.characteristic) else {
            sequencer.receiveOtherSignal(follows: follows)
            return false
        }
        if let channel = subscriptions.channel(for: signal) {
            if channel.takesSignals, !socketChannels.isEmpty { receiveWaiting(of: channel.peripheral) }
            sequencer.receive(change.bytes, for: channel, follows: follows)
        } else {
            sequencer.endRun(isAnswered: !follows)
        }
        return change.isAlone
    }

    /// Delivers the values that wait in a peripheral's sockets.
    ///
    /// bluetoothd wrote them before it sent the signal that is being handled, such as the answer that ends a download.
    private func receiveWaiting(of peripheral: PeripheralID) {
        for channel in socketChannels where channel.peripheral == peripheral { channel.socket?.receiveWaiting() }
    }

    /// Delivers the values that wait in the sockets.
    func receiveWaiting() {
        for channel in subscriptions.all { channel.socket?.receiveWaiting() }
    }

    func beginRead(_ path: String) {
        subscriptions.beginRead(path)
    }

    /// Ends our own read at its answer; `octets` is `nil` if it failed.
    func endRead(_ path: String, _ octets: [UInt8]?) {
        subscriptions.endRead(path, octets)
    }

    // MARK: - Ends

    /// Ends the channel of a socket that ended, unless the link ends too: its signal comes just after that.
    private func socketEnded(_ channel: NotificationChannel) {
        channel.socket = nil
        loop.schedule(after: Self.linkEndDelay) { [self] in
            guard subscriptions.isCurrent(channel), channel.socket == nil else { return }
            end(channel)
        }
    }

    /// Ends the subscriptions to a characteristic that was removed.
    func remove(_ path: String) {
        tableChanges.removeHeld(path)?.close()
        if let channel = subscriptions[path] { end(channel) }
    }

    /// Ends the subscriptions to a characteristic whose session bluetoothd has ended.
    func sessionEnded(_ path: String) {
        // BlueZ signals the end of a session that we end before it answers. We may have ended an earlier session
        // without waiting for the answer.
        guard !subscriptions.isEnding(path), let channel = subscriptions[path], channel.takesSignals,
            !channel.isStarting
        else { return }
        end(channel)
    }

    private func end(_ channel: NotificationChannel) {
        close(channel)
        for token in subscriptions.removeSubscribers(of: channel) {
            events.push(.subscriptionEnded(token, channel.peripheral))
        }
    }

    /// Ends the sessions that were held while a table changed.
    func endHeldSessions(of id: PeripheralID) {
        endSessions(of: tableChanges.endChange(of: id))
    }

    /// Ends everything that lives as long as the link.
    func linkEnded(_ id: PeripheralID) {
        endSessions(of: tableChanges.untrack(id) + subscriptions.removeAll(of: id))
    }

    private func endSessions(of channels: [NotificationChannel]) {
        for channel in channels {
            channel.close()
            if channel.takesSignals { endSession(channel.path) }
        }
    }

    /// Ends a session of signals in bluetoothd.
    ///
    /// Otherwise BlueZ would enable the notifications by itself at the next connection, and the values before our next
    /// subscription would have no subscriber. A characteristic that may be acquired has no session.
    private func endSession(_ path: String) {
        guard !acquirer.hasUnansweredNotify(path) else { return }
        client.post(path, BlueZ.characteristic, "StopNotify")
    }

    /// Closes all channels and sockets.
    func closeAll() {
        for channel in subscriptions.removeAll() + tableChanges.removeAll() { channel.close() }
        socketChannels.removeAll()
    }
}
