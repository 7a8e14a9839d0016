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
    /// The time that an answer takes at least, with the wake-ups of both programs.
    private static let base = Duration.microseconds(200)
    /// The delay while the broker limits the rate.
    private static let shortest = Duration.microseconds(150)
    /// The limits of the time in which a broker that also serves subscribers acknowledges one reading.
    private static let fastest = Duration.microseconds(25)
    private static let slowest = Duration.microseconds(100)

    private var perReading = Self.fastest

    /// Computes the delay.
    ///
    /// - Parameters:
    ///   - readings: The number of readings in flight.
    ///   - isCatchingUp: True if the broker limits the rate.
    /// - Returns: The delay; `nil` if the few answers should be read as they come.
    func delay(for readings: Int, isCatchingUp: Bool) -> Duration? {
        guard readings >= Self.severalReadings else { return nil }
        guard !isCatchingUp else { return Self.shortest }
        return Self.base + perReading * min(readings, Self.manyReadings)
    }

    /// Adapts to a read that came after a delay.
    ///
    /// - Parameter isComplete: True if the broker had acknowledged all readings.
    mutating func adapt(isComplete: Bool) {
        perReading = isComplete ? max(perReading * 15 / 16, Self.fastest) : min(perReading * 5 / 4, Self.slowest)
    }
}
