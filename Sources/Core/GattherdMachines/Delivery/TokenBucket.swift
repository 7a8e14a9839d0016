/// How fast readings may be handed to the broker.
///
/// A broker queues a bounded number of messages for a subscriber that is slower than we are, and
/// mosquitto (1000 by default) acknowledges the rest and drops it without a word. So a backlog goes out at
/// ``rate`` or at twice the rate at which new readings are committed, whichever is more, in bursts of at most
/// ``burst``. Being twice as fast as commits, it always catches up.
///
/// The default rate lets a subscriber of such a broker stall for a quarter of a second. At twice the rate, of a million
/// readings 329 were missing at a `mosquitto_sub` that had to share two processors with six busy programs.
public struct TokenBucket: Hashable, Sendable {
    /// Readings per second that are always allowed.
    public let rate: Double
    /// Readings that may go out at once.
    public let burst: Int

    private var tokens: Double
    private var refilledAt: Duration = .zero
    private var windowStart: Duration = .zero
    private var windowCount = 0
    private var lastWindowRate = 0.0

    public init(rate: Double = 4000, burst: Int = 100) {
        self.rate = max(rate, 1)
        self.burst = max(burst, 1)
        tokens = Double(self.burst)
    }

    /// Notes that so many readings were committed just now.
    public mutating func committed(_ count: Int, at now: Duration) {
        rollWindow(to: now)
        windowCount += count
    }

    /// How many readings may go out now.
    public mutating func allowance(at now: Duration) -> Int {
        rollWindow(to: now)
        let elapsed = max(0, (now - refilledAt) / .seconds(1))
        tokens = min(tokens + elapsed * limit(at: now), Double(burst))
        refilledAt = now
        return Int(tokens)
    }

    /// Takes what went out from the allowance.
    public mutating func spend(_ count: Int) {
        tokens -= Double(count)
    }

    /// The time until it is worth to go on: a fifth of a burst, so that a drain wakes seldom.
    public func pause(at now: Duration) -> Duration {
        let wanted = max(1, Double(burst) / 5) - tokens
        return .milliseconds(max(1, Int64((wanted / limit(at: now) * 1000).rounded(.up))))
    }

    /// Readings per second that are allowed at present.
    private func limit(at now: Duration) -> Double {
        let elapsed = max((now - windowStart) / .seconds(1), 0.1)
        return max(rate, 2 * max(lastWindowRate, Double(windowCount) / elapsed))
    }

    /// Commits are counted in windows of a second; the limit follows the busier of the last two.
    private mutating func rollWindow(to now: Duration) {
        let elapsed = (now - windowStart) / .seconds(1)
        guard elapsed >= 1 else { return }
        lastWindowRate = elapsed < 2 ? Double(windowCount) / elapsed : 0
        windowStart = now
        windowCount = 0
    }
}
