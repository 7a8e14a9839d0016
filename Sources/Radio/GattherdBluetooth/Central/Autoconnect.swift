import GattherdMachines

/// The policy of reconnecting lost peripherals.
///
/// The first attempt starts at once. The delays before further attempts double from ``minimumDelay`` up to
/// ``maximumDelay``, with jitter. They restart after a link was ready for ``stableAfter``.
public struct Autoconnect: Sendable {
    /// A planned attempt to reconnect.
    public struct Attempt: Sendable {
        public let peripheral: Peripheral
        /// The reason of the loss, then of the last attempt's failure.
        public let reason: DisconnectReason
        /// The error of the loss, or of the last attempt; `nil` after a request of this program.
        public let error: BluetoothError?
        /// The number of the attempt; 1 for the first.
        public let number: Int
    }

    public var minimumDelay = Duration.seconds(1)
    public var maximumDelay = Duration.seconds(60)
    public var stableAfter = Duration.seconds(10)
    let decide: @Sendable (Attempt) -> Bool

    /// Reconnects as long as `shouldReconnect`, which is called before each attempt, returns true.
    ///
    /// The central waits for the closure, which must not block.
    public static func when(_ shouldReconnect: @escaping @Sendable (Attempt) -> Bool) -> Autoconnect {
        Autoconnect(decide: shouldReconnect)
    }

    public static let never = Autoconnect { _ in false }

    /// Reconnects after every end except requests of this program and failures that another attempt cannot fix.
    public static let whenUnexpected = Autoconnect { attempt in
        ![.requested, .detached, .authentication].contains(attempt.reason)
    }

    /// The pause before an attempt.
    func delay(before number: Int) -> Duration {
        guard number > 1 else { return .zero }
        let minimum = max(.zero, minimumDelay).settable
        let backoff = Backoff(minimum: minimum, maximum: maximumDelay.settable)
        var random = SystemRandomNumberGenerator()
        return backoff.delay(after: number - 1, using: &random)
    }
}

/// A scheduled attempt to reconnect.
public struct Reconnection: Hashable, Sendable {
    /// The number of the attempt; 1 for the first since a stable link.
    public let attempt: Int
    /// The time of the attempt, which also waits until the peripheral's adapter is on.
    public let due: ContinuousClock.Instant
    /// The error of the loss or of the last attempt; `nil` before the first attempt of a kept peripheral.
    public let error: BluetoothError?
}
