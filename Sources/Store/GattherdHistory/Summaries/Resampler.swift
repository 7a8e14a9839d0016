import GattherdModel

/// A measured quantity: a metric of a device's stream in a unit.
struct Quantity: Equatable {
    let device: String
    let stream: String
    let metric: String
    let unit: String?
}

/// Groups numbers, which arrive ordered by time, into consecutive spans.
struct Resampler {
    private let step: Int64
    private let quantities: KeyedRows<Quantity?>
    private var span: Int64?
    private var groups: [Int64: NumberSummary] = [:]

    /// - Parameters:
    ///   - step: The length of a span in microseconds.
    ///   - quantities: The quantities that the numbers measure.
    init(step: Int64, _ quantities: KeyedRows<Quantity?>) {
        self.step = step
        self.quantities = quantities
    }

    /// True if a number at `ts` belongs to the current span, or is the first one.
    func covers(_ ts: Int64) -> Bool {
        span == nil || span == ts.rounded(downTo: step)
    }

    mutating func add(_ row: NumberRow) {
        guard let numbers = row.numbers else { return }
        span = span ?? row.ts.rounded(downTo: step)
        if groups[row.quantity]?.add(numbers) == nil { groups[row.quantity] = numbers }
    }

    /// Returns the buckets of the span, ordered by device, metric and stream, and starts a new span.
    mutating func finishSpan() -> [HistoryBucket] {
        guard let time = span.map({ Timestamp(microseconds: $0) }) else { return [] }
        defer {
            span = nil
            groups.removeAll(keepingCapacity: true)
        }
        let buckets = groups.compactMap { id, numbers in
            quantities[id].flatMap(\.self).map { HistoryBucket(time: time, $0, numbers) }
        }
        return buckets.sorted {
            ($0.device, $0.metric, $0.stream, $0.unit ?? "") < ($1.device, $1.metric, $1.stream, $1.unit ?? "")
        }
    }
}

extension HistoryBucket {
    fileprivate init(time: Timestamp, _ quantity: Quantity, _ numbers: NumberSummary) {
        self.init(
            time: time,
            device: quantity.device,
            stream: quantity.stream,
            metric: quantity.metric,
            unit: quantity.unit,
            n: Int(numbers.n),
            min: numbers.min,
            mean: numbers.mean,
            max: numbers.max
        )
    }
}
