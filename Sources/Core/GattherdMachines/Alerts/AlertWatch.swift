public import GattherdModel

extension AlertMachine {
    /// The last value of a stream's metric.
    public struct LastValue: Sendable {
        let value: Double
        let metric: MetricDescriptor
        let stream: String
        let device: String

        public init(_ value: Double, _ metric: MetricDescriptor, stream: String, device: String) {
            (self.value, self.metric, self.stream, self.device) = (value, metric, stream, device)
        }
    }

    /// The state of one rule for one device.
    struct Watch: Sendable {
        let rule: AlertRule
        var isRaised: Bool
        /// The series whose newest value is outside the bounds, with the reason.
        var outside: [String: String] = [:]
        /// The time since which at least one series is outside.
        var outsideSince = Duration.zero
    }
}

extension AlertMachine.Watch {
    var isSilence: Bool { if case .silent = rule.condition { true } else { false } }

    /// The reason of the alert, for people.
    var reason: String {
        if case .silent(let limit) = rule.condition { return "no value for \(limit.words)" }
        return outside.min { $0.key < $1.key }?.value ?? ""
    }

    /// Forgets all series that the device no longer has; returns true if this clears the alert.
    mutating func keep(_ description: DeviceDescription) -> Bool {
        guard !isSilence else { return false }
        let series = description.streams.flatMap { stream in
            stream.metrics.filter { rule.concerns($0) }.map { Self.series($0, stream.name) }
        }
        let count = outside.count
        outside = outside.filter { series.contains($0.key) }
        // An alert of an earlier run is raised without a known series.
        guard isRaised, outside.isEmpty, count > 0 || series.isEmpty else { return false }
        isRaised = false
        return true
    }

    private static func series(_ metric: MetricDescriptor, _ stream: String) -> String { "\(stream)/\(metric.name)" }

    /// Records a value; returns the change if it clears the alert.
    mutating func record(
        _ value: Double,
        _ metric: MetricDescriptor,
        _ stream: String,
        _ now: Duration,
        _ key: AlertMachine.Key
    ) -> AlertMachine.Change? {
        let series = Self.series(metric, stream)
        guard let bound = rule.condition.exceeded(by: value, isRaised ? rule.hysteresis : 0) else {
            outside[series] = nil
            guard outside.isEmpty, isRaised else { return nil }
            isRaised = false
            return .cleared(key)
        }
        if outside.isEmpty { outsideSince = now }
        outside[series] = Self.reason(value, metric, bound)
        return nil
    }

    /// Records the last values, from which the holding time counts anew.
    ///
    /// - Parameters:
    ///   - values: The last values of the device.
    ///   - wasRaised: True if the rule has changed and its alert was raised.
    ///   - now: The monotonic time.
    mutating func start(with values: [AlertMachine.LastValue], wasRaised: Bool, _ now: Duration) {
        for last in values where rule.concerns(last.metric) {
            guard let bound = rule.condition.exceeded(by: last.value, wasRaised ? rule.hysteresis : 0) else { continue }
            outside[Self.series(last.metric, last.stream)] = Self.reason(last.value, last.metric, bound)
        }
        guard !outside.isEmpty else { return }
        outsideSince = now
        isRaised = isRaised || wasRaised
    }

    /// Records a series that was outside when an earlier run ended, so that its next value inside clears the alert.
    mutating func recall(_ value: Double, _ metric: MetricDescriptor, _ stream: String) {
        guard isRaised, let bound = rule.condition.exceeded(by: value, rule.hysteresis) else { return }
        outside[Self.series(metric, stream)] = Self.reason(value, metric, bound)
    }

    private static func reason(_ value: Double, _ metric: MetricDescriptor, _ bound: String) -> String {
        let unit = metric.unit.map { " \($0)" } ?? ""
        return "\(metric.name) is \(value.plain)\(unit), \(bound)"
    }
}

extension AlertRule.Condition {
    /// The bound in words that `value` exceeds; `nil` if it is inside by at least `margin`.
    fileprivate func exceeded(by value: Double, _ margin: Double) -> String? {
        let (below, above): (Double?, Double?) =
            switch self {
            case .silent: (nil, nil)
            case .batteryBelow(let least): (least, nil)
            case .outside(_, let below, let above): (below, above)
            }
        if let below, value < below + margin { return "below \(below.plain)" }
        if let above, value > above - margin { return "above \(above.plain)" }
        return nil
    }
}

extension Double {
    /// The number without a needless fraction.
    fileprivate var plain: String { Int64(exactly: self).map(String.init) ?? "\(self)" }
}

extension Duration {
    private static let units: [(letter: String, seconds: Int64)] = [("d", 86_400), ("h", 3600), ("m", 60)]

    /// The duration in its largest whole unit.
    fileprivate var words: String {
        let seconds = components.seconds
        let unit = Self.units.first { seconds >= $0.seconds && seconds.isMultiple(of: $0.seconds) }
        return unit.map { "\(seconds / $0.seconds)\($0.letter)" } ?? "\(seconds)s"
    }
}
