public import GattherdModel

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

/// The decision which readings are published, in journal order.
///
/// Time is taken from the readings, so that a backlog is thinned out exactly like live readings. Nothing is kept for
/// later publication, because that would change the order. A reading passes or it does not.
public struct DeliveryFilter: Sendable {
    /// A metric's value in a reading.
    public enum Value: Hashable, Sendable {
        case number(Double)
        /// Any other value, as JSON text.
        case text(String)
    }

    /// The parts of a reading on which the decision depends.
    public struct Content: Hashable, Sendable {
        public let time: Timestamp
        public let metrics: [String: Value]

        public init(time: Timestamp, metrics: [String: Value]) {
            self.time = time
            self.metrics = metrics
        }
    }

    private struct Stream: Hashable {
        let device: String
        let stream: String
    }

    /// The last published values of a stream.
    private struct Published {
        var time: Timestamp
        var metrics: [String: Value]
    }

    private var published: [Stream: Published] = [:]

    public init() {}

    /// Returns true if the reading should be published, and records it as published.
    public mutating func passes(
        _ content: Content,
        of device: String,
        _ stream: String,
        under policy: DeliveryPolicy
    ) -> Bool {
        let stream = Stream(device: device, stream: stream)
        guard let last = published[stream] else {
            published[stream] = Published(time: content.time, metrics: content.metrics)
            return true
        }
        guard Self.isDue(content, after: last, policy) else { return false }
        published[stream]?.time = content.time
        published[stream]?.metrics.merge(content.metrics) { _, new in new }
        return true
    }

    /// Removes the published values of a device.
    public mutating func forget(_ device: String) {
        published = published.filter { $0.key.device != device }
    }

    private static func isDue(_ content: Content, after last: Published, _ policy: DeliveryPolicy) -> Bool {
        let elapsed = Duration.microseconds(content.time.microseconds &- last.time.microseconds)
        // After the clock was set back, the elapsed time is unknown.
        guard elapsed >= .zero else { return true }
        if let heartbeat = policy.heartbeat, elapsed >= heartbeat { return true }
        if let minimum = policy.minimumInterval, elapsed < minimum { return false }
        return !policy.isOnChange
            || content.metrics.contains { name, value in
                !isSame(value, last.metrics[name], policy.deadbands[name] ?? policy.deadband)
            }
    }

    /// True if the values are equal; a new metric counts as a change, a missing one does not.
    private static func isSame(_ value: Value, _ last: Value?, _ deadband: Double) -> Bool {
        if case .number(let number) = value, case .number(let before) = last { return abs(number - before) <= deadband }
        return value == last
    }
}
