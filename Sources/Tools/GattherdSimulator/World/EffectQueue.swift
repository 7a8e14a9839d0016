import GattherdDBus

/// The effects of the current event, in order.
final class EffectQueue {
    private var effects: [Effect] = []

    func append(_ effect: Effect) {
        effects.append(effect)
    }

    func reply(_ call: CallToken, _ value: DBusValue? = nil) {
        effects.append(.reply(call, value))
    }

    func fail(_ call: CallToken, _ error: DBusError) {
        effects.append(.fail(call, error))
    }

    func reply(_ call: MethodCall, _ value: DBusValue? = nil) {
        reply(call.token, value)
    }

    func fail(_ call: MethodCall, _ error: DBusError) {
        fail(call.token, error)
    }

    /// Appends a `PropertiesChanged` signal, unless there is nothing to signal.
    func changed(
        _ path: String,
        _ interface: String,
        _ properties: [Property],
        invalidated: [String] = []
    ) {
        guard !properties.isEmpty || !invalidated.isEmpty else { return }
        effects.append(.changed(path: path, interface: interface, properties, invalidated: invalidated))
    }

    func record(_ event: TruthEvent) {
        effects.append(.record(event))
    }

    /// Removes the effects that clients could observe: bluetoothd crashed before it sent them.
    func removeBusEffects() {
        effects.removeAll { $0.isOnBus }
    }

    /// Removes and returns all effects.
    func dequeueAll() -> [Effect] {
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
