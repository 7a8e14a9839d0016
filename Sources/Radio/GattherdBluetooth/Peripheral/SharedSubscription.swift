import GattherdSync

/// A consumer of the values of a subscription.
protocol SubscriptionListener: Sendable {
    func receive(_ value: CharacteristicValue)

    func end(_ end: SubscriptionEnd)
}

/// The cause of the end of a subscription.
enum SubscriptionEnd: Sendable {
    /// This program ended it.
    case requested
    case ended(BluetoothError)
    /// The link was lost, for a reason that is not known yet.
    case linkLost(BluetoothError)

    var error: BluetoothError? {
        switch self {
        case .requested: nil
        case .ended(let error), .linkLost(let error): error
        }
    }
}

extension Mailbox: SubscriptionListener where Element == CharacteristicValue {
    func receive(_ value: CharacteristicValue) { push(value) }
    func end(_ end: SubscriptionEnd) { finish(end.error) }
}

/// The subscription to one characteristic, shared by all its listeners.
final class SharedSubscription: NotificationSink {
    private struct State: Sendable {
        var listeners: [UInt64: any SubscriptionListener] = [:]
        /// True while the subscription is kept without listeners.
        var isPinned = false
        var isFinished = false
    }

    let characteristic: RemoteCharacteristic
    let token: SubscriptionToken
    private let values: Broadcast<CharacteristicValue>
    private let log: OperationLog
    private let state = Locked(State())

    /// Creates a subscription that passes every value to the listeners and to `link.values`.
    init(_ characteristic: RemoteCharacteristic, _ token: SubscriptionToken, _ link: Link) {
        self.characteristic = characteristic
        self.token = token
        values = link.values
        log = link.log
    }

    func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        let value = CharacteristicValue(
            characteristic: CharacteristicID(characteristic),
            octets: octets.indices.map { octets[$0] },
            time: time
        )
        log.bytes(.notification, value.characteristic, value.octets)
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.receive(value) }
        values.send(value)
    }

    /// Returns false if the subscription has ended.
    func add(_ listener: any SubscriptionListener, as id: UInt64) -> Bool {
        state.withLock { state in
            guard !state.isFinished else { return false }
            state.listeners[id] = listener
            return true
        }
    }

    /// Removes a listener; returns true if there was one.
    func remove(_ id: UInt64) -> Bool {
        state.withLock { $0.listeners.removeValue(forKey: id) != nil }
    }

    /// Sets whether the subscription is kept without listeners; returns false if it has ended.
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

    func finish(_ end: SubscriptionEnd) {
        let listeners = state.withLock { state in
            state.isFinished = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.end(end) }
    }
}
