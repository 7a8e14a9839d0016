import GattherdConfig
import GattherdExchange
import GattherdGATT
import GattherdGateway
import GattherdHistory
import GattherdModel
import GattherdYAML

/// The options of all commands that read history: database, range and output.
struct HistorySelection {
    /// The options that select rows.
    static let options =
        [
            OptionSpec.value("device", "NAME|ADDRESS", "only this device"),
            .value("since", "TIME", "from then on: \(TimeExpression.help)"),
            .value("until", "TIME", "before then"),
            .value("output", "FILE", "write to a file, which appears when it is complete"),
        ] + DatabaseFile.options

    let reader: HistoryReader
    var query: HistoryQuery
    let output: String?
    private let path: String

    init(_ arguments: Arguments) throws(CommandFailure) {
        var query = try Self.query(arguments)
        output = arguments.value("output")
        path = try DatabaseFile.path(arguments)
        do throws(StoreFault) {
            let reader = try HistoryReader(path: path)
            if let device = query.device { query.device = try Self.device(device, in: reader) }
            self.reader = reader
        } catch {
            throw CommandFailure(error)
        }
        self.query = query
    }

    /// Returns the name of the device with a name, or else the newest one with an address in any notation.
    private static func device(_ target: String, in reader: HistoryReader) throws(StoreFault) -> String {
        guard let address = BluetoothAddress(anyNotation: target), !(try reader.devices().contains(target)) else {
            return target
        }
        let records = try reader.deviceRecords().filter { BluetoothAddress($0.record.address) == address }
        return records.max { $0.last < $1.last }?.record.device ?? target
    }

    static func query(_ arguments: Arguments) throws(CommandFailure) -> HistoryQuery {
        let now = SystemClock.now
        func instant(_ option: String) throws(CommandFailure) -> Timestamp? {
            guard let text = arguments.value(option) else { return nil }
            if let instant = TimeExpression.instant(text, now: now) { return instant }
            throw arguments.misuse("'\(text)' is not a time; write \(TimeExpression.help)")
        }
        let query = HistoryQuery(
            device: arguments.value("device"),
            stream: arguments.value("stream"),
            metric: arguments.value("metric"),
            since: try instant("since"),
            until: try instant("until")
        )
        if let since = query.since, let until = query.until, since >= until {
            let times = "--since is \(since.rfc3339), --until is \(until.rfc3339)"
            throw arguments.misuse("\(times): the range is empty; exchange them or choose others")
        }
        return query
    }

    /// Runs `body`; an error ends the command.
    func read<Value>(_ body: (HistoryReader) throws(StoreFault) -> Value) throws(CommandFailure) -> Value {
        do throws(StoreFault) {
            return try body(reader)
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Reports an empty result, with the span of the history.
    ///
    /// - Parameter noun: The plural of the things that were selected.
    /// - Throws: ``CommandFailure`` if the history cannot be read.
    func explainNothing(_ noun: String = "samples") throws(CommandFailure) {
        let extent = try read { (reader) throws(StoreFault) -> ClosedRange<Timestamp>? in
            if let samples = try reader.extent(withSummaries: false) { return samples }
            return try reader.extent(withSummaries: true)
        }
        let times = extent.map { "history begins at \($0.lowerBound.rfc3339) and ends at \($0.upperBound.rfc3339)" }
        Terminal.printError("gattherd: no \(noun) were found; \(times ?? "nothing has been stored yet")")
    }

    /// Throws an error if a name does not exist.
    func expectNames() throws(CommandFailure) {
        if let device = query.device {
            try expect(device, "device", among: read { (reader) throws(StoreFault) in try reader.devices() })
        }
        if let stream = query.stream {
            let known = try read { (reader) throws(StoreFault) in try reader.streams(device: query.device) }
            try expect(stream, "stream", among: known)
        }
        if let metric = query.metric {
            let known = try read { (reader) throws(StoreFault) in try reader.metrics(device: query.device) }
            try expect(metric, "metric", among: known)
        }
    }

    private func expect(_ name: String, _ noun: String, among known: [String]) throws(CommandFailure) {
        guard let words = UnknownName(name, noun, among: known) else { return }
        throw CommandFailure(.data, "gattherd: \(path): \(words)")
    }
}

/// The reason for an empty result: a name that does not exist.
struct UnknownName: CustomStringConvertible {
    let description: String

    /// Creates the reason; `nil` if the name is one of `known`.
    init?(_ name: String, _ noun: String, among known: [String]) {
        guard !known.contains(name) else { return nil }
        let question = Spelling.nearest(to: name, among: known).map { "did you mean '\($0)'? " } ?? ""
        let names = Terminal.harmless(known.joined(separator: ", "))
        let all = known.isEmpty ? "nothing has been stored yet" : "history has: \(names)"
        description = "there is no \(noun) '\(name)'; \(question)\(all)"
    }
}
