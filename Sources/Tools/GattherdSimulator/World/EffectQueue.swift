import GattherdDBus

/// The effects of the current event, in order.
struct EffectQueue: Sendable {
    private var effects: [Effect] = []

    mutating func append(_ effect: Effect) {
        effects.append(effect)
    }

    mutating func reply(_ call: CallToken, _ value: DBusValue? = nil) {
        effects.append(.reply(call, value))
    }

    mutating func fail(_ call: CallToken, _ error: DBusError) {
        effects.append(.fail(call, error))
    }

    /// Appends a `PropertiesChanged` signal, unless there is nothing to signal.
    mutating func changed(
        _ path: String,
        _ interface: String,
        _ properties: [Property],
        invalidated: [String] = []
    ) {
        guard !properties.isEmpty || !invalidated.isEmpty else { return }
        effects.append(.changed(path: path, interface: interface, properties, invalidated: invalidated))
    }

    mutating func record(_ event: TruthEvent) {
        effects.append(.record(event))
    }

    /// Removes the effects that clients could observe: bluetoothd crashed before it sent them.
    mutating func removeBusEffects() {
        effects.removeAll { $0.isOnBus }
    }

    /// Removes and returns all effects.
    mutating func dequeueAll() -> [Effect] {
        defer { effects.removeAll() }
        return effects
    }
}

extension Effect {
    /// True if clients can observe the effect on the bus.
    fileprivate var isOnBus: Bool {
        switch self {
        case .reply, .fail, .changed, .added, .removed, .ask, .notifyAgent: true
        case .openSocket, .closeSocket, .send, .record, .stopDaemon, .startDaemon: false
        }
    }
}
