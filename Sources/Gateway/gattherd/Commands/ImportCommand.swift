import GattherdExchange
import GattherdHistory
import GattherdModel
import GattherdSync

extension CommandSpec {
    static let `import` = CommandSpec(
        name: "import",
        summary: "add samples from JSON lines or line protocol to a history that no daemon has open",
        positionals: [PositionalSpec(name: "FILE")],
        options: [
            .value(
                "format",
                "FORMAT",
                "json (lines) or line (InfluxDB's line protocol); default: as the first line is",
                choices: ["json", "line"]
            ),
            .value("device", "NAME", "the device of lines that name none"),
            .value(
                "precision",
                "UNIT",
                "the unit of times in line protocol: ns (default), us, ms or s",
                choices: ["ns", "us", "ms", "s"]
            ),
        ] + DatabaseFile.options,
        details: """
            Stop the daemon first. A missing history is created. FILE may be - for standard input. Existing samples (same
            time, device, stream, metric and value) are skipped, so an import can be repeated after an interruption or a
            correction. Imported samples are summarised and kept like others, never published, and have a negative seq.

            A JSON line needs "device", "metric", "value", and "time" (RFC 3339) or "ts" (µs since 1970); it may have "profile",
            "stream", "unit", "source", "kind" and "repeated". A point of line protocol needs the tag device and a time. The
            measurement names the metric of the field 'value'; other fields are metrics of their own name.
            """,
        exits: [
            .data: "a line is wrong", .noInput: "FILE cannot be read", .unavailable: "a daemon has the history open",
            .cannotCreate: "the history cannot be created",
            .inputOutput: "the disk is full or fails",
        ],
        examples: ["gattherd import all.jsonl", "gattherd import --device attic --precision s attic.lp"],
        run: { (arguments) throws(CommandFailure) in try ImportCommand(arguments).run() }
    )
}

/// Adds samples from a file.
struct ImportCommand {
    private let source: LineSource
    private let path: String
    /// The owner of the folder of history: root changes files there with this account's rights, so that it follows no
    /// link into folders of others.
    private let account: FileAccount
    private let format: ExchangeFormat?
    private let device: String?
    private let precision: TimePrecision

    init(_ arguments: Arguments) throws(CommandFailure) {
        let file = arguments.positional(0) ?? "-"
        format = try ExchangeFormat(arguments, file: nil)
        device = arguments.value("device")
        let unit = arguments.value("precision") ?? "ns"
        guard let precision = TimePrecision(rawValue: unit) else {
            throw arguments.misuse("'\(unit)' is not a unit of time; write ns, us, ms or s")
        }
        self.precision = precision
        path = try DatabaseFile.path(arguments)
        account = FileAccount.owner(of: path.parentFolder) ?? .current
        source = try LineSource(path: file)
    }

    func run() throws(CommandFailure) {
        let target = try open()
        do throws(CommandFailure) {
            try read(into: target)
            try finish(target)
        } catch {
            guard error.code == .data else { throw error }
            try finish(target)
            let outcome = "imported \(target.stored) samples before it; correct it and import the file again"
            throw CommandFailure(.data, (error.message ?? "") + "\ngattherd import: \(outcome)")
        }
        Terminal.say("\(path): \(target.stored) samples imported, \(target.known) already stored")
    }

    private func open() throws(CommandFailure) -> HistoryImport {
        do throws(StoreFault) {
            return try account.run { () throws(StoreFault) in try HistoryImport(path: path) }
        } catch {
            guard error.kind == .inUse else { throw CommandFailure(error, refused: .cannotCreate) }
            let remedy = "stop it, import, and start it again"
            throw CommandFailure(.unavailable, "gattherd import: \(path): a daemon has this history open; \(remedy)")
        }
    }

    private func read(into target: HistoryImport) throws(CommandFailure) {
        var progress = ProgressLine("lines", isBusy: false)
        defer { progress.finish() }
        var reader: SampleReader?
        while let line = try source.next() {
            if reader == nil, line.contains(where: { $0 > 0x20 }) {
                let format = format ?? ExchangeFormat(firstLine: line)
                reader = SampleReader(format, precision: precision, device: device)
            }
            if let rows = try rows(of: line, &reader) { try store(rows, target) }
            progress.advance { source.part }
        }
        do throws(ExchangeError) { try reader?.finish() } catch { throw source.failure(error.description) }
    }

    private func rows(of line: ArraySlice<UInt8>, _ reader: inout SampleReader?) throws(CommandFailure) -> [HistoryRow]?
    {
        do throws(ExchangeError) {
            return try reader?.rows(of: line)
        } catch {
            throw source.failure(error.description)
        }
    }

    private func store(_ rows: [HistoryRow], _ target: HistoryImport) throws(CommandFailure) {
        do throws(StoreFault) { try target.add(rows) } catch { throw failure(error, target) }
    }

    private func finish(_ target: HistoryImport) throws(CommandFailure) {
        do throws(StoreFault) { try account.run(target.finish) } catch { throw failure(error, target) }
    }

    private func failure(_ fault: StoreFault, _ target: HistoryImport) -> CommandFailure {
        let message = CommandFailure(fault).message ?? fault.detail
        return CommandFailure(
            .inputOutput,
            "\(message)\ngattherd import: imported \(target.stored) samples; import the file again"
        )
    }
}
