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

/// The choice of the readings to publish, in journal order.
///
/// Time is taken from the readings, so that a backlog is thinned out like live readings. The shortest interval
/// suppresses readings. The last of them that is a change is published at the end of the interval, unless a newer
/// reading is published before. In a backlog most streams have a newer reading.
public struct DeliveryFilter: Sendable {
    fileprivate typealias Values = [String: [SampleValue]]

    /// A reading that the shortest interval suppresses.
    fileprivate struct Delayed {
        let seq: Int64
        let values: Values
        /// The end of the interval, in the time of the readings.
        let end: Timestamp
        /// The time of its publication.
        let due: Duration
    }

    /// The last published values of a stream.
    fileprivate struct Published {
        var time: Timestamp
        var values: Values
        var delayed: Delayed?

        mutating func publish(_ new: Values, at time: Timestamp) {
            self.time = time
            values.merge(new) { _, new in new }
            delayed = nil
        }
    }

    private enum Decision {
        case publish
        case delay(until: Timestamp)
        case skip
    }

    private var published: [StreamKey: Published] = [:]

    public init() {}

    /// Records a reading and adds the decision on it to `selection`.
    ///
    /// - Parameters:
    ///   - reading: The next reading of the journal.
    ///   - policy: The policy of its stream.
    ///   - selection: Receives the decision.
    ///   - wall: The system's time, to find out how much of the interval is left.
    ///   - now: The time, counted from any fixed instant, for ``release(at:)``.
    public mutating func select(
        _ reading: JournalReading,
        under policy: DeliveryPolicy,
        into selection: inout DeliverySelection,
        wall: Timestamp,
        at now: Duration
    ) {
        let (stream, values) = (StreamKey(reading), reading.valuesByMetric)
        guard var last = published[stream] else {
            return published[stream] = Published(time: reading.time, values: values)
        }
        switch Self.decision(on: values, at: reading.time, after: last, policy) {
        case .publish:
            last.drop(into: &selection)
            last.publish(values, at: reading.time)
        case .delay(let end):
            last.drop(into: &selection)
            selection.delayed.insert(reading.seq)
            let longest = policy.minimumInterval ?? .zero
            let left = min(max(wall.elapsed(to: end), .zero), longest)
            last.delayed = Delayed(seq: reading.seq, values: values, end: end, due: now + left)
        case .skip:
            selection.skipped.insert(reading.seq)
            if last.isDelayedChange(undoneBy: values, policy) { last.drop(into: &selection) }
        }
        published[stream] = last
    }

    /// The time at which the next delayed reading is due.
    public var nextRelease: Duration? { published.values.lazy.compactMap { $0.delayed?.due }.min() }

    /// Returns the delayed readings that are due, in journal order, and records them as published.
    public mutating func release(at now: Duration) -> [Int64] {
        var released: [Int64] = []
        for (stream, var last) in published {
            guard let delayed = last.delayed, delayed.due <= now else { continue }
            last.publish(delayed.values, at: delayed.end)
            published[stream] = last
            released.append(delayed.seq)
        }
        return released.sorted()
    }

    /// Returns all delayed readings, in journal order, and records them as published.
    public mutating func releaseAll() -> [Int64] {
        nextRelease == nil ? [] : release(at: published.values.compactMap { $0.delayed?.due }.max() ?? .zero)
    }

    /// Records that subscribers did not get a reading that was selected, so that the next of its stream is a change.
    public mutating func notPublished(_ reading: JournalReading) {
        published[StreamKey(reading)]?.values = [:]
    }

    /// Records that subscribers may have lost all values, so that the next reading of each stream is a change.
    public mutating func forgetValues() {
        for stream in published.keys { published[stream]?.values = [:] }
    }

    /// Removes the published values of a device.
    public mutating func forget(_ device: String) {
        published = published.filter { $0.key.device != device }
    }

    private static func decision(
        on values: Values,
        at time: Timestamp,
        after last: Published,
        _ policy: DeliveryPolicy
    ) -> Decision {
        let elapsed = last.time.elapsed(to: time)
        let interval = policy.minimumInterval ?? .zero
        // After the clock was set back, the elapsed time is unknown. A delayed reading is published at the end of its
        // interval, a little after readings that are not fetched yet.
        guard elapsed >= .zero || elapsed > .zero - interval else { return .publish }
        if let heartbeat = policy.heartbeat, elapsed >= heartbeat { return .publish }
        guard !policy.isOnChange || last.values.differ(from: values, policy) else { return .skip }
        return elapsed < interval ? .delay(until: last.time.advanced(by: interval)) : .publish
    }
}

extension DeliveryFilter.Published {
    /// Ends the delay of a reading that is not published.
    fileprivate mutating func drop(into selection: inout DeliverySelection) {
        guard let delayed else { return }
        self.delayed = nil
        if selection.delayed.remove(delayed.seq) != nil {
            selection.skipped.insert(delayed.seq)
        } else {
            selection.dropped.append(delayed.seq)
        }
    }

    /// True if every metric in which the delayed reading is a change has its published value again.
    fileprivate func isDelayedChange(undoneBy newer: [String: [SampleValue]], _ policy: DeliveryPolicy) -> Bool {
        guard let delayed else { return false }
        let rest = delayed.values.filter { newer[$0.key] == nil }
        return !values.differ(from: rest, policy)
    }
}

extension DeliveryPolicy {
    /// The deadband of a metric; another signal strength alone is not a change, unless there is a deadband for it.
    fileprivate func deadband(of name: String) -> Double {
        deadbands[name] ?? (name == MetricDescriptor.signalStrength.name ? .infinity : deadband)
    }
}

extension [String: [SampleValue]] {
    /// True if a value differs by more than its deadband; a new metric is a difference, a missing one is not.
    fileprivate func differ(from newer: Self, _ policy: DeliveryPolicy) -> Bool {
        newer.contains { name, values in
            !Self.isSame(values, self[name], policy.deadband(of: name))
        }
    }

    private static func isSame(_ values: [SampleValue], _ last: [SampleValue]?, _ deadband: Double) -> Bool {
        guard values.count == 1, last?.count == 1, let value = values.first, let before = last?.first,
            let distance = value.distance(to: before)
        else { return values == last }
        return distance <= deadband
    }
}

extension SampleValue {
    /// Returns the distance of two numbers; `nil` for other values.
    ///
    /// The distance of integers is exact: as real numbers, neighbours above 2⁵³ would be equal.
    fileprivate func distance(to other: SampleValue) -> Double? {
        if case .integer(let one) = self, case .integer(let two) = other {
            return Double(UInt64(bitPattern: max(one, two) &- min(one, two)))
        }
        guard let one = number, let two = other.number else { return nil }
        return abs(one - two)
    }
}

extension JournalReading {
    /// The values of each metric as they are published: only the first of a metric that is not repeated.
    fileprivate var valuesByMetric: [String: [SampleValue]] {
        var values: [String: [SampleValue]] = [:]
        for sample in samples where stream.metrics.indices.contains(sample.metric) {
            let metric = stream.metrics[sample.metric]
            if metric.isRepeated || values[metric.name] == nil { values[metric.name, default: []].append(sample.value) }
        }
        return values
    }
}

extension Timestamp {
    fileprivate func elapsed(to other: Timestamp) -> Duration {
        .microseconds(other.microseconds &- microseconds)
    }
}
