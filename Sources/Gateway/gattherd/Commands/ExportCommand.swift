import GattherdExchange
import GattherdHistory
import GattherdModel

extension CommandSpec {
    static let export = CommandSpec(
        name: "export",
        summary: "write samples for other programs, also while the daemon runs",
        options: HistorySelection.options + [
            .value("metric", "NAME", "only this metric"),
            .value(
                "format",
                "FORMAT",
                "json (lines; the default) or line (InfluxDB's line protocol)",
                choices: ["json", "line"]
            ),
        ],
        details: """
            JSON lines contain all columns of a sample; 'gattherd import' reads them. In line protocol, the measurement is the
            metric, the field is 'value', and device, profile, stream, source and unit are tags; unknown values (null) are
            left out, and times before 1677 or after 2262. Without --format, the extension of FILE (.jsonl, .lp) decides.
            """,
        exits: [
            .data: "there is no such device or metric, or the history is damaged",
            .cannotCreate: "the output file cannot be created", .unavailable: "there is no history",
        ],
        examples: [
            "gattherd export --output all.jsonl",
            "gattherd export --device strap --since yesterday --until today --format line > strap.lp",
        ],
        run: { (arguments) throws(CommandFailure) in try ExportCommand(arguments).run() }
    )
}

/// Writes samples for other programs.
struct ExportCommand {
    private static let chunk = 65_536

    private let selection: HistorySelection
    private let format: ExchangeFormat

    init(_ arguments: Arguments) throws(CommandFailure) {
        format = try ExchangeFormat(arguments, file: arguments.value("output")) ?? .json
        selection = try HistorySelection(arguments)
    }

    func run() throws(CommandFailure) {
        let destination = try OutputDestination(path: selection.output)
        var progress = ProgressLine("samples", isBusy: destination.isTerminal)
        let times = QueryProgress(selection.query, selection.reader)
        var writer = SampleWriter(format)
        var (count, unwritten) = (0, 0)
        try selection.read { (reader) throws(StoreFault) in
            try reader.rows(selection.query) { row in
                count += 1
                if !writer.write(row) { unwritten += 1 }
                progress.advance { times.part(at: row.time) }
                guard writer.bytes.count >= Self.chunk else { return true }
                defer { writer.removeAll() }
                return destination.write(writer.bytes)
            }
        }
        progress.finish()
        if count == 0 { try selection.expectNames() }
        _ = destination.write(writer.bytes)
        try destination.finish()
        if count == 0 { try selection.explainNothing() }
        if unwritten > 0 {
            let reason = "not known, or from before 1677 or after 2262"
            Terminal.printError("gattherd export: left out \(unwritten) values that are \(reason): use --format json")
        }
    }
}

extension ExchangeFormat {
    /// Returns the format of `--format`, else that of the extension of `file`; `nil` without both.
    init?(_ arguments: Arguments, file: String?) throws(CommandFailure) {
        guard let name = arguments.value("format") else {
            guard let file, let format = ExchangeFormat(fileName: file) else { return nil }
            self = format
            return
        }
        guard let format = ExchangeFormat(rawValue: name) else {
            throw arguments.misuse("'\(name)' is not a format; write json or line")
        }
        self = format
    }
}
