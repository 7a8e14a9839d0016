import GattherdConfig
import GattherdExchange
import GattherdGateway
import GattherdHistory
import GattherdHomeAssistant
import GattherdModel
import GattherdSync
import Glibc

extension CommandSpec {
    static let statistics = CommandSpec(
        name: "homeassistant statistics",
        summary: "import hourly statistics of a time range into Home Assistant; also while the daemon runs",
        options: [
            .value("since", "TIME", "required: the first hour is that of this time: \(TimeExpression.help)"),
            .value("until", "TIME", "hours that end by then (default: all completed hours)"),
            ConfigurationFile.option,
            .value("database", "FILE", "the SQLite file, instead of the configured one"),
        ],
        details: """
            Needs mqtt.home_assistant.statistics in the configuration. The daemon imports new hours itself; use this command
            for earlier ones. The mean, minimum and maximum of each hour are those of the view history_hours. They replace
            what Home Assistant has for these hours, so the command can be repeated. An hour is complete five minutes after
            its end.
            """,
        exits: [
            .data: "Home Assistant has no statistics for a metric of this gateway",
            .unavailable: "there is no history, or Home Assistant cannot be reached or refuses all statistics",
            .inputOutput: "the history cannot be read",
            .configuration: "the section is missing, or Home Assistant refuses the token",
        ],
        examples: ["gattherd homeassistant statistics --since 2d"],
        run: { (arguments) throws(CommandFailure) in try StatisticsCommand(arguments).run() }
    )
}

/// Imports the statistics of a time range.
private struct StatisticsCommand {
    private let importer: StatisticsImporter
    private let times: Range<Timestamp>

    init(_ arguments: Arguments) throws(CommandFailure) {
        let query = try HistorySelection.query(arguments)
        guard let since = query.since else { throw arguments.misuse("--since is missing") }
        let end = StatisticsImporter.end(at: SystemClock.now)
        let last = min(query.until.map { StatisticsImporter.hourStart($0) } ?? end, end)
        let first = StatisticsImporter.hourStart(since)
        guard first < last else { throw arguments.misuse("no hour between these times is complete") }
        times = first..<last
        let file = ConfigurationFile(arguments)
        let configuration = try file.load()
        guard let settings = configuration.mqtt?.homeAssistant.statistics else {
            let advice = "add mqtt.home_assistant.statistics with url and token_file"
            throw CommandFailure(.configuration, "gattherd: no Home Assistant is configured for statistics; \(advice)")
        }
        let path = arguments.value("database") ?? configuration.history.path.value
        var importer = StatisticsImporter(settings, gateway: configuration.gateway, path: path)
        importer.token = try Self.token(settings, configuration, file)
        self.importer = importer
    }

    /// Reads the token with the rights of the service.
    ///
    /// A file of `gattherd.d` may name a file that only root can read, which must not be sent to a server.
    private static func token(
        _ settings: StatisticsSettings,
        _ configuration: Configuration,
        _ file: ConfigurationFile
    ) throws(CommandFailure) -> String? {
        let (path, state) = (settings.tokenFile.value, configuration.history.path.value.parentFolder)
        let daemon = FileAccount.daemon(of: file, stateFolder: state)
        guard geteuid() == 0, daemon.user != 0 else { return nil }
        if let token = daemon.firstLine(of: path) { return token }
        let advice = "see: gattherd check \(file.path)"
        throw CommandFailure(.configuration, "gattherd: the service cannot read the token in '\(path)'; \(advice)")
    }

    func run() throws(CommandFailure) {
        let report: StatisticsReport
        do throws(HomeAssistantError) {
            report = try performImport()
        } catch {
            throw CommandFailure(error)
        }
        for problem in report.problems { Terminal.printError("gattherd: \(problem)") }
        guard !report.entities.isEmpty else {
            let advice = "it needs the entities that MQTT discovery announces, and its recorder"
            let problem = "\(importer.target) has no statistics for a metric of this gateway"
            throw CommandFailure(.data, "gattherd: \(problem); \(advice)")
        }
        let span = "\(times.lowerBound.rfc3339) to \(times.upperBound.rfc3339)"
        let count = report.importedEntities.count
        Terminal.say("\(importer.target): \(report.hours) hours of \(count) entities imported, \(span)")
    }

    private func performImport() throws(HomeAssistantError) -> StatisticsReport {
        var progress = ProgressLine("days", isBusy: false, stride: 1)
        defer { progress.finish() }
        let length = Double(times.upperBound.microseconds - times.lowerBound.microseconds)
        return try importer.run(
            times,
            progress: { end in
                progress.advance { Double(end.microseconds - times.lowerBound.microseconds) / length }
            }
        )
    }
}

extension CommandFailure {
    fileprivate init(_ error: HomeAssistantError) {
        let code: Code =
            switch error.kind {
            case .unavailable, .refused, .refusesAll, .cancelled: .unavailable
            case .misconfigured: .configuration
            case .history: .inputOutput
            }
        self.init(code, "gattherd: \(error)")
    }
}
