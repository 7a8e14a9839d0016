import GattherdBluetooth
import GattherdModel
import GattherdSync

/// The watches on values of connected devices.
final class DeviceWatches: Sendable {
    /// The values of one watch.
    final class Watch: NotificationSink {
        /// The maximum number of values that wait for the client.
        private static let maximumWaiting = 4096

        let peripheral: PeripheralID
        let values: AsyncStream<DeviceValue>
        private let post: AsyncStream<DeviceValue>.Continuation
        private let reason = Locked<BluetoothError?>(nil)

        init(_ peripheral: PeripheralID) {
            self.peripheral = peripheral
            (values, post) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.maximumWaiting))
        }

        /// The error that ended the watch; `nil` while it runs or after the client ended it.
        var end: BluetoothError? { reason.withLock(\.self) }

        func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
            let value = DeviceValue(octets.indices.map { octets[$0] }, at: time)
            guard case .dropped = post.yield(value) else { return }
            finish(BluetoothError(.busy, "values arrive faster than they are read"))
        }

        func finish(_ error: BluetoothError) {
            reason.withLock { $0 = $0 ?? error }
            post.finish()
        }
    }

    private let watches = Locked<[SubscriptionToken: Watch]>([:])

    func start(_ token: SubscriptionToken, _ peripheral: PeripheralID) -> Watch {
        let watch = Watch(peripheral)
        watches.withLock { $0[token] = watch }
        return watch
    }

    func end(_ token: SubscriptionToken) {
        watches.withLock { $0[token] = nil }
    }

    /// Ends the watches that an event of the central affects.
    func handle(_ event: CentralEvent) {
        switch event {
        case .unavailable(let detail): finish(BluetoothError(.serviceUnavailable, detail)) { _, _ in true }
        case .disconnected(let id), .peripheralRemoved(let id):
            let error = BluetoothError(.notConnected, "\(id.address) was disconnected")
            finish(error) { _, watch in watch.peripheral == id }
        case .subscriptionEnded(let ended, _):
            let error = BluetoothError(.unknownAttribute, "the subscription has ended")
            finish(error) { token, _ in token == ended }
        default: break
        }
    }

    private func finish(_ error: BluetoothError, _ isConcerned: (SubscriptionToken, Watch) -> Bool) {
        let ended = watches.withLock { $0.filter { isConcerned($0.key, $0.value) }.values }
        for watch in ended { watch.finish(error) }
    }
}
