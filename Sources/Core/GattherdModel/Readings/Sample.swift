/// The value of a sample.
public enum SampleValue: Hashable, Sendable {
    case integer(Int64)
    case real(Double)
    case boolean(Bool)
    /// A label of an enumeration, or a text.
    case text(String)
    /// An unknown value.
    case null

    /// The value of a number; `nil` for other values.
    package var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number
        case .boolean, .text, .null: nil
        }
    }

    /// The value of a number, 1 and 0 for true and false; `nil` for other values.
    package var numberOrFlag: Double? {
        if case .boolean(let flag) = self { return flag ? 1 : 0 }
        return number
    }
}

/// The meaning of a metric's values over time.
public enum MetricKind: String, Hashable, Sendable, CaseIterable {
    /// A quantity that rises and falls.
    case gauge
    /// A count that only grows, until it wraps or is reset.
    case counter
    /// A label, or on and off.
    case state
    /// An occurrence, such as a button press.
    case event
}

/// The possible values of a metric other than unknown.
public enum ValueDomain: Hashable, Sendable {
    /// Any value.
    case open
    case boolean
    /// One of these texts.
    case labels([String])

    /// The union of both domains.
    public func union(_ other: Self) -> Self {
        switch (self, other) {
        case (.boolean, .boolean): .boolean
        case (.labels(let one), .labels(let two)): .labels(one + two.filter { !one.contains($0) })
        default: .open
        }
    }
}

/// A metric of a stream.
public struct MetricDescriptor: Hashable, Sendable {
    /// The name, `snake_case`; a key of MQTT payloads and a column value in history.
    public let name: String
    /// The unit's symbol, for example `bpm`; `nil` for a bare number.
    public let unit: String?
    public let kind: MetricKind
    /// True if a reading can have several values; then it is always an array in JSON.
    public let isRepeated: Bool
    /// The width in bits of a counter that wraps; `nil` if unknown or never.
    public let wrapBits: Int?
    /// The possible values of the metric, as its profile states them.
    public var domain: ValueDomain
    /// The fall-back of an event; `nil` if a value stays until the next one.
    public var reset: MetricReset?

    public init(
        name: String,
        unit: String? = nil,
        kind: MetricKind = .gauge,
        isRepeated: Bool = false,
        wrapBits: Int? = nil,
        domain: ValueDomain = .open,
        reset: MetricReset? = nil
    ) {
        self.name = name
        self.unit = unit
        self.kind = kind
        self.isRepeated = isRepeated
        self.wrapBits = wrapBits
        self.domain = domain
        self.reset = reset
    }

    /// The strength with which an advertisement was received; the last metric of its stream.
    public static let signalStrength = Self(name: "rssi", unit: "dBm")
}

/// The end of an event whose device reports only its beginning, such as a motion.
public struct MetricReset: Hashable, Sendable {
    /// The time after the last reading with another value.
    public let after: Duration
    /// The value that the metric then gets.
    public let value: SampleValue

    public init(after: Duration, value: SampleValue) {
        self.after = after
        self.value = value
    }
}

/// A value of a metric.
public struct Sample: Hashable, Sendable {
    /// The metric's index in ``StreamDefinition/metrics``.
    public let metric: Int
    public let value: SampleValue

    public init(metric: Int, value: SampleValue) {
        self.metric = metric
        self.value = value
    }
}
