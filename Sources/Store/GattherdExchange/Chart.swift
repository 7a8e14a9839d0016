public import GattherdHistory
public import GattherdModel

/// The metrics of one time range, ready to be drawn; the size does not depend on the number of samples.
public struct Chart {
    /// The numbers of one metric of a stream in one column of the chart.
    struct Cell {
        var n: Int
        var min: Double
        var max: Double
        var sum: Double

        /// The mean; the middle of the range if the sum is too large for a number.
        var mean: Double {
            let mean = sum / Double(n)
            return mean.isFinite ? mean : min / 2 + max / 2
        }

        mutating func add(_ other: Cell) {
            n += other.n
            min = Swift.min(min, other.min)
            max = Swift.max(max, other.max)
            sum += other.sum
        }
    }

    /// One metric of a stream in one unit.
    struct Series {
        let name: ChartName
        /// The cells of the time range; `nil` for cells without a value.
        private(set) var cells: [Cell?]
        /// The summary of the whole time range.
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
    ///   - times: The time range from the left end to the right one.
    ///   - step: The time span of a cell.
    ///   - limit: The maximum number of cells; beyond it several steps share a cell.
    public init(_ times: Range<Timestamp>, step: Duration, limit: Int) {
        let start = times.lowerBound.microseconds
        let span = max(1, times.upperBound.microseconds &- start)
        let wanted = max(1, Int64(min(step / .microseconds(1), 0x1p62)))
        let cells = min(span / wanted + (span % wanted == 0 ? 0 : 1), Int64(max(1, limit)))
        self.times = times
        self.step = span / cells + (span % cells == 0 ? 0 : 1)
        count = Int(cells)
    }

    /// Returns a step that fills at most `limit` cells, and a time range that is aligned to it.
    public static func fit(_ times: ClosedRange<Timestamp>, limit: Int) -> (times: Range<Timestamp>, step: Duration) {
        let (first, last) = (drawable(times.lowerBound), drawable(times.upperBound))
        let span = last.microseconds - first.microseconds + 1
        let step = ChartStep.time(covering: span, count: max(1, limit - 1))
        let start = first.rounded(downTo: step)
        let end = last.rounded(downTo: step).advanced(by: .microseconds(step))
        return (start..<end, .microseconds(step))
    }

    /// Returns the nearest instant that an axis can label; earlier and later ones are drawn at the ends.
    private static func drawable(_ time: Timestamp) -> Timestamp {
        min(max(time, Timestamp.writable.lowerBound), Timestamp.writable.upperBound)
    }

    /// Adds numbers; those outside of the time range go to the nearest end.
    public mutating func add(_ bucket: HistoryBucket) {
        guard let min = bucket.min.number, let max = bucket.max.number, bucket.mean.isFinite else { return }
        let cell = Cell(n: bucket.n, min: min, max: max, sum: bucket.mean * Double(bucket.n))
        let offset = bucket.time.microseconds &- times.lowerBound.microseconds
        let index = Swift.min(Swift.max(0, Int(offset / step)), count - 1)
        let name = ChartName(device: bucket.device, stream: bucket.stream, metric: bucket.metric, unit: bucket.unit)
        if found[name]?.add(cell, at: index) == nil {
            found[name] = Series(name, cell, at: index, of: count)
        }
    }

    /// True if there is nothing to draw.
    public var isEmpty: Bool { found.isEmpty }

    /// The metrics, ordered by device and name.
    var series: [Series] { found.values.sorted { $0.name < $1.name } }

    /// Returns the name of a series in words, with its stream if the device has the metric in several.
    func title(of name: ChartName) -> String {
        let isShared = found.keys.contains {
            $0.device == name.device && $0.metric == name.metric && $0.stream != name.stream
        }
        let metric = isShared ? "\(name.stream)/\(name.metric)" : name.metric
        return "\(name.device) \(metric)" + (name.unit.map { ", \($0)" } ?? "")
    }
}

extension Chart.Series {
    /// The cells; gaps that the usual distance of two measurements explains are filled.
    var course: [Chart.Cell?] {
        let places = cells.indices.filter { cells[$0] != nil }
        let distances = zip(places.dropFirst(), places).map { $0 - $1 }
        let longest = 3 * (distances.isEmpty ? 1 : distances.sorted()[distances.count / 2])
        var course = cells
        for (left, distance) in zip(places, distances) where distance > 1 && distance <= longest {
            guard let start = cells[left], let end = cells[left + distance] else { continue }
            for offset in 1..<distance {
                let part = Double(offset) / Double(distance)
                course[left + offset] = Chart.Cell(start.mean * (1 - part) + end.mean * part)
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

/// The device, stream, metric and unit of a chart.
struct ChartName: Hashable, Comparable {
    let device: String
    let stream: String
    let metric: String
    let unit: String?

    static func < (left: Self, right: Self) -> Bool {
        (left.device, left.metric, left.stream, left.unit ?? "")
            < (right.device, right.metric, right.stream, right.unit ?? "")
    }
}
