import GattherdExchange
import GattherdGATT
import GattherdGateway
import GattherdHistory
import GattherdModel
import GattherdPostgres

/// Prints samples of all gateways, their summaries, or a chart of them.
struct FleetHistoryCommand {
    private let history: FleetHistory
    private let url: PostgresURL
    private let form: HistoryCommand.Form
    private let step: Duration?
    private let output: String?

    init(_ arguments: Arguments, _ text: String) async throws(CommandFailure) {
        for option in ["config", "database"] where arguments.value(option) != nil {
            throw arguments.misuse("--fleet and --\(option) exclude each other")
        }
        (form, step) = (try HistoryCommand.form(arguments), try HistoryCommand.step(arguments))
        let asked = try HistorySelection.query(arguments)
        let query = FleetHistory.Query(
            device: asked.device,
            stream: asked.stream,
            metric: asked.metric,
            since: asked.since,
            until: asked.until
        )
        output = arguments.value("output")
        let access = try FleetAccess(arguments, text)
        url = access.url
        history = try await Self.ask { () async throws(FleetDatabase.Failure) in
            try await Self.history(access.fleet, query)
        }
    }

    /// Returns the history of the device with a name, or else of the devices with an address in any notation.
    private static func history(
        _ fleet: FleetDatabase,
        _ query: FleetHistory.Query
    ) async throws(FleetDatabase.Failure) -> FleetHistory {
        let history = FleetHistory(fleet, query)
        guard let name = query.device, let address = BluetoothAddress(anyNotation: name)?.description,
            try await !history.devices().contains(name), try await history.knows(address: address)
        else { return history }
        var query = query
        (query.device, query.address) = (nil, address)
        return FleetHistory(fleet, query)
    }

    func run() async throws(CommandFailure) {
        switch (form, step) {
        case (.plot, _): try await plot()
        case (.rows(let format), let step?): try await printBuckets(format, step)
        case (.rows(let format), nil): try await printRows(format)
        }
    }

    private func printRows(_ format: RowFormat) async throws(CommandFailure) {
        var printer = try RowPrinter(
            format,
            [
                ("gateway", 12), ("time", 27), ("seq", 9), ("device", 16), ("metric", 24), ("value", 14), ("unit", 8),
                ("source", 8), ("stream", 16),
            ],
            output: output
        )
        try await Self.ask { () async throws(FleetDatabase.Failure) in
            try await history.rows { row in
                printer.print(
                    [
                        .text(row.gateway), .text(row.time.rfc3339), .integer(row.seq), .text(row.device),
                        .text(row.metric), row.value, row.unit.map { .text($0) } ?? .null, .text(row.source),
                        .text(row.stream),
                    ],
                    at: row.time
                )
            }
        }
        try await finish(&printer)
    }

    private func printBuckets(_ format: RowFormat, _ step: Duration) async throws(CommandFailure) {
        var printer = try RowPrinter(
            format,
            [
                ("gateway", 12), ("time", 27), ("device", 16), ("metric", 24), ("n", 7), ("min", 12), ("mean", 20),
                ("max", 12), ("unit", 8), ("stream", 16),
            ],
            output: output
        )
        try await Self.ask { () async throws(FleetDatabase.Failure) in
            try await history.buckets(every: step) { found in
                let bucket = HistoryBucket(found, device: found.device)
                return printer.print(
                    [
                        .text(found.gateway), .text(bucket.time.rfc3339), .text(bucket.device), .text(bucket.metric),
                        .integer(Int64(bucket.n)), bucket.min, .real(bucket.mean), bucket.max,
                        bucket.unit.map { .text($0) } ?? .null, .text(bucket.stream),
                    ],
                    at: bucket.time
                )
            }
        }
        try await finish(&printer)
    }

    private func plot() async throws(CommandFailure) {
        let destination = try OutputDestination(path: output)
        guard let found = try await Self.ask({ () async throws(FleetDatabase.Failure) in try await history.extent() })
        else {
            try await expectNames()
            throw CommandFailure(
                .data,
                "gattherd history: there are no numbers to plot; choose another time, device or metric"
            )
        }
        let query = history.query
        let first = query.since ?? found.lowerBound
        let last = query.until?.advanced(by: .microseconds(-1)) ?? found.upperBound
        let limit = HistoryPlot.terminal.limit
        let fit = Chart.fit(first...max(first, last), limit: limit)
        var chart = Chart(fit.times, step: step ?? fit.step, limit: limit)
        try await Self.ask { () async throws(FleetDatabase.Failure) in
            try await history.buckets(every: step ?? fit.step) { found in
                chart.add(HistoryBucket(found, device: "\(found.gateway)/\(found.device)"))
                return true
            }
        }
        HistoryPlot.draw(chart, to: destination)
        try destination.finish()
    }

    private func finish(_ printer: inout RowPrinter) async throws(CommandFailure) {
        if printer.isEmpty { try await expectNames() }
        try printer.finish()
        if printer.isEmpty { Terminal.printError("gattherd: no samples were found") }
    }

    /// Throws an error if the result is empty because a name does not exist.
    private func expectNames() async throws(CommandFailure) {
        let query = history.query
        if let device = query.device {
            let known = try await Self.ask { () async throws(FleetDatabase.Failure) in try await history.devices() }
            try expect(device, "device", known)
        }
        if let stream = query.stream {
            let known = try await Self.ask { () async throws(FleetDatabase.Failure) in try await history.streams() }
            try expect(stream, "stream", known)
        }
        if let metric = query.metric {
            let known = try await Self.ask { () async throws(FleetDatabase.Failure) in try await history.metrics() }
            try expect(metric, "metric", known)
        }
    }

    private func expect(_ name: String, _ noun: String, _ known: [String]) throws(CommandFailure) {
        if let words = UnknownName(name, noun, among: known) {
            throw CommandFailure(.data, "gattherd: \(url): \(words)")
        }
    }

    /// Runs `body`; an error ends the command.
    private static func ask<Value>(
        _ body: () async throws(FleetDatabase.Failure) -> Value
    ) async throws(CommandFailure) -> Value {
        do throws(FleetDatabase.Failure) {
            return try await body()
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
    }
}

extension HistoryBucket {
    /// Creates a bucket from one gateway's summary, with another name for the device.
    fileprivate init(_ bucket: FleetHistory.Bucket, device: String) {
        self.init(
            time: bucket.time,
            device: device,
            stream: bucket.stream,
            metric: bucket.metric,
            unit: bucket.unit,
            n: bucket.n,
            min: .real(bucket.min),
            mean: bucket.mean,
            max: .real(bucket.max)
        )
    }
}
