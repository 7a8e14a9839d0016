import Glibc

/// Measurements of several implementations, each compared with gattherd.
struct RatioTable {
    /// A measured quantity.
    struct Column {
        let name: String
        let unit: String
    }

    private let columns: [Column]
    private var rows: [(name: String, values: [Double?])] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// Adds an implementation; the first one is gattherd's.
    ///
    /// `nil` is for quantities that cannot be measured.
    mutating func add(_ name: String, _ values: [Double?]) {
        rows.append((name, values))
    }

    /// Prints the ratios to gattherd, which are portable, then the measured values.
    func print(title: String) {
        let widths = columns.map { max(11, $0.name.count + 2, $0.unit.count + 2) }
        let width = (rows.map(\.name.count).max() ?? 0) + 2
        let lines = { (cells: [String]) in zip(cells, widths).map { $0.padded(to: $1) }.joined() }
        Swift.print("\n\(title)\n")
        Swift.print("".filled(to: width) + lines(columns.map(\.name)))
        for row in rows { Swift.print(row.name.filled(to: width) + lines(ratios(row.values))) }
        Swift.print("\n" + "measured here".filled(to: width) + lines(columns.map(\.unit)))
        for row in rows { Swift.print(row.name.filled(to: width) + lines(row.values.map { Self.text($0) })) }
    }

    /// The table in Markdown: measured values, and ratios for the rows after the first.
    func markdown(corner: String) -> [String] {
        let headings = columns.map { "\($0.name), \($0.unit)" }
        let cells = rows.enumerated().map { number, row in
            zip(row.values.map(Self.text), ratios(row.values)).map { value, ratio in
                number == 0 || ratio == "-" ? value : "\(value) (\(ratio))"
            }
        }
        let lines =
            [[corner] + headings, ["---"] + columns.map { _ in "---" }] + zip(rows.map(\.name), cells).map { [$0] + $1 }
        return lines.map { "| \($0.map(Self.cell).joined(separator: " | ")) |" }
    }

    /// The text of a cell in a Markdown table, where bars separate cells.
    private static func cell(_ text: String) -> String {
        String(text.flatMap { $0 == "|" ? ["\\", $0] : [$0] })
    }

    private func ratios(_ values: [Double?]) -> [String] {
        zip(values, rows.first?.values ?? []).map { value, ours in
            guard let value, let ours, ours > 0 else { return "-" }
            return Self.text(value / ours) + " ×"
        }
    }

    /// A number with three significant digits.
    static func text(_ number: Double?) -> String {
        guard let number else { return "-" }
        let digits = max(0, 2 - Int(log10(max(abs(number), 1e-3)).rounded(.down)))
        let power = pow(10, Double(digits))
        let rounded = (number * power).rounded() / power
        return digits == 0 ? "\(Int(rounded))" : "\(rounded)"
    }
}

extension String {
    fileprivate func filled(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
    fileprivate func padded(to width: Int) -> String { String(repeating: " ", count: max(1, width - count)) + self }
}
