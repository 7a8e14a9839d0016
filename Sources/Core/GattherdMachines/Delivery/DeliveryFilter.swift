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
    private struct Stream: Hashable {
        let device: String
        let stream: String
    }

    /// The last published values of a stream.
    private struct Published {
        var time: Timestamp
        var metrics: [String: [SampleValue]]
    }

    private var published: [Stream: Published] = [:]

    public init() {}

    /// Returns true if the reading should be published, and records it as published.
    public mutating func passes(_ reading: JournalReading, under policy: DeliveryPolicy) -> Bool {
        let stream = Stream(device: reading.device, stream: reading.stream.stream)
        let metrics = reading.valuesByMetric
        guard let last = published[stream] else {
            published[stream] = Published(time: reading.time, metrics: metrics)
            return true
        }
        guard Self.isDue(metrics, at: reading.time, after: last, policy) else { return false }
        published[stream]?.time = reading.time
        published[stream]?.metrics.merge(metrics) { _, new in new }
        return true
    }

    /// Removes the published values of a device.
    public mutating func forget(_ device: String) {
        published = published.filter { $0.key.device != device }
    }

    private static func isDue(
        _ metrics: [String: [SampleValue]],
        at time: Timestamp,
        after last: Published,
        _ policy: DeliveryPolicy
    ) -> Bool {
        let elapsed = Duration.microseconds(time.microseconds &- last.time.microseconds)
        // After the clock was set back, the elapsed time is unknown.
        guard elapsed >= .zero else { return true }
        if let heartbeat = policy.heartbeat, elapsed >= heartbeat { return true }
        if let minimum = policy.minimumInterval, elapsed < minimum { return false }
        return !policy.isOnChange
            || metrics.contains { name, values in
                !isSame(values, last.metrics[name], policy.deadbands[name] ?? policy.deadband)
            }
    }

    /// True if the values are equal; a new metric counts as a change, a missing one does not.
    private static func isSame(_ values: [SampleValue], _ last: [SampleValue]?, _ deadband: Double) -> Bool {
        if values.count == 1, let number = values.first?.number, last?.count == 1, let before = last?.first?.number {
            return abs(number - before) <= deadband
        }
        return values == last
    }
}

extension JournalReading {
    /// The values of each metric as it is published: of a metric that is not repeated only the first.
    fileprivate var valuesByMetric: [String: [SampleValue]] {
        var values: [String: [SampleValue]] = [:]
        for sample in samples where stream.metrics.indices.contains(sample.metric) {
            let metric = stream.metrics[sample.metric]
            if metric.isRepeated || values[metric.name] == nil { values[metric.name, default: []].append(sample.value) }
        }
        return values
    }
}

extension SampleValue {
    fileprivate var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number
        case .boolean, .text, .null: nil
        }
    }
}
