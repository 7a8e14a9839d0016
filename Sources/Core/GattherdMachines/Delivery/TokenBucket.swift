/// A rate limit for publishing to the broker.
///
/// A broker queues a bounded number of messages for a slow subscriber. Beyond it, mosquitto (1000 by default)
/// acknowledges further messages and drops them silently. So a backlog is published at ``rate``, or at twice the
/// commit rate if that is higher. Bursts contain at most ``burst`` readings. At twice the commit rate, a backlog
/// always shrinks.
///
/// The default rate lets a subscriber of such a broker stall for a quarter of a second. At twice the default rate, a
/// `mosquitto_sub` missed 329 of a million readings. It shared two processors with six busy programs.
public struct TokenBucket: Hashable, Sendable {
    /// Readings per second that are always allowed.
    public let rate: Double
    /// The maximum number of readings in a burst.
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

    /// Records the number of readings just committed.
    public mutating func committed(_ count: Int, at now: Duration) {
        rollWindow(to: now)
        windowCount += count
    }

    /// Returns the number of readings that may be published now.
    public mutating func allowance(at now: Duration) -> Int {
        rollWindow(to: now)
        let elapsed = max(0, (now - refilledAt) / .seconds(1))
        tokens = min(tokens + elapsed * limit(at: now), Double(burst))
        refilledAt = now
        return Int(tokens)
    }

    /// Subtracts published readings from the allowance.
    public mutating func spend(_ count: Int) {
        tokens -= Double(count)
    }

    /// The time until a fifth of a burst is available, so that draining causes few wake-ups.
    public func pause(at now: Duration) -> Duration {
        let wanted = max(1, Double(burst) / 5) - tokens
        return .milliseconds(max(1, Int64((wanted / limit(at: now) * 1000).rounded(.up))))
    }

    /// The current limit, in readings per second.
    private func limit(at now: Duration) -> Double {
        let elapsed = max((now - windowStart) / .seconds(1), 0.1)
        return max(rate, 2 * max(lastWindowRate, Double(windowCount) / elapsed))
    }

    /// Counts commits in windows of one second; the limit follows the busier of the last two.
    private mutating func rollWindow(to now: Duration) {
        let elapsed = (now - windowStart) / .seconds(1)
        guard elapsed >= 1 else { return }
        lastWindowRate = elapsed < 2 ? Double(windowCount) / elapsed : 0
        windowStart = now
        windowCount = 0
    }
}
