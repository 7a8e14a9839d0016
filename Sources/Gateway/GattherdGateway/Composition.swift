package import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdHTTP
import GattherdHistory
package import GattherdLog
import GattherdModel
import GattherdProcess
import GattherdProfiles
import GattherdSync

/// The daemon, put together from a configuration.
package struct Composition: Sendable {
    private let running: RunningConfiguration
    private let history: ReadingHistory
    private let gateway: Gateway
    private let enrolment: EnrolmentService
    let reloads: ReloadService
    private let commands: CommandService
    let http: GatewayHTTPBackend
    private let socket: ControlSocket
    /// The leases at the centre; `nil` without `fleet.leases`.
    private let leases: LeaseService?
    private let live = LiveStatus()
    private let outputs: OutputParts
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
    ///   - log: The log for people.
    ///   - recent: The newest entries of the log.
    ///   - restart: Ends this run for another one.
    ///   - threads: The threads that read the files of reloads.
    /// - Throws: ``GatewayError`` if the configuration does not fit the profiles, or history cannot be opened.
    package init(
        _ written: Configuration,
        from file: ConfigurationFile,
        log: Log,
        recent: RecentLog,
        restart: RestartSwitch,
        threads: ReloadThreads = ReloadThreads()
    ) async throws(GatewayError) {
        self.log = log
        let started = SystemClock.now
        let steps = ClockSteps(started: started, uptime: SystemClock.uptime)
        written.logWarnings(of: file, log)
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
        let outputs = try OutputParts(running, history, log)
        self.outputs = outputs
        alerts = AlertMonitor(await Self.raisedAlerts(configuration)) { SystemClock.now }
        let announcers: [any Announcer] = [live, alerts] + outputs.all.compactMap { $0 as? any Announcer }
        gateway = Self.gateway(running, history, outputs, live, alerts, announcers, enrolled, log)
        let state = Locked(ReloadState())
        let supervisor = gateway.supervisor
        var reporter = StatusReporter(running, gateway, outputs.all, history, alerts, state, started: started, steps)
        reporter.leases = outputs.board
        leases = try Self.leases(configuration, running, gateway, outputs.board, log) { lease in
            for announcer in announcers { announcer.update(lease) }
        }
        let updater = GatewayUpdater(
            running,
            supervisor,
            outputs.delivery,
            enrolled,
            reporter,
            alerts,
            live,
            announcers
        )
        enrolment = EnrolmentService(
            running,
            updater,
            supervisor,
            history,
            changes,
            enrolled,
            outputs.board,
            log: log
        )
        let recorder = gateway.recorder
        reloads = ReloadService(
            running,
            updater,
            enrolment,
            recorder,
            changes,
            threads,
            token: token,
            state: state,
            log: log
        )
        commands = CommandService(running, supervisor, reporter, changes)
        scan = PeripheralScan(running, supervisor)
        let editor = ConfigurationEditor(file, running, changes)
        let administration = GatewayAdministration(scan, editor, running, recent, reporter, restart)
        http = Self.http(running, gateway, outputs, reporter, commands, administration)
        outputs.router.open(gateway, outputs.all, started: started)
        let delivery = outputs.delivery
        alerts.open(
            record: { recorder.record(device: $0, kind: "alert", $1) },
            publish: { delivery?.setAlerts($0) }
        )
        updater.update()
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
            } else if batch.isLateReload {
                await reloads.finish(file)
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
            let advice = LogField("advice", DisplayWords.firstStep)
            log(.warning, "no devices are configured: nothing is connected", [advice])
        }
        SystemdNotifier.ready(running.systemdStatus)
        // Cancelled at the end of the scope.
        async let _ = socket.run { await commands.answer($0, $1) }
        async let _ = recordHistoryNotices()
        async let _ = http.serve(live, token: token, log: log)
        async let _ = scan.run()
        async let _ = SystemdNotifier.watch { await gateway.roundTrip() }
        async let _ = ProgramMemory.releaseRepeatedly()
        async let _ = publishHealth()
        async let _ = alerts.run()
        async let _ = followLeases()
        await gateway.run {
            await stopped()
            SystemdNotifier.stopping()
        } linksEnded: { [leases] in
            // Other gateways need not wait for the outputs.
            await leases?.stop()
        }
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
        for await notice in history.notices {
            if case .restamped = notice { outputs.statistics?.didCorrectTimes() }
            gateway.recorder.record(kind: notice.kind, notice.members)
        }
    }

    /// Publishes the gateway's health, which its device in Home Assistant shows.
    private func publishHealth() async {
        guard let delivery = outputs.delivery else { return }
        // Devices become ready soon after the start.
        var pause = Duration.seconds(1)
        repeat {
            if let health = outputs.router.health { delivery.setHealth(health) }
            pause = min(pause * 3, Self.healthPause)
        } while (try? await Task.sleep(for: pause, clock: .loop)) != nil
    }

    private static let healthPause = Duration.seconds(30)
}
