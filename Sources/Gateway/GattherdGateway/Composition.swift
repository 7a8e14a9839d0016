import GattherdBlueZ
import GattherdBluetooth
package import GattherdConfig
import GattherdDBus
import GattherdDaemon
import GattherdDelivery
import GattherdGATT
import GattherdHTTP
import GattherdHistory
package import GattherdLog
import GattherdModel
import GattherdProcess
import GattherdProfiles
import GattherdSync

/// The daemon, put together from a configuration.
package struct Composition: Sendable {
    /// The most history requests by HTTP at once; each may hold a few megabytes.
    private static let maximumHistoryRequests = 4

    private let running: RunningConfiguration
    private let history: ReadingHistory
    private let gateway: Gateway
    private let enrolment: EnrolmentService
    private let reloads: ReloadService
    private let commands: CommandService
    private let http: GatewayHTTPBackend
    private let socket: ControlSocket
    /// The leases at the centre; `nil` without `fleet.leases`.
    private let leases: LeaseService?
    private let live = LiveStatus()
    private let delivery: MQTTDelivery?
    private let router: RequestRouter
    private let alerts: AlertMonitor
    private let token: Locked<AccessToken?>
    private let scan: PeripheralScan
    package let changes = PendingChanges()
    private let log: Log

    /// Opens everything that the daemon needs; nothing is connected yet.
    ///
    /// - Parameters:
    ///   - written: The content of the files; history adds the devices that rules have made before.
    ///   - file: The files.
    ///   - log: For people.
    ///   - recent: The newest entries of the log.
    /// - Throws: ``GatewayError`` if the configuration does not fit the profiles, or history cannot be opened.
    package init(
        _ written: Configuration,
        from file: ConfigurationFile,
        log: Log,
        recent: RecentLog
    ) async throws(GatewayError) {
        self.log = log
        let started = SystemClock.now
        let registry = try written.loadProfiles(log)
        try written.http?.check(log)
        history = try await Self.history(written, log)
        let records = written.enrol.isEmpty ? [] : await Self.enrolledDevices(history, log)
        let enrolled = Locked(EnrolledDevices(records, now: .now))
        let configuration = written.recalling(records ?? [])
        let devices = configuration.devices.map { SupervisedDevice($0, registry) }
        running = RunningConfiguration(configuration, registry, devices)
        token = Locked(configuration.http?.token)
        socket = try Self.controlSocket(configuration, log)
        let path = configuration.history.path.value
        router = RequestRouter(history: history, path: path)
        let board = configuration.fleet.hasLeases ? LeaseBoard() : nil
        delivery = try Self.delivery(configuration, history, router, board, log)
        let (router, delivery) = (self.router, self.delivery)
        let outputs: [any Output] =
            try [delivery].compactMap(\.self)
            + configuration.makeOutputs(
                consumer: { [history] in history.consumer($0.name) },
                log: log,
                record: { router.record(kind: "output", $0) },
                devices: { await Self.seenDevices(in: path) },
                commands: Self.commands(router, running, board)
            )
        alerts = AlertMonitor(raised: await Self.raisedAlerts(configuration)) { SystemClock.now }
        let announcers: [any Announcer] = [live, alerts] + outputs.compactMap { $0 as? any Announcer }
        let central = Self.central(configuration, log)
        gateway = Gateway(
            devices: devices,
            profiles: registry.profiles,
            central: central,
            store: LiveStore(history, live: live) { [alerts] in alerts.observe($0) },
            outputs: outputs,
            announcers: announcers,
            settings: Supervisor.Settings(configuration.bluetooth, leases: board),
            // Less than the whole, because values wait in the bus connection before.
            commitInterval: configuration.history.commitInterval * 2 / 3,
            loop: history.loop,
            // Candidates can be anybody in radio range and must not fill the log.
            log: log.demoting { entry in
                guard let device = entry.fields.first(where: { $0.key == "device" }) else { return false }
                return enrolled.withLock { $0.isCandidate(device.value) }
            },
            now: { SystemClock.now }
        )
        let state = Locked(ReloadState())
        let supervisor = gateway.supervisor
        var reporter = StatusReporter(running, gateway, outputs, history, alerts, state, started: started)
        reporter.leases = board
        leases = try Self.leases(configuration, running, gateway, board, log) { lease in
            for announcer in announcers { announcer.update(lease) }
        }
        let updater = GatewayUpdater(running, supervisor, delivery, enrolled, reporter, alerts, live)
        enrolment = EnrolmentService(running, updater, supervisor, history, changes, enrolled, log: log)
        reloads = ReloadService(running, updater, enrolment, gateway.recorder, token: token, state: state, log: log)
        commands = CommandService(running, supervisor, reporter, changes)
        let historyService = HistoryService(path: path, maximum: Self.maximumHistoryRequests)
        scan = PeripheralScan(running, supervisor)
        let editor = ConfigurationEditor(file, running, changes)
        let administration = GatewayAdministration(scan, editor, running, recent, reporter)
        http = GatewayHTTPBackend(
            running,
            gateway,
            delivery,
            outputs,
            reporter,
            commands,
            historyService,
            administration
        )
        router.open(gateway, outputs, started: started)
        let recorder = gateway.recorder
        alerts.open(
            record: { recorder.record(device: $0, kind: "alert", $1) },
            publish: { delivery?.setAlerts($0) }
        )
        updater.update()
    }

    /// Returns the devices in history; none if the file cannot be read now.
    private static func seenDevices(in path: String) async -> [SeenDevice] {
        await NamedThread.result(name: "devices") { () -> [SeenDevice] in
            (try? HistoryReader(path: path)).flatMap { try? $0.deviceRecords() } ?? []
        } ?? []
    }

    /// Carries out reloads and enrolment, one after the other, until cancelled.
    package func followChanges(_ file: ConfigurationFile) async {
        enrolment.search()
        async let _ = enrolment.requestChecks()
        for await _ in changes.wakes {
            let batch = changes.dequeue()
            if batch.isReload {
                let outcome = await reloads.reload(file)
                for waiter in batch.reloadWaiters {
                    if let outcome { waiter.yield(outcome) }
                    waiter.finish()
                }
            }
            await enrolment.update(batch.shuffledPeripherals, isCheckDue: batch.isCheckDue)
        }
    }

    /// Runs until `stopped` returns, then closes everything in order.
    package func run(until stopped: @escaping @Sendable () async -> Void) async throws(GatewayError) {
        let configuration = running.configuration
        log(
            .notice,
            "started",
            [.init("gateway", configuration.gateway), .init("devices", configuration.devices.count)]
        )
        if configuration.hasNothingToConnect {
            let advice = "find them with 'gattherd scan', name them in the configuration, then: gattherd reload"
            log(.warning, "no devices are configured: nothing is connected", [.init("advice", advice)])
        }
        SystemdNotifier.ready(running.systemdStatus)
        // Cancelled at the end of the scope.
        async let _ = socket.run { await commands.answer($0, $1) }
        async let _ = recordHistoryNotices()
        async let _ = http.serve(live, token: token, log: log)
        async let _ = scan.run()
        async let _ = SystemdNotifier.watch { await gateway.roundTrip() }
        async let _ = releaseMemory()
        async let _ = publishHealth()
        async let _ = alerts.run()
        async let _ = followLeases()
        await gateway.run {
            await stopped()
            SystemdNotifier.stopping()
        }
        await leases?.stop()
        do throws(StoreFault) {
            try await history.close()
        } catch {
            throw GatewayError(.inputOutput, "gattherd: \(error.detail)")
        }
        log(.notice, "stopped")
    }

    private func followLeases() async { await leases?.run() }

    /// Records changes of the history's state, and gaps of outputs, as events.
    private func recordHistoryNotices() async {
        for await notice in history.notices { gateway.recorder.record(kind: notice.kind, notice.members) }
    }

    /// Returns free memory to the system: at the start, and then ever more rarely, up to once in ``longestPause``.
    private func releaseMemory() async {
        ProgramMemory.returnLargeBlocks()
        var pause = Duration.seconds(1)
        repeat {
            ProgramMemory.release()
            pause = min(pause * 4, Self.longestPause)
        } while (try? await Task.sleep(for: pause, clock: .loop)) != nil
    }

    private static let longestPause = Duration.seconds(900)

    /// Publishes the gateway's health, which its device in Home Assistant shows.
    private func publishHealth() async {
        guard let delivery else { return }
        // Devices become ready soon after the start.
        var pause = Duration.seconds(1)
        repeat {
            if let health = router.health { delivery.setHealth(health) }
            pause = min(pause * 3, Self.healthPause)
        } while (try? await Task.sleep(for: pause, clock: .loop)) != nil
    }

    private static let healthPause = Duration.seconds(30)

    // MARK: - Parts

    /// The longest time that values wait in the bus connection, where they have no times yet.
    private static let longestBusDelay = Duration.milliseconds(100)

    private static func central(_ configuration: Configuration, _ log: Log) -> BlueZCentral {
        var limits = BlueZCentral.Limits()
        limits.batchDelay = min(configuration.history.commitInterval, longestBusDelay)
        return BlueZCentral(bus: BluetoothBus(configuration.bluetooth.bus).location, limits: limits, log: log)
    }

    private static func history(_ configuration: Configuration, _ log: Log) async throws(GatewayError) -> ReadingHistory
    {
        do throws(StoreFault) {
            return try await ReadingHistory.open(HistoryOptions(configuration), log: log)
        } catch {
            throw GatewayError(.cannotCreate, "gattherd: \(error.detail)")
        }
    }

    /// The devices that rules have made in earlier runs; `nil` while history cannot be read.
    private static func enrolledDevices(_ history: ReadingHistory, _ log: Log) async -> [EnrolledDevice]? {
        do throws(StoreFault) {
            return try await history.enrolledDevices()
        } catch {
            log(.warning, "enrolled devices could not be read yet", [.init("history.error", error.detail)])
            return nil
        }
    }

    /// The alerts that the last run left raised; their events are in history.
    private static func raisedAlerts(_ configuration: Configuration) async -> [ActiveAlert] {
        guard !configuration.alerts.isEmpty else { return [] }
        let path = configuration.history.path.value
        let events = await NamedThread.result(name: "alerts") {
            (try? HistoryReader(path: path).events(kinds: ["alert"], newest: 1000)) ?? []
        }
        return ActiveAlert.raised(after: events ?? [])
    }

    private static func controlSocket(_ configuration: Configuration, _ log: Log) throws(GatewayError) -> ControlSocket
    {
        do throws(ControlSocketError) {
            return try ControlSocket(path: configuration.controlSocketPath, log: log)
        } catch {
            throw GatewayError(.cannotCreate, "gattherd: \(error.description)")
        }
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

    private static func leases(
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

/// An error at the start, the reload or the end of the gateway.
package struct GatewayError: Error {
    package enum Kind: Sendable {
        /// The configuration, or a file that it names, cannot be used.
        case configuration
        /// History or the control socket cannot be created.
        case cannotCreate
        /// History could not be closed.
        case inputOutput
    }

    package let kind: Kind
    /// The reason, and what to do about it, for people.
    package let message: String

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
