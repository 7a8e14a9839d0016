/// Which readings of a stream are published; history keeps them all.
public struct DeliveryPolicy: Hashable, Sendable {
    /// Only readings that differ from the last one that was published.
    public var isOnChange = false
    /// Numbers that differ by no more than this are the same.
    public var deadband = 0.0
    /// Other deadbands, by metric.
    public var deadbands: [String: Double] = [:]
    /// The shortest time between two readings that are published.
    public var minimumInterval: Duration?
    /// After this time a reading is published although it says nothing new.
    public var heartbeat: Duration?

    public init() {}

    /// Every reading is published.
    public var isEverything: Bool { !isOnChange && minimumInterval == nil }
}
