/// An exponential backoff with full jitter.
///
/// After `n` failures the delay lies anywhere between ``minimum`` and `minimum · 2ⁿ`, and never above ``maximum``. So
/// devices that lost their links together do not retry at the same moment.
public struct Backoff: Hashable, Sendable {
    public let minimum: Duration
    public let maximum: Duration

    /// Creates a backoff; a maximum below the minimum counts as the minimum.
    public init(minimum: Duration, maximum: Duration) {
        self.minimum = minimum
        self.maximum = max(minimum, maximum)
    }

    /// The longest delay after `failures` consecutive failures.
    public func ceiling(after failures: Int) -> Duration {
        var ceiling = minimum
        for _ in 0..<max(0, failures) {
            guard ceiling < maximum else { break }
            ceiling = ceiling * 2
        }
        return min(ceiling, maximum)
    }

    /// A random delay after `failures` consecutive failures.
    public func delay(after failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        let part = Double.random(in: 0...1, using: &generator)
        return min(minimum + (ceiling(after: failures) - minimum) * part, maximum)
    }
}

/// A seeded random number generator, reproducible in tests.
///
/// Sebastiano Vigna's SplitMix64. Suitable for jitter, not for secrets.
public struct SplitMix64: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    public init(seed: UInt64) {
        state = seed
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// The pauses between attempts to reach a broker, which grow with each failure in a row.
package struct ReconnectPauses: Sendable {
    private let backoff: Backoff
    /// The backoff after a refusal that needs a configuration change.
    private let refusedBackoff: Backoff
    /// The duration after which a session counts as good.
    private let stableAfter: Duration
    private var random: SplitMix64
    /// The number of failures since the last good session.
    private var failures = 0

    /// Creates the pauses of one broker; `seed` determines their jitter.
    package init(_ backoff: Backoff, refused refusedBackoff: Backoff, stable stableAfter: Duration, seed: UInt64) {
        (self.backoff, self.refusedBackoff, self.stableAfter) = (backoff, refusedBackoff, stableAfter)
        random = SplitMix64(seed: seed)
    }

    /// Records the end of a session; a good one makes the next pause short.
    package mutating func sessionEnded(after duration: Duration) {
        if duration >= stableAfter { failures = 0 }
    }

    /// Returns the pause after a failed attempt or a lost session.
    package mutating func next(after fault: BrokerFault) -> Duration {
        failures += 1
        let backoff = fault.needsConfigurationChange ? refusedBackoff : backoff
        return backoff.delay(after: failures, using: &random)
    }
}
