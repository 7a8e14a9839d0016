import GattherdSync

/// The subscription to one characteristic, shared by all its listeners.
final class SharedSubscription: NotificationSink {
    private struct State: Sendable {
        var listeners: [UInt64: Mailbox<CharacteristicValue>] = [:]
        /// True while the subscription is kept without listeners.
        var isPinned = false
        var isFinished = false
    }

    let characteristic: RemoteCharacteristic
    let token: SubscriptionToken
    private let values: Broadcast<CharacteristicValue>
    private let state = Locked(State())

    /// `values` receives every value too.
    init(_ characteristic: RemoteCharacteristic, _ token: SubscriptionToken, _ values: Broadcast<CharacteristicValue>) {
        self.characteristic = characteristic
        self.token = token
        self.values = values
    }

    func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        let value = CharacteristicValue(
            characteristic: CharacteristicID(characteristic),
            octets: octets.indices.map { octets[$0] },
            time: time
        )
        for mailbox in state.withLock({ Array($0.listeners.values) }) { mailbox.push(value) }
        values.send(value)
    }

    /// Returns false if the subscription has ended.
    func add(_ mailbox: Mailbox<CharacteristicValue>, as id: UInt64) -> Bool {
        state.withLock { state in
            guard !state.isFinished else { return false }
            state.listeners[id] = mailbox
            return true
        }
    }

    func remove(_ id: UInt64) {
        state.withLock { $0.listeners[id] = nil }
    }

    /// Returns false if the subscription has ended.
    @discardableResult
    func pin(_ isPinned: Bool) -> Bool {
        state.withLock { state in
            state.isPinned = isPinned
            return !state.isFinished
        }
    }

    var isPinned: Bool { state.withLock { $0.isPinned } }

    /// True if there are no listeners and the subscription is not kept.
    var isIdle: Bool { state.withLock { $0.listeners.isEmpty && !$0.isPinned } }

    func finish(_ error: BluetoothError?) {
        let listeners = state.withLock { state in
            state.isFinished = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for mailbox in listeners { mailbox.finish(error) }
    }
}
