/// What a metric can hold.
public enum SampleValue: Hashable, Sendable {
    case integer(Int64)
    case real(Double)
    case boolean(Bool)
    /// A label of an enumeration, or text.
    case text(String)
    /// The device said that it does not know.
    case null
}

/// What a metric's numbers mean over time.
public enum MetricKind: String, Hashable, Sendable, CaseIterable {
    /// A quantity that goes up and down.
    case gauge
    /// A count that only grows, until it wraps or is reset.
    case counter
    /// One of a few labels, or on and off.
    case state
    /// Something that happened.
    case event
}

/// What a profile says once about one of its metrics.
public struct MetricDescriptor: Hashable, Sendable {
    /// `snake_case`; a key of MQTT payloads and a column value in history.
    public let name: String
    /// The unit's symbol, for example `bpm`; `nil` for a bare number.
    public let unit: String?
    public let kind: MetricKind
    /// True when a reading can hold several elements; then it is always an array in JSON.
    public let isRepeated: Bool
    /// After how many bits a counter starts again at 0; `nil` when it does not, or that is not known.
    public let wrapBits: Int?

    public init(
        name: String,
        unit: String? = nil,
        kind: MetricKind = .gauge,
        isRepeated: Bool = false,
        wrapBits: Int? = nil
    ) {
        self.name = name
        self.unit = unit
        self.kind = kind
        self.isRepeated = isRepeated
        self.wrapBits = wrapBits
    }
}

/// One value of one metric.
public struct Sample: Hashable, Sendable {
    /// The metric's position in ``StreamDefinition/metrics``.
    public let metric: Int
    public let value: SampleValue

    public init(metric: Int, value: SampleValue) {
        self.metric = metric
        self.value = value
    }
}
