/// The policy of reconnecting lost peripherals.
///
/// The first attempt is made at once; the delays before the others grow from ``minimumDelay``, doubling, up to
/// ``maximumDelay``, with jitter. They start anew when a link has been ready for ``stableAfter``.
public struct Autoconnect: Sendable {
    /// An attempt to reconnect, before it is made.
    public struct Attempt: Sendable {
        public let peripheral: Peripheral
        /// The reason of the loss, then of the last attempt's failure.
        public let reason: DisconnectReason
        /// The number of the attempt; 1 for the first.
        public let number: Int
    }

    public var minimumDelay = Duration.seconds(1)
    public var maximumDelay = Duration.seconds(60)
    public var stableAfter = Duration.seconds(10)
    let decide: @Sendable (Attempt) -> Bool

    /// Reconnects as long as `shouldReconnect`, which is called before each attempt, returns true.
    public static func when(_ shouldReconnect: @escaping @Sendable (Attempt) -> Bool) -> Autoconnect {
        Autoconnect(decide: shouldReconnect)
    }

    public static let never = Autoconnect { _ in false }

    /// Reconnects after everything but a request of this program and failures that another attempt cannot mend.
    public static let whenUnexpected = Autoconnect { attempt in
        ![.requested, .detached, .authentication].contains(attempt.reason)
    }

    /// The pause before an attempt.
    func delay(before number: Int) -> Duration {
        guard number > 1 else { return .zero }
        let least = max(.zero, minimumDelay).settable
        let most = max(least, maximumDelay).settable
        var ceiling = least
        for _ in 1..<number where ceiling < most { ceiling = ceiling * 2 }
        return least + (min(ceiling, most) - least) * Double.random(in: 0...1)
    }
}

/// A scheduled attempt to reconnect.
public struct Reconnection: Hashable, Sendable {
    /// The number of the attempt; 1 for the first since a stable link.
    public let attempt: Int
    /// The time of the attempt; without an adapter that is on, it is made when there is one.
    public let due: ContinuousClock.Instant
}
