import GattherdBlueZ
import GattherdConfig
import GattherdDaemon
import GattherdHTTP
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdProcess
import GattherdProfiles
import GattherdSync

// The parts of the daemon that its configuration makes.
extension Composition {
    /// The longest time that values wait in the bus connection, where they have no times yet.
    private static let longestBusDelay = Duration.milliseconds(100)

    private static func central(_ configuration: Configuration, _ log: Log) -> BlueZCentral {
        var limits = BlueZCentral.Limits()
        // A little shorter than a whole part of the commit interval: values are committed with the last group in time.
        let interval = configuration.history.commitInterval
        limits.batchDelay = interval / Int((interval / longestBusDelay).rounded(.up)) * 9 / 10
        return BlueZCentral(bus: BluetoothBus(configuration.bluetooth.bus).location, limits: limits, log: log)
    }

    static func history(_ configuration: Configuration, _ log: Log) async throws(GatewayError) -> ReadingHistory {
        do throws(StoreFault) {
            return try await ReadingHistory.open(HistoryOptions(configuration), log: log)
        } catch {
            throw GatewayError(.cannotCreate, "gattherd: \(error.detail)")
        }
    }

    /// The devices that rules have made in earlier runs; `nil` while history cannot be read.
    static func enrolledDevices(_ history: ReadingHistory, _ log: Log) async -> [EnrolledDevice]? {
        do throws(StoreFault) {
            return try await history.enrolledDevices()
        } catch {
            log(.warning, "enrolled devices could not be read yet", [.init("history.error", error.detail)])
            return nil
        }
    }

    /// The alerts that the last run left raised; their events are in history.
    ///
    /// Alerts whose rule was removed since are among them, so that these are cleared.
    static func raisedAlerts(_ configuration: Configuration) async -> InheritedAlerts {
        let (rules, path) = (configuration.alerts, configuration.history.path.value)
        return await NamedThread.result(name: "alerts") { InheritedAlerts(rules, from: path) } ?? InheritedAlerts()
    }

    static func controlSocket(_ configuration: Configuration, _ log: Log) throws(GatewayError) -> ControlSocket {
        do throws(ControlSocketError) {
            return try ControlSocket(path: configuration.controlSocketPath, log: log)
        } catch {
            throw GatewayError(.cannotCreate, "gattherd: \(error.description)")
        }
    }

    static func leases(
        _ configuration: Configuration,
        _ running: RunningConfiguration,
        _ gateway: Gateway,
        _ board: LeaseBoard?,
        _ log: Log,
        announce: @escaping @Sendable (DeviceLease) -> Void
    ) throws(GatewayError) -> LeaseService? {
        guard let board else { return nil }
        guard let centre = configuration.leases else {
            throw GatewayError(.configuration, "gattherd: 'fleet.leases' needs the section 'postgres'")
        }
        let file = LeaseFile(path: configuration.history.path.value + "-leases", log: log)
        return LeaseService(
            running,
            gateway.supervisor,
            board,
            centre,
            file,
            gateway.recorder,
            announce: announce,
            log: log
        )
    }

    /// Makes the gateway; nothing is connected yet.
    static func gateway(
        _ running: RunningConfiguration,
        _ history: ReadingHistory,
        _ outputs: OutputParts,
        _ live: LiveStatus,
        _ alerts: AlertMonitor,
        _ announcers: [any Announcer],
        _ enrolled: Locked<EnrolledDevices>,
        _ log: Log
    ) -> Gateway {
        let configuration = running.configuration
        let statistics = outputs.statistics
        return Gateway(
            devices: running.devices,
            profiles: running.registry.profiles,
            central: central(configuration, log),
            store: LiveStore(history, live: live) { batch in
                alerts.observe(batch)
                statistics?.observe(batch)
            },
            outputs: outputs.all,
            announcers: announcers,
            settings: Supervisor.Settings(configuration.bluetooth, leases: outputs.board),
            commitInterval: configuration.history.commitInterval,
            loop: history.loop,
            // Any transmitter in radio range can be a candidate, and must not fill the log.
            log: log.demoting { entry in
                guard let device = entry.fields.first(where: { $0.key == "device" }) else { return false }
                return enrolled.withLock { $0.isCandidate(device.value) }
            },
            recordClock: SystemClock.records,
            now: { SystemClock.now }
        )
    }

    /// The maximum number of history requests by HTTP at once; each may hold a few megabytes.
    private static let maximumHistoryRequests = 4

    static func http(
        _ running: RunningConfiguration,
        _ gateway: Gateway,
        _ outputs: OutputParts,
        _ reporter: StatusReporter,
        _ commands: CommandService,
        _ administration: GatewayAdministration
    ) -> GatewayHTTPBackend {
        let path = running.configuration.history.path.value
        let history = HistoryService(path: path, maximum: maximumHistoryRequests)
        return GatewayHTTPBackend(
            running,
            gateway,
            outputs.delivery,
            outputs.all,
            reporter,
            commands,
            history,
            administration
        )
    }
}
