/// The identifier of a running effect, made of any hashable value.
public struct EffectID: Hashable, Sendable, ExpressibleByStringLiteral {
    private let value: any Hashable & Sendable

    public init(_ value: some Hashable & Sendable) {
        self.value = value
    }

    public init(stringLiteral value: String) {
        self.value = value
    }

    public static func == (left: EffectID, right: EffectID) -> Bool {
        AnyHashable(left.value) == AnyHashable(right.value)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(AnyHashable(value))
    }
}

/// The way a runner performs one effect.
public enum EffectAction<Event: Sendable>: Sendable {
    /// The effect is complete.
    case none
    /// Passes the event to the machine next.
    case send(Event)
    /// Starts a task, which may send any number of events.
    ///
    /// A running task of the same identifier is cancelled first: the latest one wins.
    case start(EffectID?, @Sendable (EffectSender<Event>) async -> Void)
    /// Cancels the task of that identifier, if it runs.
    case cancel(EffectID)
}

/// The function by which the task of an effect sends events.
///
/// Events of a cancelled task, or after the end of the runner, are dropped.
public struct EffectSender<Event: Sendable>: Sendable {
    let send: @Sendable (Event) -> Void

    public func callAsFunction(_ event: Event) {
        send(event)
    }
}

/// The error of an event that was sent after the end of a runner.
public struct TransducerFinished: Error, Hashable, CustomStringConvertible {
    public init() {}

    public var description: String { "the transducer has finished and accepts no more events" }
}
