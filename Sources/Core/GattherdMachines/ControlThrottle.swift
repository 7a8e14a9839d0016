public import GattherdModel

/// The write throttle of one control of one device: the latest value wins.
///
/// Of the values set within ``interval`` only the last is written, when the interval that began with the first ends.
/// Writes never overlap, and a write starts no sooner than ``interval`` after the previous one ended. A value that
/// the device already has is not written, if a stream reports the device's own changes. Every request is answered
/// exactly once. Time is passed in, counted from any fixed instant.
public struct ControlThrottle: Sendable {
    /// The caller's identifier of a request.
    public typealias Ticket = Int

    public enum Event: Hashable, Sendable {
        case set(ControlValue, Ticket)
        /// The peripheral confirmed the write.
        case written(Ticket)
        /// The write failed; `retryable` if it may succeed once the link is ready again.
        case failed(Ticket, ControlError, retryable: Bool)
        /// A notification or a read showed this value.
        case observed(ControlValue)
        /// The link became ready; the device's value is unknown again.
        case ready
        case notReady
        /// The device has left: its requests are not for another device of the same name.
        case removed(ControlError)
        /// ``deadline`` has been reached.
        case tick
    }

    public enum Effect: Hashable, Sendable {
        case write(ControlValue, Ticket)
        case answer(Ticket, Result<ControlValue, ControlError>)
    }

    private struct Pending: Hashable, Sendable {
        let value: ControlValue
        let ticket: Ticket
        /// The time at which the request fails.
        var expiry: Duration
        /// True if the device has left during the write, whose outcome says nothing about its successor.
        var isOfFormerDevice = false
    }

    /// The minimum time between writes; with zero, writes follow each other directly.
    public private(set) var interval: Duration
    /// The maximum time for which a value waits for the link once it may be written.
    public let timeout: Duration
    /// True if the device reports each change of the value, so that a confirmed value stays known.
    private var isReported: Bool

    /// The device's value, if known; unknown from the start of a write until it is confirmed or reported.
    public private(set) var confirmed: ControlValue?
    private var isReady = true
    private var pending: Pending?
    private var inFlight: Pending?
    /// The earliest time at which ``pending`` may be written.
    private var dueAt: Duration = .zero
    /// The end of the pause after the last write.
    private var restsUntil: Duration = .zero

    public init(interval: Duration, timeout: Duration = .seconds(10), isReported: Bool = false) {
        self.interval = interval
        self.timeout = timeout
        self.isReported = isReported
    }

    /// True if no request waits for an answer.
    public var isIdle: Bool { pending == nil && inFlight == nil }

    /// The time at which ``Event/tick`` must be sent; `nil` while nothing depends on time.
    public var deadline: Duration? {
        guard let pending else { return nil }
        return inFlight == nil && isReady ? min(max(dueAt, restsUntil), pending.expiry) : pending.expiry
    }

    /// Changes the rules for the writes that follow; requests keep their places.
    public mutating func configure(interval: Duration, isReported: Bool) {
        (self.interval, self.isReported) = (interval, isReported)
    }

    /// Applies one event and returns the resulting effects, in order; a stale answer changes nothing.
    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .set(let value, let ticket): set(value, ticket, at: now)
        case .written(let ticket): written(ticket, at: now) + writeIfDue(at: now)
        case .failed(let ticket, let error, let retryable):
            failed(ticket, error, retryable: retryable, at: now) + writeIfDue(at: now)
        case .ready: becameReady(at: now)
        case .notReady: becameUnready()
        case .removed(let error): removed(error)
        case .tick: writeIfDue(at: now)
        case .observed(let value): observed(value)
        }
    }

    private mutating func set(_ value: ControlValue, _ ticket: Ticket, at now: Duration) -> [Effect] {
        let superseded = pending.map { Effect.answer($0.ticket, .failure(.superseded)) }
        if pending == nil { dueAt = now + interval }
        pending = Pending(value: value, ticket: ticket, expiry: max(now, dueAt, restsUntil) + timeout)
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
        (inFlight, confirmed) = (next, nil)
        return [.write(next.value, next.ticket)]
    }

    private mutating func written(_ ticket: Ticket, at now: Duration) -> [Effect] {
        guard let write = inFlight, write.ticket == ticket else { return [] }
        inFlight = nil
        rest(from: now)
        if isReported, write.value != .trigger, !write.isOfFormerDevice { confirmed = write.value }
        return [.answer(ticket, .success(write.value))]
    }

    /// The shortest pause before a failed write is repeated: a busy device needs a moment.
    private static let retryPause = Duration.milliseconds(250)

    private mutating func failed(
        _ ticket: Ticket,
        _ error: ControlError,
        retryable: Bool,
        at now: Duration
    ) -> [Effect] {
        guard let write = inFlight, write.ticket == ticket else { return [] }
        (inFlight, confirmed) = (nil, nil)
        rest(from: now)
        let retry = now + max(interval, Self.retryPause)
        let mayRepeat = retryable && pending == nil && !write.isOfFormerDevice
        guard mayRepeat, retry < write.expiry else { return [.answer(ticket, .failure(error))] }
        (pending, dueAt) = (write, retry)
        return []
    }

    /// Starts the pause after a write; the time for the link of a value that waits begins at its end.
    private mutating func rest(from now: Duration) {
        restsUntil = now + interval
        guard let next = pending else { return }
        pending?.expiry = max(next.expiry, restsUntil + timeout)
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

    /// Fails the value that waits; a write in progress is answered at its end and not repeated.
    private mutating func removed(_ error: ControlError) -> [Effect] {
        (isReady, confirmed) = (false, nil)
        inFlight?.isOfFormerDevice = true
        guard let next = pending else { return [] }
        pending = nil
        return [.answer(next.ticket, .failure(error))]
    }
}
