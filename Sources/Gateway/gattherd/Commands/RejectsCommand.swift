import GattherdGATT
import GattherdHistory
import GattherdModel

extension CommandSpec {
    static let rejects = CommandSpec(
        name: "rejects",
        summary: "print payloads that did not decode, and why",
        options: HistorySelection.options + [
            .value("format", "FORMAT", "table, csv or json (one object per line)", choices: ["table", "csv", "json"])
        ],
        details: "The payloads help to complete a profile that does not decode them.",
        json: """
            {"time", "device", "characteristic", "bytes", "reason"}, one object a line

            "time" is RFC 3339 in UTC, "characteristic" is a UUID, and "bytes" are hexadecimal.
            """,
        exits: [
            .data: "there is no such device or metric", .cannotCreate: "the output file cannot be created",
            .unavailable: "there is no history",
        ],
        examples: ["gattherd rejects --device strap --since 1h", "gattherd rejects --format json"],
        run: { (arguments) throws(CommandFailure) in try RejectsCommand(arguments).run() }
    )
}

/// Prints payloads that did not decode.
struct RejectsCommand {
    private let selection: HistorySelection
    private let format: RowFormat

    init(_ arguments: Arguments) throws(CommandFailure) {
        let name = arguments.value("format") ?? "table"
        guard let format = RowFormat(rawValue: name) else {
            throw arguments.misuse("'\(name)' is not a format; write table, csv or json")
        }
        self.format = format
        selection = try HistorySelection(arguments)
    }

    func run() throws(CommandFailure) {
        var printer = try RowPrinter(
            format,
            [("time", 27), ("device", 16), ("characteristic", 14), ("bytes", 24), ("reason", 8)],
            selection
        )
        try selection.read { (reader) throws(StoreFault) in
            try reader.rejects(selection.query) { reject in
                printer.print(
                    [
                        .text(reject.time.rfc3339), .text(reject.device), .text(reject.characteristic),
                        .text(Hexadecimal.text(reject.payload.span)), .text(reject.reason),
                    ],
                    at: reject.time
                )
            }
        }
        try printer.finish("rejects")
    }
}
