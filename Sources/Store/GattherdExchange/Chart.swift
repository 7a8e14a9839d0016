public import GattherdHistory
public import GattherdModel

/// The course of metrics over one stretch of time, ready to be drawn; its size does not depend on how much there is.
public struct Chart {
    /// The numbers of one metric of a device in one column of the chart.
    struct Cell {
        var n: Int
        var min: Double
        var max: Double
        var sum: Double

        var mean: Double { sum / Double(n) }

        mutating func add(_ other: Cell) {
            n += other.n
            min = Swift.min(min, other.min)
            max = Swift.max(max, other.max)
            sum += other.sum
        }
    }

    /// One metric of a device in one unit.
    struct Series {
        let name: ChartName
        /// One for each part of the stretch; `nil` where nothing was measured.
        private(set) var cells: [Cell?]
        /// All of it.
        private(set) var total: Cell

        init(_ name: ChartName, _ first: Cell, at index: Int, of count: Int) {
            self.name = name
            total = first
            cells = Array(repeating: nil, count: count)
            cells[index] = first
        }

        mutating func add(_ cell: Cell, at index: Int) {
            total.add(cell)
            if cells[index]?.add(cell) == nil { cells[index] = cell }
        }
    }

    let times: Range<Timestamp>
    /// The length of a cell, in microseconds.
    let step: Int64
    private let count: Int
    private var found: [ChartName: Series] = [:]

    /// - Parameters:
    ///   - times: What is drawn from the left end to the right one.
    ///   - step: What a cell stands for.
    ///   - limit: The most cells that there may be: beyond it several steps share one.
    public init(_ times: Range<Timestamp>, step: Duration, limit: Int) {
        let start = times.lowerBound.microseconds
        let span = max(1, times.upperBound.microseconds &- start)
        let wanted = max(1, Int64(min(step / .microseconds(1), 0x1p62)))
        let cells = min(span / wanted + (span % wanted == 0 ? 0 : 1), Int64(max(1, limit)))
        self.times = times
        self.step = span / cells + (span % cells == 0 ? 0 : 1)
        count = Int(cells)
    }

    /// The step that fills at most `limit` cells, and a stretch that begins and ends with one.
    public static func fit(_ times: ClosedRange<Timestamp>, limit: Int) -> (times: Range<Timestamp>, step: Duration) {
        let (first, last) = (drawable(times.lowerBound), drawable(times.upperBound))
        let span = last.microseconds - first.microseconds + 1
        let step = ChartStep.time(covering: span, count: max(1, limit - 1))
        let start = first.rounded(downTo: step)
        let end = last.rounded(downTo: step).advanced(by: .microseconds(step))
        return (start..<end, .microseconds(step))
    }

    /// The nearest instant that an axis can name: what is earlier or later is drawn at the ends.
    private static func drawable(_ time: Timestamp) -> Timestamp {
        min(max(time, Timestamp.writable.lowerBound), Timestamp.writable.upperBound)
    }

    /// Adds what was measured; what is outside of the stretch goes to its nearest end.
    public mutating func add(_ bucket: HistoryBucket) {
        guard let min = bucket.min.number, let max = bucket.max.number, bucket.mean.isFinite else { return }
        let cell = Cell(n: bucket.n, min: min, max: max, sum: bucket.mean * Double(bucket.n))
        let offset = bucket.time.microseconds &- times.lowerBound.microseconds
        let index = Swift.min(Swift.max(0, Int(offset / step)), count - 1)
        let name = ChartName(device: bucket.device, metric: bucket.metric, unit: bucket.unit)
        if found[name]?.add(cell, at: index) == nil {
            found[name] = Series(name, cell, at: index, of: count)
        }
    }

    /// True when there is nothing to draw.
    public var isEmpty: Bool { found.isEmpty }

    /// By device and metric.
    var series: [Series] { found.values.sorted { $0.name < $1.name } }
}

extension Chart.Series {
    /// The cells, with the gaps filled that are no longer than the usual distance of two measurements allows.
    var course: [Chart.Cell?] {
        let places = cells.indices.filter { cells[$0] != nil }
        let distances = zip(places.dropFirst(), places).map { $0 - $1 }
        let longest = 3 * (distances.isEmpty ? 1 : distances.sorted()[distances.count / 2])
        var course = cells
        for (left, distance) in zip(places, distances) where distance > 1 && distance <= longest {
            guard let start = cells[left], let end = cells[left + distance] else { continue }
            for offset in 1..<distance {
                let part = Double(offset) / Double(distance)
                course[left + offset] = Chart.Cell(start.mean + (end.mean - start.mean) * part)
            }
        }
        return course
    }
}

extension Chart.Cell {
    fileprivate init(_ value: Double) {
        self.init(n: 1, min: value, max: value, sum: value)
    }
}

/// The device, metric and unit of a chart.
struct ChartName: Hashable, Comparable {
    let device: String
    let metric: String
    let unit: String?

    static func < (left: Self, right: Self) -> Bool {
        (left.device, left.metric, left.unit ?? "") < (right.device, right.metric, right.unit ?? "")
    }

    var text: String { "\(device) \(metric)" + (unit.map { ", \($0)" } ?? "") }
}

extension SampleValue {
    fileprivate var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number
        case .boolean, .text, .null: nil
        }
    }
}
