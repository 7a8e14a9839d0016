import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdHistory
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// The outputs of the daemon, and the requests from them to its devices.
struct OutputParts: Sendable {
    let router: RequestRouter
    /// The leases of all devices; `nil` without `fleet.leases`.
    let board: LeaseBoard?
    let delivery: MQTTDelivery?
    /// The import of statistics; `nil` without its section.
    let statistics: StatisticsService?
    /// All outputs, MQTT first, the import of statistics last.
    let all: [any Output]

    /// Makes the outputs; none is connected yet.
    ///
    /// - Throws: ``GatewayError`` if a file that a section names cannot be used.
    init(_ running: RunningConfiguration, _ history: ReadingHistory, _ log: Log) throws(GatewayError) {
        let configuration = running.configuration
        let path = configuration.history.path.value
        let router = RequestRouter(history: history, path: path)
        self.router = router
        board = configuration.fleet.hasLeases ? LeaseBoard() : nil
        delivery = try Self.delivery(configuration, history, router, board, log)
        statistics = Self.statistics(configuration, log)
        all =
            try [delivery].compactMap(\.self)
            + configuration.makeOutputs(
                consumer: { history.consumer($0.name) },
                log: log,
                record: { router.record(kind: "output", $0) },
                devices: { await Self.seenDevices(in: path) },
                commands: Self.commands(router, running, board)
            )
            + [statistics].compactMap(\.self)
    }

    private static func statistics(_ configuration: Configuration, _ log: Log) -> StatisticsService? {
        guard let settings = configuration.mqtt?.homeAssistant.statistics else { return nil }
        let path = configuration.history.path.value
        let importer = StatisticsImporter(settings, gateway: configuration.gateway, path: path)
        return StatisticsService(importer, folder: path.parentFolder, log: log, clock: SystemClock.gateway)
    }

    /// Returns the devices in history; `nil` if the file cannot be read now.
    private static func seenDevices(in path: String) async -> [SeenDevice]? {
        await NamedThread.result(name: "devices") { () -> [SeenDevice]? in
            (try? HistoryReader(path: path)).flatMap { try? $0.deviceRecords() }
        } ?? nil
    }

    private static func commands(
        _ router: RequestRouter,
        _ running: RunningConfiguration,
        _ board: LeaseBoard?
    ) -> OutputCommands {
        var commands = OutputCommands()
        commands.setControl = { await router.set($0) }
        commands.permissions = { ControlPermissions(running.configuration.devices) }
        if let board, running.configuration.fleet.publisher == .owner {
            commands.isPublisher = { board.publishes($0, at: $1) }
        }
        return commands
    }

    private static func delivery(
        _ configuration: Configuration,
        _ history: ReadingHistory,
        _ router: RequestRouter,
        _ leases: LeaseBoard?,
        _ log: Log
    ) throws(GatewayError) -> MQTTDelivery? {
        guard let mqtt = configuration.mqtt else { return nil }
        var settings = try DeliverySettings(
            mqtt,
            gateway: configuration.gateway,
            devices: configuration.devices,
            alerts: configuration.alerts,
            http: configuration.http,
            log: log
        )
        settings.rememberBase(in: configuration.history.path.value.parentFolder)
        settings.hasLeases = leases != nil
        if let leases, configuration.fleet.publisher == .owner {
            settings.isPublisher = { leases.publishes($0, at: $1) }
        }
        return MQTTDelivery(
            settings,
            readings: history.consumer("mqtt"),
            log: log,
            setControl: { await router.set($0) },
            askBridge: { await router.answer($0) },
            record: { router.record(kind: "broker", $0) }
        )
    }
}
