/// Rows of text in columns, without control characters.
struct TextTable {
    let lines: [String]

    init(_ header: [String], _ rows: [[String]]) {
        let all = ([header] + rows).map { $0.map(Terminal.harmless) }
        let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        lines = all.map { row in
            let cells = zip(row, widths).map { $0.padded(to: $1) }.joined(separator: "  ")
            return String(cells.reversed().drop { $0 == " " }.reversed())
        }
    }
}
