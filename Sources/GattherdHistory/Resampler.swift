import GattherdModel

/// Gathers samples that come by time into one span after the other.
struct Resampler {
    private struct Group {
        let series: HistorySeries
        var numbers: NumberSummary?
    }

    private let step: Int64
    private var span: Timestamp?
    private var groups: [Group] = []
    /// Where the group of a series is; the same metric may come in more than one way.
    private var groupOfSeries: [Int64: Int] = [:]

    init(step: Duration) {
        let (seconds, attoseconds) = step.components
        let (micro, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        self.step = overflow ? .max : max(1, micro &+ attoseconds / 1_000_000_000_000)
    }

    /// True when a sample at `ts` belongs to the span that is being gathered, or is the first one.
    func covers(_ ts: Int64) -> Bool {
        span == nil || span == Timestamp(microseconds: ts).rounded(downTo: step)
    }

    mutating func add(_ value: SampleValue, at ts: Int64, of id: Int64, _ series: HistorySeries) {
        guard let number = NumberSummary(value) else { return }
        span = span ?? Timestamp(microseconds: ts).rounded(downTo: step)
        let place = group(of: id, series)
        guard var numbers = groups[place].numbers else { return groups[place].numbers = number }
        numbers.add(number)
        groups[place].numbers = numbers
    }

    /// What the span holds, by device and metric; the next sample begins another one.
    mutating func takeBuckets() -> [HistoryBucket] {
        guard let time = span else { return [] }
        span = nil
        var buckets: [HistoryBucket] = []
        for place in groups.indices {
            guard let numbers = groups[place].numbers else { continue }
            groups[place].numbers = nil
            buckets.append(HistoryBucket(time: time, groups[place].series, numbers))
        }
        return buckets.sorted { ($0.device, $0.metric) < ($1.device, $1.metric) }
    }

    private mutating func group(of id: Int64, _ series: HistorySeries) -> Int {
        if let place = groupOfSeries[id] { return place }
        let place = groups.firstIndex { $0.series.isSameQuantity(as: series) } ?? groups.count
        if place == groups.count { groups.append(Group(series: series)) }
        groupOfSeries[id] = place
        return place
    }
}

/// How many numbers there are, and the least, the mean and the greatest of them.
struct NumberSummary {
    private(set) var n = 1
    private(set) var min: SampleValue
    private(set) var max: SampleValue
    private var sum: Double

    var mean: Double { sum / Double(n) }

    /// Begins with `value`; `nil` when it is not a number.
    init?(_ value: SampleValue) {
        guard let number = value.number else { return nil }
        min = value
        max = value
        sum = number
    }

    mutating func add(_ other: NumberSummary) {
        n += other.n
        sum += other.sum
        if other.min.isLess(than: min) { min = other.min }
        if max.isLess(than: other.max) { max = other.max }
    }
}

extension SampleValue {
    fileprivate var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number
        case .boolean(let flag): flag ? 1 : 0
        case .text, .null: nil
        }
    }

    /// Compares integers exactly, also those that no `Double` can tell apart.
    fileprivate func isLess(than other: SampleValue) -> Bool {
        if case .integer(let left) = self, case .integer(let right) = other { return left < right }
        guard let left = number, let right = other.number else { return false }
        return left < right
    }
}

extension HistorySeries {
    fileprivate func isSameQuantity(as other: HistorySeries) -> Bool {
        device == other.device && metric == other.metric && unit == other.unit
    }
}

extension HistoryBucket {
    fileprivate init(time: Timestamp, _ series: HistorySeries, _ numbers: NumberSummary) {
        self.init(
            time: time,
            device: series.device,
            metric: series.metric,
            unit: series.unit,
            n: numbers.n,
            min: numbers.min,
            mean: numbers.mean,
            max: numbers.max
        )
    }
}
