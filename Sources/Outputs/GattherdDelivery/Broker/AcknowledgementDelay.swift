import GattherdSync

/// The delay after which the broker has probably acknowledged a window of readings.
///
/// Brokers acknowledge readings one by one. Reading each answer costs more than publishing a reading, and a
/// half-answered window is followed by a half-full one. The delay adapts to how fast the broker answers.
struct AcknowledgementDelay {
    /// The number of messages in flight from which a delay is worthwhile.
    private static let severalMessages = 8
    /// The number of messages beyond which the delay no longer grows.
    private static let manyMessages = 100
    /// The minimum time of an answer, with the wake-ups of both programs.
    private static let base = Duration.microseconds(200)
    /// The delay while the broker limits the rate, and the shortest one for the rest of a window.
    private static let shortest = Duration.microseconds(150)
    /// The limits of the time in which a broker that also serves subscribers acknowledges one message.
    private static let fastest = Duration.microseconds(25)
    private static let slowest = Duration.microseconds(100)

    private var perMessage = Self.fastest
    /// True between a delay and the first read after it, unless the broker limits the rate.
    private var isWindowAwaited = false

    /// Returns the delay after messages with readings were published.
    ///
    /// - Parameters:
    ///   - messages: The number of messages in flight.
    ///   - isCatchingUp: True if the broker limits the rate.
    /// - Returns: The delay; `nil` if the few answers should be read as they arrive.
    mutating func delay(for messages: Int, isCatchingUp: Bool) -> Duration? {
        isWindowAwaited = false
        guard messages >= Self.severalMessages else { return nil }
        isWindowAwaited = !isCatchingUp
        guard !isCatchingUp else { return Self.shortest }
        return Self.base + perMessage * min(messages, Self.manyMessages)
    }

    /// Adapts to the first read after a delay.
    ///
    /// - Parameters:
    ///   - unanswered: The number of messages that the broker has not acknowledged yet.
    ///   - messages: The number of messages that were in flight before.
    /// - Returns: A further delay, after which it has probably acknowledged them; `nil` if they are few.
    mutating func rest(for unanswered: Int, of messages: Int) -> Duration? {
        guard isWindowAwaited else { return nil }
        isWindowAwaited = false
        guard !Self.isNearly(unanswered, of: messages) else {
            perMessage = max(perMessage * 15 / 16, Self.fastest)
            return nil
        }
        perMessage = min(perMessage * 5 / 4, Self.slowest)
        return Self.shortest + perMessage * min(unanswered, Self.manyMessages)
    }

    /// True if at most a fifth of the messages is unanswered: the next ones are not delayed for their sake.
    static func isNearly(_ unanswered: Int, of messages: Int) -> Bool { unanswered * 5 <= messages }
}
