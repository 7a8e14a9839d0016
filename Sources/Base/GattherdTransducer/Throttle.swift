/// The write throttle of one value that a person moves and a device reports: the latest value wins.
///
/// Writes never overlap, and a write starts no sooner than ``interval`` after the start of the previous one. Of the
/// values set meanwhile only the last is written.
///
/// ``output`` is the value to show. It does not jump back: the device's reports are suppressed while a write is
/// pending. After the write they are suppressed until its echo arrives or ``echoTimeout`` has passed.
///
/// A value that the device has is not written. After a write that failed, or had no echo, the value is unknown until
/// the next report.
public struct Throttle<Value: Equatable & Sendable>: Transducer {
    public enum Event: Sendable {
        /// A person chose a value.
        case set(Value)
        /// The device confirmed the write.
        case written
        /// The write failed; the device's last value is shown again.
        case failed
        /// A notification or a read showed this value.
        case observed(Value)
        /// ``Throttle/deadline`` has been reached.
        case tick
    }

    public enum Effect: Equatable, Sendable {
        /// Writes the value; ``Event/written`` or ``Event/failed`` follows.
        case write(Value)
    }

    private struct Echo: Sendable {
        let value: Value
        let end: Duration
    }

    /// The shortest time between the starts of two writes.
    public let interval: Duration
    /// The time after a write in which other values of the device are suppressed.
    public let echoTimeout: Duration

    /// The device's last value, if known.
    public private(set) var observed: Value?
    /// True if the device reported ``observed`` after the last write.
    private var isCurrent = false
    private var pending: Value?
    private var inFlight: Value?
    /// True if the device showed the value in flight after the write had started.
    private var isEchoed = false
    private var echo: Echo?
    private var notBefore = Duration.zero

    public init(interval: Duration = .milliseconds(100), echoTimeout: Duration = .seconds(1)) {
        (self.interval, self.echoTimeout) = (interval, echoTimeout)
    }

    /// The value to show; `nil` while unknown.
    public var output: Value? { pending ?? inFlight ?? echo?.value ?? observed }

    public static var tick: Event? { .tick }

    public var deadline: Duration? {
        let write = pending != nil && inFlight == nil ? notBefore : nil
        return [write, echo?.end].compactMap(\.self).min()
    }

    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        if let echo, echo.end <= now { self.echo = nil }
        switch event {
        case .set(let value): pending = value
        case .written: written(at: now)
        case .failed: (inFlight, isCurrent) = (nil, false)
        case .observed(let value): observe(value)
        case .tick: break
        }
        return writeIfDue(at: now)
    }

    private mutating func written(at now: Duration) {
        guard let value = inFlight.take() else { return }
        if !isEchoed { echo = Echo(value: value, end: now + echoTimeout) }
    }

    private mutating func observe(_ value: Value) {
        observed = value
        isCurrent = value == (inFlight ?? echo?.value ?? value)
        if inFlight == value { isEchoed = true }
        if echo?.value == value { echo = nil }
    }

    private mutating func writeIfDue(at now: Duration) -> [Effect] {
        guard inFlight == nil, now >= notBefore, let value = pending.take() else { return [] }
        guard (echo?.value ?? (isCurrent ? observed : nil)) != value else { return [] }
        (inFlight, isEchoed, echo, isCurrent, notBefore) = (value, false, nil, false, now + interval)
        return [.write(value)]
    }
}
