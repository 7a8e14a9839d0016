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

    /// Adds an implementation.
    ///
    /// The first one is gattherd's.
    ///
    /// `nil` for quantities that cannot be measured.
    mutating func add(_ name: String, _ values: [Double?]) {
        rows.append((name, values))
    }

    /// The table: first the ratios to gattherd, which are portable, then the measured values.
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

    private func ratios(_ values: [Double?]) -> [String] {
        zip(values, rows.first?.values ?? []).map { value, ours in
            guard let value, let ours, ours > 0 else { return "-" }
            return Self.text(value / ours) + " x"
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
