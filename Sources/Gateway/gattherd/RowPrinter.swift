import GattherdHistory
import GattherdModel

/// The format of printed rows.
enum RowFormat: String {
    case table
    case csv
    case json
}

/// Prints rows as they arrive, in large writes.
struct RowPrinter {
    private static let chunk = 65_536

    private let format: RowFormat
    private let columns: [(name: String, width: Int)]
    /// The rows of a file; `nil` for those of the centre.
    private let selection: HistorySelection?
    private let destination: OutputDestination
    private let times: QueryProgress?
    private var progress: ProgressLine
    private var pending = ""
    private(set) var isEmpty = true

    /// - Parameters:
    ///   - format: The format of rows.
    ///   - columns: The names and widths of the columns.
    ///   - selection: The rows and the output.
    ///   - fromSummaries: True if rows may be older than the oldest sample.
    /// - Throws: ``CommandFailure`` if the file to print to cannot be made.
    init(
        _ format: RowFormat,
        _ columns: [(name: String, width: Int)],
        _ selection: HistorySelection,
        fromSummaries: Bool = false
    ) throws(CommandFailure) {
        let times = QueryProgress(selection.query, selection.reader, withSummaries: fromSummaries)
        try self.init(format, columns, selection, times, output: selection.output)
    }

    /// - Parameters:
    ///   - format: The format of rows.
    ///   - columns: The names and widths of the columns.
    ///   - output: The file to print to; `nil` for standard output.
    /// - Throws: ``CommandFailure`` if the file to print to cannot be made.
    init(
        _ format: RowFormat,
        _ columns: [(name: String, width: Int)],
        output: String?
    ) throws(CommandFailure) {
        try self.init(format, columns, nil, nil, output: output)
    }

    private init(
        _ format: RowFormat,
        _ columns: [(name: String, width: Int)],
        _ selection: HistorySelection?,
        _ times: QueryProgress?,
        output: String?
    ) throws(CommandFailure) {
        (self.format, self.columns, self.selection, self.times) = (format, columns, selection, times)
        destination = try OutputDestination(path: output)
        progress = ProgressLine("rows", isBusy: destination.isTerminal)
        switch format {
        case .table: pending = Self.line(columns.map { $0.name.uppercased().padded(to: $0.width) })
        case .csv: pending = columns.map(\.name).joined(separator: ",") + "\n"
        case .json: break
        }
    }

    /// Prints one row with a value for each column.
    ///
    /// - Returns: False if nothing more can be written.
    mutating func print(_ values: [SampleValue], at time: Timestamp) -> Bool {
        isEmpty = false
        switch format {
        case .table: appendTable(values)
        case .csv: pending += values.map(Self.csv).joined(separator: ",") + "\n"
        case .json: appendJSON(values)
        }
        progress.advance { [times] in times?.part(at: time) }
        return pending.utf8.count < Self.chunk || flush()
    }

    /// Prints the rest.
    ///
    /// - Parameter noun: The plural of what the rows are.
    /// - Throws: ``CommandFailure`` if the output failed, or if nothing was found because a name does not exist.
    mutating func finish(_ noun: String = "samples") throws(CommandFailure) {
        progress.finish()
        if isEmpty { try selection?.expectNames() }
        _ = flush()
        try destination.finish()
        if isEmpty { try selection?.explainNothing(noun) }
    }

    private mutating func flush() -> Bool {
        defer { pending = "" }
        return destination.write(pending)
    }

    private mutating func appendTable(_ values: [SampleValue]) {
        let cells = zip(values, columns).map { value, column in
            if case .text(let text) = value { return Terminal.harmless(text).padded(to: column.width) }
            return Self.text(value).leftPadded(to: column.width)
        }
        pending += Self.line(cells)
    }

    /// Returns a line of the table without spaces at its end.
    private static func line(_ cells: [String]) -> String {
        let text = cells.joined(separator: "  ")
        return String(text.reversed().drop { $0 == " " }.reversed()) + "\n"
    }

    private mutating func appendJSON(_ values: [SampleValue]) {
        let bytes = JSONWriter.bytes { writer in
            writer.beginObject()
            for (value, column) in zip(values, columns) {
                writer.key(column.name)
                writer.value(value)
            }
            writer.endObject()
        }
        pending += String(decoding: bytes, as: UTF8.self) + "\n"
    }

    /// Returns a field by RFC 4180, section 2.
    ///
    /// Spreadsheets evaluate a text that begins with one of these characters as a formula. A device must not inject
    /// formulas, so such a text gets an apostrophe. Numbers stay as they are.
    static func csv(_ value: SampleValue) -> String {
        guard case .text(let text) = value else { return Self.text(value) }
        // By scalars, as readers of the file see them: a quote with a combining mark is another Character.
        let scalars = text.unicodeScalars
        let isFormula = scalars.first.map { "=+-@\t\r\n＝＋－＠".unicodeScalars.contains($0) } ?? false
        let plain = isFormula ? "'" + text : text
        guard scalars.contains(where: endsField) else { return plain }
        var field = "\"".unicodeScalars
        for scalar in plain.unicodeScalars {
            if scalar == "\"" { field.append(scalar) }
            field.append(scalar)
        }
        field.append("\"")
        return String(field)
    }

    /// True for a scalar that may end an unquoted field.
    private static func endsField(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: scalar == "," || scalar == "\""
        }
    }

    static func text(_ value: SampleValue) -> String {
        switch value {
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .boolean(let flag): flag ? "1" : "0"
        case .text(let text): text
        case .null: ""
        }
    }
}
