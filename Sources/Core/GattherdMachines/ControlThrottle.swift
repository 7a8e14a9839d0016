public import GattherdModel

/// The writes of one control of one device: the latest value wins.
///
/// Of the values set within ``interval`` the last one is written, when the interval that began with the
/// first one ends. It is never written while another write is under way or sooner than ``interval`` after the end of
/// one, and not at all when the device has it already. Every request is answered exactly once. Time is passed in, counted from any fixed instant.
public struct ControlThrottle: Sendable {
    /// A request, as its asker knows it.
    public typealias Ticket = Int

    public enum Event: Hashable, Sendable {
        case set(ControlValue, Ticket)
        /// The peripheral confirmed the write.
        case written(Ticket)
        /// The write failed; `retryable` when the same may succeed once the link is ready again.
        case failed(Ticket, ControlError, retryable: Bool)
        /// A notification or a read showed this value.
        case observed(ControlValue)
        /// The link became ready; what the device has is not known any more.
        case ready
        case notReady
        /// ``deadline`` has come.
        case tick
    }

    public enum Effect: Hashable, Sendable {
        case write(ControlValue, Ticket)
        case answer(Ticket, Result<ControlValue, ControlError>)
    }

    private struct Pending: Hashable, Sendable {
        let value: ControlValue
        let ticket: Ticket
        /// When it is given up.
        let expiry: Duration
    }

    /// Zero writes as soon as the one before is done.
    public let interval: Duration
    /// The longest that a value waits for the link.
    public let patience: Duration

    /// What the device is known to have.
    public private(set) var confirmed: ControlValue?
    private var isReady = true
    private var pending: Pending?
    private var inFlight: Pending?
    /// When ``pending`` may be written.
    private var dueAt: Duration = .zero
    /// When the pause after the last write ends.
    private var restsUntil: Duration = .zero

    public init(interval: Duration, patience: Duration = .seconds(10)) {
        self.interval = interval
        self.patience = patience
    }

    /// Nobody waits for an answer.
    public var isIdle: Bool { pending == nil && inFlight == nil }

    /// When ``Event/tick`` must be sent; `nil` while nothing waits for time.
    public var deadline: Duration? {
        guard let pending else { return nil }
        return inFlight == nil && isReady ? min(max(dueAt, restsUntil), pending.expiry) : pending.expiry
    }

    /// Applies one event and says what must now be done, in order; a stale answer changes nothing.
    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .set(let value, let ticket): set(value, ticket, at: now)
        case .written(let ticket): written(ticket, at: now) + writeIfDue(at: now)
        case .failed(let ticket, let error, let retryable):
            failed(ticket, error, retryable: retryable, at: now) + writeIfDue(at: now)
        case .ready: becameReady(at: now)
        case .notReady: becameUnready()
        case .tick: writeIfDue(at: now)
        case .observed(let value): observed(value)
        }
    }

    private mutating func set(_ value: ControlValue, _ ticket: Ticket, at now: Duration) -> [Effect] {
        let superseded = pending.map { Effect.answer($0.ticket, .failure(.superseded)) }
        if pending == nil { dueAt = now + interval }
        pending = Pending(value: value, ticket: ticket, expiry: now + patience)
        return [superseded].compactMap { $0 } + writeIfDue(at: now)
    }

    private mutating func writeIfDue(at now: Duration) -> [Effect] {
        guard let next = pending else { return [] }
        guard now < next.expiry else {
            pending = nil
            return [.answer(next.ticket, .failure(.timedOut))]
        }
        guard isReady, inFlight == nil, now >= max(dueAt, restsUntil) else { return [] }
        pending = nil
        guard next.value == .trigger || next.value != confirmed else {
            return [.answer(next.ticket, .success(next.value))]
        }
        inFlight = next
        return [.write(next.value, next.ticket)]
    }

    private mutating func written(_ ticket: Ticket, at now: Duration) -> [Effect] {
        guard let write = inFlight, write.ticket == ticket else { return [] }
        inFlight = nil
        restsUntil = now + interval
        if write.value != .trigger { confirmed = write.value }
        return [.answer(ticket, .success(write.value))]
    }

    private mutating func failed(
        _ ticket: Ticket,
        _ error: ControlError,
        retryable: Bool,
        at now: Duration
    ) -> [Effect] {
        guard let write = inFlight, write.ticket == ticket else { return [] }
        inFlight = nil
        restsUntil = now + interval
        guard retryable, pending == nil, now < write.expiry else { return [.answer(ticket, .failure(error))] }
        pending = write
        dueAt = now + max(interval, .milliseconds(250))
        return []
    }

    private mutating func observed(_ value: ControlValue) -> [Effect] {
        confirmed = value
        return []
    }

    private mutating func becameReady(at now: Duration) -> [Effect] {
        isReady = true
        confirmed = nil
        return writeIfDue(at: now)
    }

    private mutating func becameUnready() -> [Effect] {
        isReady = false
        confirmed = nil
        return []
    }
}
