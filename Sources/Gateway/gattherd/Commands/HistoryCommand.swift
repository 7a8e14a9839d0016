import GattherdExchange
import GattherdHistory
import GattherdModel

extension CommandSpec {
    static let history = CommandSpec(
        name: "history",
        summary: "print samples, also while the daemon runs",
        options: HistorySelection.options + [
            .value("stream", "NAME", "only this stream"),
            .value("metric", "NAME", "only this metric"),
            .value("every", "TIME", "n, min, mean and max per 1m, 1h, …"),
            .value(
                "format",
                "FORMAT",
                "table, csv, json (one object per line) or plot",
                choices: ["table", "csv", "json", "plot"]
            ),
            .value("fleet", "URL", "the history of all gateways, at the centre: postgresql://USER@HOST/DATABASE"),
        ] + FleetAccess.options,
        details: """
            All times are UTC. A plot draws the range and the mean of each metric; without --every it chooses a step. Without
            --format, the extension of FILE (.csv, .json) decides.

            With --fleet, the central history answers, and 'gateway' is the first column. An advertisement that several
            gateways heard is one reading. An address selects the device that had it last at each gateway.
            """,
        json: """
            {"time", "seq", "device", "metric", "value", "unit", "source", "stream"}, one object a line; with --every
            {"time", "device", "metric", "n", "min", "mean", "max", "unit", "stream"}

            Times are RFC 3339 in UTC; with --fleet, "gateway" is the first member. A metric with several values has a line for each.
            """,
        exits: [
            .data: "there is no such device, stream or metric, or the history is damaged",
            .cannotCreate: "the output file cannot be created",
            .unavailable: "there is no history, or the centre cannot be reached",
        ],
        examples: [
            "gattherd history --device strap --metric heart_rate --since 1h --every 1m",
            "gattherd history --since today --output today.csv",
            "gattherd history --metric heart_rate --since 24h --format plot",
            "gattherd history --metric heart_rate --since 2026-11-01 --until 2026-12-01 --every 1h "
                + "--output november.csv",
            "gattherd history --fleet postgresql://reader@db.example.com/gattherd --metric temperature --since 1h",
        ],
        run: { (arguments) async throws(CommandFailure) in
            if let url = arguments.value("fleet") {
                try await FleetHistoryCommand(arguments, url).run()
            } else {
                try HistoryCommand(arguments).run()
            }
        }
    )
}

/// Prints samples, their summary per span of time, or a chart of them.
struct HistoryCommand {
    enum Form {
        case rows(RowFormat)
        case plot
    }

    private let selection: HistorySelection
    private let step: Duration?
    private let form: Form

    init(_ arguments: Arguments) throws(CommandFailure) {
        form = try Self.form(arguments)
        step = try Self.step(arguments)
        selection = try HistorySelection(arguments)
    }

    static func step(_ arguments: Arguments) throws(CommandFailure) -> Duration? {
        guard let text = arguments.value("every") else { return nil }
        if let step = TimeExpression.duration(text) { return step }
        throw arguments.misuse("'\(text)' is not a length of time; write for example 30s, 5m or 1h")
    }

    static func form(_ arguments: Arguments) throws(CommandFailure) -> Form {
        let ending = arguments.value("output").flatMap { $0.split(separator: ".").last.map { String($0) } } ?? ""
        let implied = ["csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"][ending]
        let name = arguments.value("format") ?? implied ?? "table"
        if name == "plot" { return .plot }
        if let format = RowFormat(rawValue: name) { return .rows(format) }
        throw arguments.misuse("'\(name)' is not a format; write table, csv, json or plot")
    }

    func run() throws(CommandFailure) {
        switch (form, step) {
        case (.plot, _): try HistoryPlot(selection, step).run()
        case (.rows(let format), let step?): try printBuckets(format, step)
        case (.rows(let format), nil): try printRows(format)
        }
    }

    private func printRows(_ format: RowFormat) throws(CommandFailure) {
        var printer = try RowPrinter(
            format,
            [
                ("time", 27), ("seq", 9), ("device", 16), ("metric", 24), ("value", 14), ("unit", 8), ("source", 8),
                ("stream", 16),
            ],
            selection
        )
        try selection.read { (reader) throws(StoreFault) in
            try reader.rows(selection.query) { row in
                let series = row.series
                return printer.print(
                    [
                        .text(row.time.rfc3339), .integer(row.seq), .text(series.device), .text(series.metric),
                        row.value,
                        series.unit.map { .text($0) } ?? .null, .text(series.source), .text(series.stream),
                    ],
                    at: row.time
                )
            }
        }
        try printer.finish()
    }

    private func printBuckets(_ format: RowFormat, _ step: Duration) throws(CommandFailure) {
        var printer = try RowPrinter(
            format,
            [
                ("time", 27), ("device", 16), ("metric", 24), ("n", 7), ("min", 12), ("mean", 20), ("max", 12),
                ("unit", 8), ("stream", 16),
            ],
            selection,
            fromSummaries: true
        )
        try selection.read { (reader) throws(StoreFault) in
            try reader.buckets(selection.query, every: step) { bucket in
                printer.print(
                    [
                        .text(bucket.time.rfc3339), .text(bucket.device), .text(bucket.metric),
                        .integer(Int64(bucket.n)),
                        bucket.min, .real(bucket.mean), bucket.max, bucket.unit.map { .text($0) } ?? .null,
                        .text(bucket.stream),
                    ],
                    at: bucket.time
                )
            }
        }
        try printer.finish()
    }
}
