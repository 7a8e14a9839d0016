import GattherdGATT
import GattherdModel
import Glibc

/// How rows are printed.
enum RowFormat: String {
    case table
    case csv
    case json
}

/// Prints rows as they come, in large pieces.
struct RowPrinter {
    private let format: RowFormat
    private let columns: [(name: String, width: Int)]
    private var pending = ""
    private let chunk = 65_536

    init(_ format: RowFormat, _ columns: [(name: String, width: Int)]) {
        self.format = format
        self.columns = columns
        switch format {
        case .table: pending = columns.map { $0.name.uppercased().padded(to: $0.width) }.joined(separator: "  ") + "\n"
        case .csv: pending = columns.map(\.name).joined(separator: ",") + "\n"
        case .json: break
        }
    }

    /// Prints one row; `values` are as many as there are columns.
    mutating func print(_ values: [SampleValue]) {
        switch format {
        case .table: appendTable(values)
        case .csv: pending += values.map(csv).joined(separator: ",") + "\n"
        case .json: appendJSON(values)
        }
        if pending.utf8.count > chunk { finish() }
    }

    /// Prints what has not been printed.
    mutating func finish() {
        Console.write(pending, to: STDOUT_FILENO)
        pending = ""
    }

    private mutating func appendTable(_ values: [SampleValue]) {
        let cells = zip(values, columns).map { value, column in
            if case .text(let text) = value { return text.padded(to: column.width) }
            return text(value).leftPadded(to: column.width)
        }
        pending += cells.joined(separator: "  ") + "\n"
    }

    private mutating func appendJSON(_ values: [SampleValue]) {
        let octets = JSONWriter.octets { writer in
            writer.beginObject()
            for (value, column) in zip(values, columns) {
                writer.key(column.name)
                writer.value(value)
            }
            writer.endObject()
        }
        pending += String(decoding: octets, as: UTF8.self) + "\n"
    }

    /// RFC 4180, section 2.
    private func csv(_ value: SampleValue) -> String {
        let text = text(value)
        guard text.contains(where: { $0 == "," || $0 == "\"" || $0.isNewline }) else { return text }
        return "\"" + text.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }

    private func text(_ value: SampleValue) -> String {
        switch value {
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .boolean(let flag): flag ? "1" : "0"
        case .text(let text): text
        case .null: ""
        }
    }
}

extension Reject {
    var hexadecimal: String { Hexadecimal.text(octets.span) }
}
