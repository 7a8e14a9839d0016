public import GattherdModel

/// The constant properties of a series: a metric of a stream, by source.
///
/// A class, so that a row carries a pointer and not six strings.
public final class HistorySeries: Sendable {
    /// The device's slug.
    public let device: String
    public let profile: String
    public let stream: String
    public let metric: String
    /// The unit's symbol; `nil` for a bare number.
    public let unit: String?
    /// `notify`, `indicate`, `read` or `advert`.
    public let source: String
    public let kind: MetricKind
    /// True if a reading can have several elements of the metric.
    public let isRepeated: Bool

    public init(
        device: String,
        profile: String,
        stream: String,
        metric: String,
        unit: String?,
        source: String,
        kind: MetricKind = .gauge,
        isRepeated: Bool = false
    ) {
        self.device = device
        self.profile = profile
        self.stream = stream
        self.metric = metric
        self.unit = unit
        self.source = source
        self.kind = kind
        self.isRepeated = isRepeated
    }
}

/// One sample of history; a repeated metric has one for each element.
public struct HistoryRow: Sendable {
    /// The number of the sample's reading; negative if it was imported.
    public let seq: Int64
    public let time: Timestamp
    public let series: HistorySeries
    /// The value: booleans are 1 and 0, labels text, unknown values null.
    public let value: SampleValue

    public init(seq: Int64, time: Timestamp, series: HistorySeries, value: SampleValue) {
        self.seq = seq
        self.time = time
        self.series = series
        self.value = value
    }
}

/// The summary of one metric's numbers in a time span; labels and unknown values are not counted.
public struct HistoryBucket: Hashable, Sendable {
    /// The start of the span: a multiple of its length since 1970 UTC.
    public let time: Timestamp
    public let device: String
    public let metric: String
    public let unit: String?
    /// The number of numeric samples; at least one.
    public let n: Int
    public let min: SampleValue
    /// The mean, rounded to its significant digits.
    public let mean: Double
    public let max: SampleValue

    public init(
        time: Timestamp,
        device: String,
        metric: String,
        unit: String?,
        n: Int,
        min: SampleValue,
        mean: Double,
        max: SampleValue
    ) {
        self.time = time
        self.device = device
        self.metric = metric
        self.unit = unit
        self.n = n
        self.min = min
        self.mean = mean.rounded(toDigits: Double.meaningfulDigits, keepingDecimals: 3)
        self.max = max
    }
}
