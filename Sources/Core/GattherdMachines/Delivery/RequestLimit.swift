/// A limit on work that MQTT messages request; any client of the broker may publish them.
///
/// A few requests are fulfilled at once. Further requests are merged into one, which waits for the limit.
public struct RequestLimit: Hashable, Sendable {
    private let burst: Int
    private let interval: Duration
    private var tokens: Int
    private var refilledAt: Duration = .zero
    /// True while work is due.
    public private(set) var isPending = false

    /// Allows `burst` requests at once, and one more after each interval.
    public init(burst: Int, interval: Duration) {
        self.burst = burst
        self.interval = interval
        tokens = burst
    }

    public mutating func request() {
        isPending = true
    }

    /// Cancels a request, as the work is done for another reason.
    public mutating func fulfil() {
        isPending = false
    }

    /// Returns true if work is due and allowed now.
    public mutating func claim(at now: Duration) -> Bool {
        refill(at: now)
        guard isPending, tokens > 0 else { return false }
        tokens -= 1
        isPending = false
        return true
    }

    /// The time at which a pending request is allowed.
    public var deadline: Duration? { isPending ? (tokens > 0 ? .zero : refilledAt + interval) : nil }

    private mutating func refill(at now: Duration) {
        guard tokens < burst else {
            refilledAt = now
            return
        }
        while tokens < burst, now >= refilledAt + interval {
            tokens += 1
            refilledAt += interval
        }
    }
}
