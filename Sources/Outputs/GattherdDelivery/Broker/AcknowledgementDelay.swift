import GattherdSync

/// The delay after which the broker has probably acknowledged a window of readings.
///
/// Brokers acknowledge readings one by one. Reading each answer costs more than publishing a reading, and a
/// half-answered window is followed by a half-full one. The delay adapts to how fast the broker answers.
struct AcknowledgementDelay {
    /// The number of readings in flight from which a delay is worthwhile.
    private static let severalReadings = 8
    /// The number of readings beyond which the delay no longer grows.
    private static let manyReadings = 100
    /// The minimum time of an answer, with the wake-ups of both programs.
    private static let base = Duration.microseconds(200)
    /// The delay while the broker limits the rate, and the shortest one for the rest of a window.
    private static let shortest = Duration.microseconds(150)
    /// The limits of the time in which a broker that also serves subscribers acknowledges one reading.
    private static let fastest = Duration.microseconds(25)
    private static let slowest = Duration.microseconds(100)

    private var perReading = Self.fastest
    /// True between a delay and the first read after it, unless the broker limits the rate.
    private var isWindowAwaited = false

    /// Returns the delay after readings were published.
    ///
    /// - Parameters:
    ///   - readings: The number of readings in flight.
    ///   - isCatchingUp: True if the broker limits the rate.
    /// - Returns: The delay; `nil` if the few answers should be read as they arrive.
    mutating func delay(for readings: Int, isCatchingUp: Bool) -> Duration? {
        guard readings >= Self.severalReadings else { return nil }
        isWindowAwaited = !isCatchingUp
        guard !isCatchingUp else { return Self.shortest }
        return Self.base + perReading * min(readings, Self.manyReadings)
    }

    /// Adapts to the first read after a delay.
    ///
    /// - Parameter readings: The number of readings that the broker has not acknowledged yet.
    /// - Returns: A further delay, after which it has probably acknowledged them; `nil` if there are none to wait for.
    mutating func rest(for readings: Int) -> Duration? {
        guard isWindowAwaited else { return nil }
        isWindowAwaited = false
        guard readings > 0 else {
            perReading = max(perReading * 15 / 16, Self.fastest)
            return nil
        }
        perReading = min(perReading * 5 / 4, Self.slowest)
        return Self.shortest + perReading * min(readings, Self.manyReadings)
    }
}
