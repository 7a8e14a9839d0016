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

    /// Returns how many of `wanted` readings may be published now: none while too few to justify a wake-up.
    public mutating func allowance(for wanted: Int, at now: Duration) -> Int {
        rollWindow(to: now)
        tokens = tokens(at: now)
        refilledAt = now
        let count = min(Int(tokens), wanted)
        return count >= min(wanted, Int(worthwhile(at: now))) ? count : 0
    }

    /// Subtracts published readings from the allowance.
    public mutating func spend(_ count: Int) {
        tokens -= Double(count)
    }

    /// The time until so many of `wanted` readings may be published that they justify a wake-up.
    ///
    /// - Parameters:
    ///   - wanted: The number of readings that wait.
    ///   - spent: The number of readings that are published now and not subtracted yet.
    ///   - now: The time.
    /// - Returns: The pause; zero if so many may be published now.
    public func pause(for wanted: Int, after spent: Int = 0, at now: Duration) -> Duration {
        let missing = min(Double(wanted), worthwhile(at: now)) - tokens(at: now) + Double(spent)
        guard missing > 0 else { return .zero }
        return .microseconds(Int64((missing / limit(at: now) * 1_000_000).rounded(.up)))
    }

    /// The number of readings that justifies a wake-up: a fifth of a burst, or those of 1 to 20 ms.
    private func worthwhile(at now: Duration) -> Double {
        let limit = limit(at: now)
        let count = min(max(Double(burst) / 5, limit * 0.001), limit * 0.02, Double(burst))
        return max(1, count.rounded(.down))
    }

    private func tokens(at now: Duration) -> Double {
        let elapsed = max(0, (now - refilledAt) / .seconds(1))
        return min(tokens + elapsed * limit(at: now), Double(burst))
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
