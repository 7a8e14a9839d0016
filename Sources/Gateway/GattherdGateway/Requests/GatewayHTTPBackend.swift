import FoundationEssentials
import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdHTTP
import GattherdLog
import GattherdModel
import GattherdSync
import Glibc

/// Gives the HTTP service access to the gateway.
struct GatewayHTTPBackend: HTTPBackend {
    private let running: RunningConfiguration
    private let gateway: Gateway
    private let delivery: MQTTDelivery?
    private let outputs: [any Output]
    private let reporter: StatusReporter
    private let commands: CommandService
    private let historyService: HistoryService
    let administration: any AdministrationBackend

    init(
        _ running: RunningConfiguration,
        _ gateway: Gateway,
        _ delivery: MQTTDelivery?,
        _ outputs: [any Output],
        _ reporter: StatusReporter,
        _ commands: CommandService,
        _ historyService: HistoryService,
        _ administration: any AdministrationBackend
    ) {
        self.administration = administration
        (self.running, self.gateway, self.delivery, self.outputs) = (running, gateway, delivery, outputs)
        (self.reporter, self.commands, self.historyService) = (reporter, commands, historyService)
    }

    /// Serves until cancelled; returns at once if the configuration has no section `http`.
    ///
    /// - Parameters:
    ///   - live: The newest readings and states.
    ///   - token: The token; read for each request, as a reload may change it.
    ///   - log: The log for people.
    func serve(_ live: LiveStatus, token: Locked<AccessToken?>, log: Log) async {
        guard let http = running.configuration.http else { return }
        let server = HTTPServer(host: http.listen.host, port: http.listen.port, log: log)
        let access = AccessRules(http, token: token)
        await HTTPService(self, live: live, access: access, server: server, log: log).run()
    }

    func status() async -> DaemonStatus { reporter.status }

    func words(for error: ControlError) -> String { commands.words(for: error) }

    func connect(_ device: String) async throws(ControlError) { try await gateway.supervisor.connect(device) }

    func disconnect(_ device: String) async throws(ControlError) { try await gateway.supervisor.disconnect(device) }

    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError> {
        await gateway.supervisor.controls.set(request)
    }

    func history(_ query: RecordQuery) async -> Result<[UInt8], BackendError> { await historyService.page(query) }

    func events(_ query: RecordQuery) async -> Result<[UInt8], BackendError> { await historyService.events(query) }

    func rejects(_ query: RecordQuery) async -> Result<[UInt8], BackendError> {
        await historyService.rejects(query)
    }

    var showsSamples: Bool { running.configuration.http?.hasSampleMetrics ?? false }

    var now: Timestamp { SystemClock.now }

    var counters: [Counter] {
        [gateway.intake.dropped] + gateway.recorder.counters + gateway.supervisor.counters.all
            + (delivery?.counters.all ?? [])
    }

    var outputCounters: [(output: String, counters: [Counter])] {
        outputs.compactMap { output in (output as? any Counting).map { (output.name, $0.allCounters) } }
    }
}

extension AccessRules {
    fileprivate init(_ settings: HTTPSettings, token: Locked<AccessToken?>) {
        self.init(
            isLoopback: settings.listen.isLoopback,
            names: Set(settings.hosts + HostName.all + [settings.listen.host]),
            token: token.withLock { $0 }
        )
    }
}

/// The names of this host in its network.
enum HostName {
    /// The name that other hosts of a home network find; `localhost` if the host has none.
    static var current: String { all.last ?? "localhost" }

    static var all: [String] {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return [] }
        let name = String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
        let label = String(name.prefix { $0 != "." })
        return [name, label, label + ".local"]
    }
}
