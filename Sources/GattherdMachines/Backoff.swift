/// How long to wait before the next attempt: exponential with full jitter.
public struct Backoff: Equatable, Sendable {
    public let minimum: Duration
    public let maximum: Duration

    public init(minimum: Duration, maximum: Duration) {
        self.minimum = minimum
        self.maximum = maximum
    }

    /// The most that may be waited before the attempt after `attempt` failures in a row.
    public func ceiling(attempt: Int) -> Duration {
        min(maximum, minimum * (1 << min(max(attempt - 1, 0), 30)))
    }

    /// The pause after `attempt` failures in a row, `random` being 0 to 1.
    public func delay(attempt: Int, random: Double) -> Duration {
        ceiling(attempt: attempt) * min(max(random, 0), 1)
    }
}
