public import GattherdModel

/// A selection of history; `nil` means all.
public struct HistoryQuery: Hashable, Sendable {
    /// The device's slug.
    public var device: String?
    public var stream: String?
    public var metric: String?
    /// The first instant.
    public var since: Timestamp?
    /// The first instant after the selection.
    public var until: Timestamp?

    public init(
        device: String? = nil,
        stream: String? = nil,
        metric: String? = nil,
        since: Timestamp? = nil,
        until: Timestamp? = nil
    ) {
        self.device = device
        self.stream = stream
        self.metric = metric
        self.since = since
        self.until = until
    }
}

extension HistoryQuery {
    /// The instants, in microseconds since 1970.
    var times: Range<Int64> {
        let start = since?.microseconds ?? .min
        return start..<max(start, until?.microseconds ?? .max)
    }

    /// True if the selection contains the metric of the device's stream.
    func selects(_ device: String, _ stream: String, _ metric: String) -> Bool {
        self.device ?? device == device && self.stream ?? stream == stream && self.metric ?? metric == metric
    }

    /// Returns the part of the selection in the `length` microseconds from `start`.
    func part(from start: Int64, length: Int64) -> HistoryQuery {
        var part = self
        let end = Timestamp(microseconds: start.addingReportingOverflow(length).partialValue)
        part.since = max(Timestamp(microseconds: start), since ?? Timestamp(microseconds: .min))
        part.until = min(end, until ?? end)
        return part
    }
}

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

/// A metric of a stream that is a gauge, from any source.
public struct HistoryGauge: Hashable, Sendable {
    public let device: String
    public let stream: String
    public let metric: String
    /// The unit's symbol; `nil` for a bare number.
    public let unit: String?
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

/// The summary of one metric of a stream in a time span; labels and unknown values are not counted.
public struct HistoryBucket: Hashable, Sendable {
    /// The start of the span: a multiple of its length since 1970 UTC.
    public let time: Timestamp
    public let device: String
    public let stream: String
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
        stream: String,
        metric: String,
        unit: String?,
        n: Int,
        min: SampleValue,
        mean: Double,
        max: SampleValue
    ) {
        self.time = time
        self.device = device
        self.stream = stream
        self.metric = metric
        self.unit = unit
        self.n = n
        self.min = min
        self.mean = mean.rounded(toDigits: Double.meaningfulDigits, keepingDecimals: 3)
        self.max = max
    }
}
