/// A rule that raises an alert for a device.
public struct AlertRule: Hashable, Sendable {
    public enum Condition: Hashable, Sendable {
        /// No value arrived for this time.
        case silent(Duration)
        /// A battery has less than this, in percent.
        case batteryBelow(Double)
        /// A value of the metric is outside of the bounds; `nil` is no bound.
        case outside(metric: String, below: Double?, above: Double?)
    }

    /// The alert's name, a slug.
    public var name: String
    /// The device; `nil` for every device.
    public var device: String?
    public var condition: Condition
    /// The distance from a bound at which the alert is cleared, in the metric's unit.
    public var hysteresis: Double
    /// The time for which values must be outside before the alert is raised.
    public var holding: Duration

    public init(
        name: String,
        device: String? = nil,
        condition: Condition,
        hysteresis: Double = 0,
        holding: Duration = .zero
    ) {
        (self.name, self.device, self.condition) = (name, device, condition)
        (self.hysteresis, self.holding) = (hysteresis, holding)
    }

    /// True if the rule is about the device.
    public func concerns(_ device: String) -> Bool { self.device.map { $0 == device } ?? true }

    /// True if the rule is about values of the metric.
    public func concerns(_ metric: MetricDescriptor) -> Bool {
        switch condition {
        case .silent: false
        case .batteryBelow: metric.unit == "%" && metric.name.split(separator: "_").contains("battery")
        case .outside(let name, _, _): metric.name == name
        }
    }

    /// True if the device can raise the alert.
    public func concerns(_ description: DeviceDescription) -> Bool {
        guard concerns(description.device) else { return false }
        if case .silent = condition { return true }
        return description.streams.contains { $0.metrics.contains { concerns($0) } }
    }
}

/// A raised alert.
public struct ActiveAlert: Codable, Hashable, Sendable {
    /// The name of its rule.
    public var alert: String
    public var device: String
    /// The peripheral's address, which stays the same if the device is renamed.
    public var address: String
    /// The time at which it was raised, in RFC 3339.
    public var since: String
    /// The reason, for people.
    public var detail: String

    public init(alert: String, device: String, address: String = "", since: String, detail: String) {
        (self.alert, self.device, self.address) = (alert, device, address)
        (self.since, self.detail) = (since, detail)
    }
}
