/// Draws a chart as a picture that stands for itself.
public struct SVGChart {
    /// The most cells that can be told apart.
    public static let limit = 800

    private static let width = 960
    private static let height = 240
    private static let margin = (left: 72, right: 16, top: 32, bottom: 36)

    private let chart: Chart

    public init(_ chart: Chart) {
        self.chart = chart
    }

    /// The whole document, one drawing below the other.
    public var text: String {
        let series = chart.series
        let size = "width=\"\(Self.width)\" height=\"\(Self.height * series.count)\""
        return """
            <svg xmlns="http://www.w3.org/2000/svg" \(size) viewBox="0 0 \(Self.width) \(Self.height * series.count)">
            <style>
            text { font: 12px sans-serif; fill: #444 } .title { font-weight: bold; fill: #111 }
            .grid { stroke: #ddd } .range { fill: #4a90d9; opacity: 0.3 } .mean { fill: none; stroke: #1f5fa8; stroke-width: 1.5 }
            </style>
            <rect width="100%" height="100%" fill="#fff"/>
            \(series.enumerated().map { drawing($1, top: $0 * Self.height) }.joined(separator: "\n"))
            </svg>

            """
    }

    private var plotWidth: Int { Self.width - Self.margin.left - Self.margin.right }
    private var plotHeight: Int { Self.height - Self.margin.top - Self.margin.bottom }

    private func drawing(_ series: Chart.Series, top: Int) -> String {
        let axis = ValueAxis(series.total.min, series.total.max, count: 5)
        let course = series.course
        let parts = [title(series)] + valueMarks(axis) + timeMarks() + runs(course).map { curve($0, course, axis) }
        let place = "translate(\(Self.margin.left) \(top + Self.margin.top))"
        return "<g transform=\"\(place)\">\n\(parts.joined(separator: "\n"))\n</g>"
    }

    private func title(_ series: Chart.Series) -> String {
        let total = series.total
        let numbers = "n \(total.n), min \(ChartNumber.text(total.min)), mean \(ChartNumber.text(total.mean))"
        return "<text class=\"title\" x=\"0\" y=\"-12\">\(series.name.text.escapedXML)</text>"
            + "<text x=\"\(plotWidth)\" y=\"-12\" text-anchor=\"end\">\(numbers), max \(ChartNumber.text(total.max))</text>"
    }

    private func valueMarks(_ axis: ValueAxis) -> [String] {
        axis.marks.map { mark in
            let y = coordinate(Double(plotHeight) * (1 - axis.position(of: mark)))
            return "<line class=\"grid\" x1=\"0\" x2=\"\(plotWidth)\" y1=\"\(y)\" y2=\"\(y)\"/>"
                + "<text x=\"-8\" y=\"\(y)\" dy=\"4\" text-anchor=\"end\">\(axis.label(mark))</text>"
        }
    }

    private func timeMarks() -> [String] {
        let axis = TimeAxis(chart.times, count: plotWidth / 110)
        let marks = axis.marks.map { position, label in
            let x = coordinate(Double(plotWidth) * position)
            return "<line class=\"grid\" x1=\"\(x)\" x2=\"\(x)\" y1=\"0\" y2=\"\(plotHeight)\"/>"
                + "<text x=\"\(x)\" y=\"\(plotHeight + 16)\">\(label)</text>"
        }
        return marks + ["<text x=\"0\" y=\"\(plotHeight + 32)\">\(axis.day), UTC</text>"]
    }

    /// The stretches without a gap.
    private func runs(_ course: [Chart.Cell?]) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        for index in course.indices where course[index] != nil {
            if let last = runs.last, last.upperBound == index {
                runs[runs.count - 1] = last.lowerBound..<index + 1
            } else {
                runs.append(index..<index + 1)
            }
        }
        return runs
    }

    /// The area between the least and the greatest values, and the line of the means.
    private func curve(_ run: Range<Int>, _ course: [Chart.Cell?], _ axis: ValueAxis) -> String {
        let cells = run.compactMap { index in course[index].map { (index: index, cell: $0) } }
        let width = Double(plotWidth) / Double(course.count)
        func points(_ value: (Chart.Cell) -> Double) -> [String] {
            cells.flatMap { index, cell in
                let y = coordinate(Double(plotHeight) * (1 - axis.position(of: value(cell))))
                let edges = run.count == 1 ? [0, 1] : [0.5]
                return edges.map { "\(coordinate((Double(index) + $0) * width)),\(y)" }
            }
        }
        let area = (points(\.max) + points(\.min).reversed()).joined(separator: " ")
        let line = points(\.mean).joined(separator: " ")
        return "<polygon class=\"range\" points=\"\(area)\"/><polyline class=\"mean\" points=\"\(line)\"/>"
    }

    private func coordinate(_ number: Double) -> String { ChartNumber.text(number, step: 0.1) }
}

extension String {
    fileprivate var escapedXML: String {
        var text = ""
        for character in self {
            switch character {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case _ where character.unicodeScalars.contains { $0.value < 0x20 }: text += "\u{FFFD}"
            default: text.append(character)
            }
        }
        return text
    }
}
