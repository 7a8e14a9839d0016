public import GattherdModel

/// Decides which readings are published, in the order of the log.
///
/// Time is the readings' own, so that a backlog is thinned out as it would have been live. Nothing is kept
/// back to be published later, for that would change the order: a reading passes or it does not.
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

    /// The values of a stream that were published last.
    private struct Published {
        var time: Timestamp
        var metrics: [String: Value]
    }

    private var published: [Stream: Published] = [:]

    public init() {}

    /// True when the reading is to be published; subscribers are then taken to have it.
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

    /// Removes what was published of a device.
    public mutating func forget(_ device: String) {
        published = published.filter { $0.key.device != device }
    }

    private static func isDue(_ content: Content, after last: Published, _ policy: DeliveryPolicy) -> Bool {
        let elapsed = Duration.microseconds(content.time.microseconds &- last.time.microseconds)
        // A clock that was set back says nothing about how much time has passed.
        guard elapsed >= .zero else { return true }
        if let heartbeat = policy.heartbeat, elapsed >= heartbeat { return true }
        if let minimum = policy.minimumInterval, elapsed < minimum { return false }
        return !policy.isOnChange
            || content.metrics.contains { name, value in
                !isSame(value, last.metrics[name], policy.deadbands[name] ?? policy.deadband)
            }
    }

    /// A metric that was never told is news; one that is missing now is none.
    private static func isSame(_ value: Value, _ last: Value?, _ deadband: Double) -> Bool {
        if case .number(let number) = value, case .number(let before) = last { return abs(number - before) <= deadband }
        return value == last
    }
}
