import GattherdConfig
import GattherdHistory
import GattherdModel

extension CommandSpec {
    private static let selection = [
        OptionSpec.value("device", "NAME", "only this device"),
        .value("since", "TIME", "from then on: \(TimeExpression.help)"),
        .value("until", "TIME", "before then"),
        ConfigurationFile.option,
        .value("database", "FILE", "the SQLite file, instead of the configured one"),
    ]

    static let history = CommandSpec(
        name: "history",
        summary: "print samples, also while the daemon runs",
        options: selection + [
            .value("metric", "NAME", "only this metric"),
            .value("every", "TIME", "n, min, mean and max per 1m, 1h, …"),
            .value("format", "FORMAT", "table, csv or json (one object per line)"),
        ],
        examples: [
            "gattherd history --device strap --metric heart_rate --since 1h --every 1m",
            "gattherd history --since today --format csv > today.csv",
        ],
        run: { (arguments) throws(Failure) in try HistoryCommand(arguments).run() }
    )

    static let rejects = CommandSpec(
        name: "rejects",
        summary: "print payloads that did not decode, and why",
        options: selection + [.value("format", "FORMAT", "table, csv or json (one object per line)")],
        run: { (arguments) throws(Failure) in try RejectsCommand(arguments).run() }
    )
}

/// What both commands about history share: where, which part, and how to print it.
struct HistorySelection {
    let reader: HistoryReader
    let query: HistoryQuery
    let format: RowFormat

    init(_ arguments: Arguments) throws(Failure) {
        let now = SystemClock.now
        func instant(_ option: String) throws(Failure) -> Timestamp? {
            guard let text = arguments.value(option) else { return nil }
            if let instant = TimeExpression.instant(text, now: now) { return instant }
            throw arguments.misuse("'\(text)' is not a time; write \(TimeExpression.help)")
        }
        query = HistoryQuery(
            device: arguments.value("device"),
            metric: arguments.value("metric"),
            since: try instant("since"),
            until: try instant("until")
        )
        let name = arguments.value("format") ?? "table"
        guard let format = RowFormat(rawValue: name) else {
            throw arguments.misuse("'\(name)' is not a format; write table, csv or json")
        }
        self.format = format
        let path: String
        if let database = arguments.value("database") {
            path = database
        } else {
            path = try ConfigurationFile(arguments).load().history.path.value
        }
        do throws(StoreFault) {
            reader = try HistoryReader(path: path)
        } catch {
            throw Failure(.unavailable, "gattherd: \(error.detail)")
        }
    }
}

/// Prints samples, or their summary per span of time.
struct HistoryCommand {
    private let selection: HistorySelection
    private let step: Duration?

    init(_ arguments: Arguments) throws(Failure) {
        selection = try HistorySelection(arguments)
        step = arguments.value("every").flatMap(TimeExpression.duration)
        if let text = arguments.value("every"), step == nil {
            throw arguments.misuse("'\(text)' is not a length of time; write for example 30s, 5m or 1h")
        }
    }

    func run() throws(Failure) {
        do throws(StoreFault) {
            if let step { try printBuckets(step) } else { try printRows() }
        } catch {
            throw Failure(.inputOutput, "gattherd history: \(error.detail)")
        }
    }

    private func printRows() throws(StoreFault) {
        var printer = RowPrinter(
            selection.format,
            [("time", 27), ("seq", 9), ("device", 16), ("metric", 24), ("value", 14), ("unit", 8), ("source", 8)]
        )
        try selection.reader.rows(selection.query) { row in
            let series = row.series
            printer.print([
                .text(row.time.rfc3339), .integer(row.seq), .text(series.device), .text(series.metric), row.value,
                series.unit.map { .text($0) } ?? .null, .text(series.source),
            ])
            return true
        }
        printer.finish()
    }

    private func printBuckets(_ step: Duration) throws(StoreFault) {
        var printer = RowPrinter(
            selection.format,
            [
                ("time", 27), ("device", 16), ("metric", 24), ("n", 7), ("min", 12), ("mean", 20), ("max", 12),
                ("unit", 8),
            ]
        )
        try selection.reader.buckets(selection.query, every: step) { bucket in
            printer.print([
                .text(bucket.time.rfc3339), .text(bucket.device), .text(bucket.metric), .integer(Int64(bucket.n)),
                bucket.min, .real(bucket.mean), bucket.max, bucket.unit.map { .text($0) } ?? .null,
            ])
            return true
        }
        printer.finish()
    }
}

/// Prints payloads that did not decode.
struct RejectsCommand {
    private let selection: HistorySelection

    init(_ arguments: Arguments) throws(Failure) {
        selection = try HistorySelection(arguments)
    }

    func run() throws(Failure) {
        var printer = RowPrinter(
            selection.format,
            [("time", 27), ("device", 16), ("characteristic", 14), ("bytes", 24), ("reason", 8)]
        )
        do throws(StoreFault) {
            try selection.reader.rejects(selection.query) { reject in
                printer.print([
                    .text(reject.time.rfc3339), .text(reject.device), .text(reject.characteristic),
                    .text(reject.hexadecimal), .text(reject.reason),
                ])
                return true
            }
        } catch {
            throw Failure(.inputOutput, "gattherd rejects: \(error.detail)")
        }
        printer.finish()
    }
}
