/// A pure state machine: events in, effects and an output out.
///
/// A transducer is a value without I/O, without a clock and without randomness, so tests can drive it in virtual time.
/// ``TransducerRunner`` performs its effects. Time is a duration since any fixed instant.
public protocol Transducer<Event, Effect, Output>: Sendable {
    associatedtype Event: Sendable
    /// A request to the outside world, as a value.
    associatedtype Effect: Sendable
    /// The part of the state that observers see.
    associatedtype Output: Equatable & Sendable = Self

    var output: Output { get }

    /// True in a terminal state, which no event can leave.
    var isFinished: Bool { get }

    /// The time at which ``tick`` must be handled; `nil` while nothing depends on time.
    var deadline: Duration? { get }

    /// The event for ``deadline``; `nil` for transducers without deadlines.
    static var tick: Event? { get }

    /// Applies one event and returns the resulting effects, in order.
    mutating func handle(_ event: Event, at now: Duration) -> [Effect]
}

extension Transducer {
    public var isFinished: Bool { false }
    public var deadline: Duration? { nil }
    public static var tick: Event? { nil }
}

extension Transducer where Output == Self {
    public var output: Self { self }
}

/// Two transducers side by side, as one.
///
/// The pair is finished when both halves are. An event for a finished half changes nothing.
public struct TransducerPair<First: Transducer, Second: Transducer>: Transducer {
    public enum Event: Sendable {
        case first(First.Event)
        case second(Second.Event)
        /// ``TransducerPair/deadline`` has been reached.
        case tick
    }

    public enum Effect: Sendable {
        case first(First.Effect)
        case second(Second.Effect)
    }

    public struct Output: Equatable, Sendable {
        public var first: First.Output
        public var second: Second.Output

        public init(first: First.Output, second: Second.Output) {
            (self.first, self.second) = (first, second)
        }
    }

    public private(set) var first: First
    public private(set) var second: Second

    public init(_ first: First, _ second: Second) {
        (self.first, self.second) = (first, second)
    }

    public var output: Output { Output(first: first.output, second: second.output) }
    public var isFinished: Bool { first.isFinished && second.isFinished }
    public static var tick: Event? { .tick }

    public var deadline: Duration? {
        [first.isFinished ? nil : first.deadline, second.isFinished ? nil : second.deadline].compactMap(\.self).min()
    }

    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .first(let event): handleFirst(event, at: now)
        case .second(let event): handleSecond(event, at: now)
        case .tick: tickFirst(at: now) + tickSecond(at: now)
        }
    }

    private mutating func handleFirst(_ event: First.Event, at now: Duration) -> [Effect] {
        first.isFinished ? [] : first.handle(event, at: now).map(Effect.first)
    }

    private mutating func handleSecond(_ event: Second.Event, at now: Duration) -> [Effect] {
        second.isFinished ? [] : second.handle(event, at: now).map(Effect.second)
    }

    private mutating func tickFirst(at now: Duration) -> [Effect] {
        guard let deadline = first.deadline, deadline <= now, let tick = First.tick else { return [] }
        return handleFirst(tick, at: now)
    }

    private mutating func tickSecond(at now: Duration) -> [Effect] {
        guard let deadline = second.deadline, deadline <= now, let tick = Second.tick else { return [] }
        return handleSecond(tick, at: now)
    }
}

/// Two transducers in a row: the effects of the first are the events of the second.
///
/// The chain is finished when the second is. When only the first is finished, further events change nothing.
public struct TransducerChain<First: Transducer, Second: Transducer>: Transducer where First.Effect == Second.Event {
    public enum Event: Sendable {
        case event(First.Event)
        /// ``TransducerChain/deadline`` has been reached.
        case tick
    }

    public private(set) var first: First
    public private(set) var second: Second

    public init(_ first: First, into second: Second) {
        (self.first, self.second) = (first, second)
    }

    public var output: Second.Output { second.output }
    public var isFinished: Bool { second.isFinished }
    public static var tick: Event? { .tick }

    public var deadline: Duration? {
        [first.isFinished ? nil : first.deadline, second.deadline].compactMap(\.self).min()
    }

    public mutating func handle(_ event: Event, at now: Duration) -> [Second.Effect] {
        switch event {
        case .event(let event): pass(event, at: now)
        case .tick: tickFirst(at: now) + tickSecond(at: now)
        }
    }

    private mutating func pass(_ event: First.Event, at now: Duration) -> [Second.Effect] {
        guard !first.isFinished else { return [] }
        var effects: [Second.Effect] = []
        for event in first.handle(event, at: now) where !second.isFinished { effects += second.handle(event, at: now) }
        return effects
    }

    private mutating func tickFirst(at now: Duration) -> [Second.Effect] {
        guard let deadline = first.deadline, deadline <= now, let tick = First.tick else { return [] }
        return pass(tick, at: now)
    }

    private mutating func tickSecond(at now: Duration) -> [Second.Effect] {
        guard !second.isFinished, let deadline = second.deadline, deadline <= now, let tick = Second.tick else {
            return []
        }
        return second.handle(tick, at: now)
    }
}
