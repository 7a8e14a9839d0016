import GattherdSync

/// One listener of a characteristic, over all links.
final class LastingListener: SubscriptionListener {
    enum Event: Sendable {
        case subscribed
        case value(CharacteristicValue)
        case interrupted(BluetoothError?)
        case refused(BluetoothError)
    }

    private enum Phase {
        case detached
        case joining
        case subscribed
        /// The subscription was refused, or failed five times in a row, on this link and table.
        case refused
    }

    private struct State {
        var phase = Phase.detached
        /// The number of subscriptions on this link and table since one that lasted.
        var joins = 0
        /// True if the link or the table has changed since the current subscription was requested.
        var isOutdated = false
        /// The time of the confirmation of the current subscription.
        var start: ContinuousClock.Instant?
        /// True between the loss of a subscription's link and the event with its reason.
        var hasLostLink = false
    }

    /// The maximum number of subscriptions in a row on one link and table, of a peripheral that keeps ending them.
    private static let maximumJoins = 5
    /// Half the pause before the second attempt; the pauses double.
    private static let firstPause = Duration.milliseconds(50)
    /// The errors that may be temporary, with ATT's unlikely error and insufficient resources.
    ///
    /// Errors of the link count as temporary: BlueZ may report them although the link stays up.
    private static let briefKinds: Set<BluetoothError.Kind> = [
        .timedOut, .cancelled, .busy, .att(0x0E), .att(0x11), .notConnected, .serviceUnavailable, .adapterUnavailable,
    ]

    let characteristic: CharacteristicID
    let mailbox: Mailbox<Event>
    private let state = Locked(State())
    /// The age at which a subscription has lasted: its end is the first again.
    private let stableAfter: Duration

    init(_ characteristic: CharacteristicID, _ policy: BufferingPolicy, stableAfter: Duration = .seconds(10)) {
        self.characteristic = characteristic
        self.stableAfter = stableAfter
        mailbox = Mailbox(policy)
    }

    /// True if the listener waits for a subscription that may be requested now.
    var canJoin: Bool { state.withLock { $0.phase == .detached && $0.joins < Self.maximumJoins } }

    /// Returns true if the caller has to subscribe.
    func beginJoining() -> Bool {
        state.withLock { state in
            guard state.phase == .detached, state.joins < Self.maximumJoins else { return false }
            (state.phase, state.isOutdated) = (.joining, false)
            state.joins += 1
            return true
        }
    }

    /// Handles the peripheral's confirmation, which may arrive after the first value.
    func confirm() {
        state.withLock { state in
            guard state.phase == .joining else { return }
            (state.phase, state.start) = (.subscribed, .now)
            mailbox.push(.subscribed)
        }
    }

    func receive(_ value: CharacteristicValue) {
        confirm()
        mailbox.push(.value(value))
    }

    func end(_ end: SubscriptionEnd) {
        state.withLock { state in
            defer { state.phase = .detached }
            guard state.phase == .subscribed else { return }
            if let start = state.start.take(), start.duration(to: .now) >= stableAfter { state.joins = 0 }
            switch end {
            case .requested: mailbox.push(.interrupted(nil))
            case .ended(let error): mailbox.push(.interrupted(error))
            case .linkLost: state.hasLostLink = true
            }
        }
    }

    /// Handles the reason of the loss of a link.
    func reportLoss(_ error: BluetoothError?) {
        state.withLock { state in
            guard state.hasLostLink else { return }
            state.hasLostLink = false
            mailbox.push(.interrupted(error))
        }
    }

    /// Handles a failed subscription; a temporary error, or one of an earlier link or table, is not a refusal.
    ///
    /// - Returns: The pause before another attempt on this link; `nil` for none.
    func fail(_ error: BluetoothError) -> Duration? {
        state.withLock { state in
            guard state.phase == .joining else { return nil }
            let isBrief = Self.briefKinds.contains(error.kind) && state.joins < Self.maximumJoins
            guard isBrief || state.isOutdated else {
                state.phase = .refused
                mailbox.push(.refused(error))
                return nil
            }
            state.phase = .detached
            return Self.firstPause * (1 << state.joins)
        }
    }

    /// Allows another subscription, on a new link or after a change of the services.
    func reset() {
        state.withLock { state in
            (state.joins, state.isOutdated) = (0, true)
            if state.phase == .refused { state.phase = .detached }
        }
    }
}

/// The lasting listeners of one peripheral.
final class LastingListeners: Sendable {
    private struct State: Sendable {
        var listeners: [UInt64: LastingListener] = [:]
        /// The listeners without a consumer, which only keep a subscription.
        var kept: Set<UInt64> = []
        var isFinished = false
    }

    private let state = Locked(State())

    var isEmpty: Bool { state.withLock { $0.listeners.isEmpty } }
    var all: [UInt64: LastingListener] { state.withLock { $0.listeners } }
    var characteristics: [CharacteristicID] { all.values.map(\.characteristic) }

    func add(_ listener: LastingListener, as id: UInt64, isKept: Bool = false) {
        let isFinished = state.withLock { state in
            guard !state.isFinished else { return true }
            state.listeners[id] = listener
            if isKept { state.kept.insert(id) }
            return false
        }
        if isFinished { listener.mailbox.finish() }
    }

    func remove(_ id: UInt64) {
        state.withLock { state in
            state.listeners[id] = nil
            state.kept.remove(id)
        }
    }

    /// Removes and returns the listeners without a consumer that `isUnwanted` admits.
    func removeKept(where isUnwanted: (CharacteristicID) -> Bool) -> [UInt64] {
        state.withLock { state in
            let ids = state.kept.filter { state.listeners[$0].map { isUnwanted($0.characteristic) } ?? true }
            for id in ids { state.listeners[id] = nil }
            state.kept.subtract(ids)
            return Array(ids)
        }
    }

    func reset() {
        for listener in all.values { listener.reset() }
    }

    /// Publishes the reason of the loss of a link.
    func reportLoss(_ error: BluetoothError?) {
        for listener in all.values { listener.reportLoss(error) }
    }

    /// Ends all sequences; the central is closed.
    func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.mailbox.finish() }
    }
}
