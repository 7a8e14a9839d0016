/// Draws a chart with characters.
public struct TerminalChart {
    /// The dots of a Braille character.
    private static let dots = (across: 2, down: 4)

    private let width: Int
    private let height: Int
    private let isASCII: Bool

    /// - Parameters:
    ///   - width: The number of characters per line.
    ///   - height: The number of lines per chart, without its title and time axis.
    ///   - isASCII: True for terminals without Braille characters.
    public init(width: Int, height: Int = 12, isASCII: Bool = false) {
        self.width = min(max(40, width), 1000)
        self.height = min(max(4, height), 200)
        self.isASCII = isASCII
    }

    /// The maximum number of distinguishable cells.
    public var limit: Int { plotWidth * Self.dots.across }

    private var axisWidth: Int { 10 }
    private var plotWidth: Int { width - axisWidth - 2 }

    /// The lines of all drawings, one drawing for each metric.
    public func lines(_ chart: Chart) -> [String] {
        chart.series.map { lines($0, chart) }.joined(separator: [""]).map { $0 }
    }

    private func lines(_ series: Chart.Series, _ chart: Chart) -> [String] {
        let axis = ValueAxis(series.total.min, series.total.max, count: height / 2)
        let rows = raster(series, axis)
        var labels = Array(repeating: "", count: height)
        for mark in axis.marks { labels[row(axis.position(of: mark)) / Self.dots.down] = axis.label(mark) }
        let body = zip(labels, rows).map { label, row in
            label.suffix(axisWidth).leftPadded(to: axisWidth) + (label.isEmpty ? bar : tick) + row
        }
        return [title(series, chart)] + body + timeAxis(chart)
    }

    private func title(_ series: Chart.Series, _ chart: Chart) -> String {
        let name = chart.title(of: series.name)
        let total = series.total
        let numbers =
            "n \(total.n)  min \(ChartNumber.text(total.min))  mean \(ChartNumber.text(total.mean))"
            + "  max \(ChartNumber.text(total.max))"
        return name + "  " + numbers.leftPadded(to: width - name.count - 2)
    }

    /// The dots of a column reach from the minimum to the maximum, and to the mean of the previous column.
    private func raster(_ series: Chart.Series, _ axis: ValueAxis) -> [String] {
        var canvas = Canvas(width: plotWidth, height: height, dots: Self.dots)
        let course = series.course
        var before: Double?
        for column in 0..<limit {
            guard let cell = course[column * course.count / limit] else {
                before = nil
                continue
            }
            let low = axis.position(of: min(cell.min, before ?? cell.min))
            let high = axis.position(of: max(cell.max, before ?? cell.max))
            canvas.fill(column, row(high)...row(low))
            before = cell.mean
        }
        return canvas.rows(isASCII: isASCII)
    }

    /// Returns the row of dots, counted from the top.
    private func row(_ position: Double) -> Int {
        let last = height * Self.dots.down - 1
        return last - Int((position * Double(last)).rounded())
    }

    private var bar: String { isASCII ? " |" : " │" }
    private var tick: String { isASCII ? " +" : " ┤" }

    private func timeAxis(_ chart: Chart) -> [String] {
        let axis = TimeAxis(chart.times, count: plotWidth / 14)
        var line = Array(repeating: isASCII ? "-" : "─", count: plotWidth)
        var labels = Array(repeating: " ", count: plotWidth)
        for (position, label) in axis.marks {
            let column = min(Int(position * Double(plotWidth)), plotWidth - 1)
            line[column] = isASCII ? "+" : "┬"
            for (offset, character) in label.enumerated() where column + offset < plotWidth {
                labels[column + offset] = String(character)
            }
        }
        let margin = String(repeating: " ", count: axisWidth + 1)
        let text = margin + " " + labels.joined()
        return [margin + (isASCII ? "+" : "└") + line.joined(), text, margin + " \(axis.day), UTC"]
    }
}

/// A field of dots, several to a character.
private struct Canvas {
    private let width: Int
    private let dots: (across: Int, down: Int)
    private var cells: [UInt8]

    init(width: Int, height: Int, dots: (across: Int, down: Int)) {
        self.width = width
        self.dots = dots
        cells = Array(repeating: 0, count: width * height)
    }

    /// Sets a column's dots in `rows`, counted from the top.
    mutating func fill(_ column: Int, _ rows: ClosedRange<Int>) {
        for row in rows {
            let place = row / dots.down * width + column / dots.across
            cells[place] |= Self.braille[column % dots.across][row % dots.down]
        }
    }

    /// The bits of Unicode's braille patterns, by column and row.
    private static let braille: [[UInt8]] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]]

    func rows(isASCII: Bool) -> [String] {
        stride(from: 0, to: cells.count, by: width).map { start in
            cells[start..<start + width].map { Self.character($0, isASCII) }.joined()
        }
    }

    private static func character(_ bits: UInt8, _ isASCII: Bool) -> String {
        if bits == 0 { return " " }
        if isASCII { return bits.nonzeroBitCount > 4 ? "#" : ":" }
        return String(Unicode.Scalar(0x2800 + UInt32(bits)).map(Character.init) ?? "#")
    }
}

extension StringProtocol {
    fileprivate func leftPadded(to width: Int) -> String {
        String(repeating: " ", count: Swift.max(0, width - count)) + self
    }
}
