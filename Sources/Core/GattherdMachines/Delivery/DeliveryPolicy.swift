/// The selection of a stream's readings for publication; history keeps all readings.
public struct DeliveryPolicy: Hashable, Sendable {
    /// True to publish only readings that differ from the last published one.
    public var isOnChange = false
    /// The largest difference between numbers that count as equal.
    public var deadband = 0.0
    /// Deadbands by metric, instead of the common one.
    public var deadbands: [String: Double] = [:]
    /// The shortest time between two published readings.
    public var minimumInterval: Duration?
    /// The time after which a reading is published although it is unchanged.
    public var heartbeat: Duration?

    public init() {}

    /// True if every reading is published.
    public var isEverything: Bool { !isOnChange && minimumInterval == nil }
}
