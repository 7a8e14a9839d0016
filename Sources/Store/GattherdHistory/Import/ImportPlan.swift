import GattherdModel

/// Samples to store, grouped into readings without numbers.
struct ImportPlan {
    /// The identity of a sample at its instant; `1` and `1.0` are the same.
    struct Content: Hashable {
        private let series: Int64
        private let value: SampleValue

        init(_ series: Int64, _ value: SampleValue) {
            self.series = series
            switch value {
            case .boolean(let flag): self.value = .integer(flag ? 1 : 0)
            case .real(let number) where !number.isFinite: self.value = .null
            case .real(let number): self.value = Int64(exactly: number).map { .integer($0) } ?? value
            case .integer, .text, .null: self.value = value
            }
        }
    }

    /// A sample that occurs once per reading and instant, unless its metric is repeated.
    struct Occurrence: Hashable {
        let content: Content
        /// The reading's number; 0 if the source has none.
        let seq: Int64
    }

    struct Sample {
        let ts: Int64
        /// The number of the reading, counted from 0.
        let reading: Int64
        /// The sample's place in its reading.
        let index: Int64
        let key: SeriesKey
        let value: SampleValue
    }

    private(set) var samples: [Sample] = []
    private(set) var readings: Int64 = 0
    /// The number of samples to store per instant and content.
    private(set) var contents: [Timestamp: [Content: Int]] = [:]
    private var last: HistoryRow?
    private var index: Int64 = 0
    /// The metrics of the reading that may not occur again.
    private var metrics: Set<ObjectIdentifier> = []

    mutating func add(_ row: HistoryRow, _ key: SeriesKey, _ content: Content) {
        let metric = ObjectIdentifier(row.series)
        if last?.isOfSameReading(as: row) != true || metrics.contains(metric) {
            readings += 1
            index = 0
            metrics.removeAll(keepingCapacity: true)
        }
        if !row.series.isRepeated { metrics.insert(metric) }
        samples.append(
            Sample(ts: row.time.microseconds, reading: readings - 1, index: index, key: key, value: row.value)
        )
        contents[row.time, default: [:]][content, default: 0] += 1
        index += 1
        last = row
    }
}

extension HistoryRow {
    fileprivate func isOfSameReading(as other: HistoryRow) -> Bool {
        guard time == other.time, seq == other.seq else { return false }
        let (left, right) = (series, other.series)
        return left === right
            || (left.device == right.device && left.profile == right.profile && left.stream == right.stream
                && left.source == right.source)
    }
}
