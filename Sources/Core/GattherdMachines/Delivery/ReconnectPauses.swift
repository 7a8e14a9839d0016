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
