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

/// The daemon put together from a configuration.
package struct Composition: Sendable {
    /// What a daemon works by at a time.
    private struct Present: Sendable {
        var configuration: Configuration
        var registry: ProfileRegistry
        /// Those of the configuration, as the files that it names were read with it.
        var devices: [SupervisedDevice]
        /// The outcome of the reloads so far.
        var reloads = ReloadState()
        /// The files that are read at the start only.
        var startFiles: StartFiles
    }

    private let present: Locked<Present>
    let enrolled: Locked<EnrolledDevices>
    let history: ReadingHistory
    let delivery: MQTTDelivery?
    let gateway: Gateway
    /// What the console shows.
    let board = LiveStatus()
    let desk: HistoryService
    /// The console's token; a reload reads it again.
    let token: Locked<AccessToken?>
    private let socket: ControlSocket
    package let changes = PendingChanges()
    let started = SystemClock.now
    let log: Log

    /// Opens what the daemon needs; nothing is connected yet.
    ///
    /// - Parameters:
    ///   - written: What the files say; devices that rules have made before are added from history.
    ///   - log: For people.
    /// - Throws: ``GatewayError`` when the configuration does not fit the profiles, or history cannot be opened.
    package init(_ written: Configuration, log: Log) async throws(GatewayError) {
        self.log = log
        let registry = try Self.profiles(written, log)
        try written.http?.check(log)
        history = try await Self.history(written, log)
        let records = written.enrol.isEmpty ? [] : await Self.enrolledDevices(history, log)
        let enrolled = Locked(EnrolledDevices(records, now: .now))
        self.enrolled = enrolled
        let configuration = written.recalling(records ?? [])
        let devices = configuration.devices.map { SupervisedDevice($0, registry) }
        let startFiles = StartFiles(configuration, registry)
        token = Locked(configuration.http?.token)
        present = Locked(
            Present(configuration: configuration, registry: registry, devices: devices, startFiles: startFiles)
        )
        socket = try Self.controlSocket(configuration, log)
        desk = HistoryService(path: configuration.history.path.value, maximum: 4)
        let reception = RequestRouter(history: history, path: configuration.history.path.value)
        delivery = try Self.delivery(configuration, history, reception, log)
        let central = Self.central(configuration, log)
        gateway = Gateway(
            devices: devices,
            profiles: registry.profiles,
            central: central,
            store: LiveStore(history, live: board),
            deliverer: delivery,
            onlooker: board,
            settings: Supervisor.Settings(configuration.bluetooth),
            // Shorter than the bus's own rhythm: what was gathered there does not wait once more.
            commitInterval: configuration.history.commitInterval / 2,
            loop: history.loop,
            // Whoever advertises what a rule asks for must not fill the log.
            log: log.demoting { entry in
                guard let device = entry.fields.first(where: { $0.key == "device" }) else { return false }
                return enrolled.withLock { $0.newcomers.contains(device.value) }
            },
            now: { SystemClock.now }
        )
        reception.open(gateway, delivery, started: started)
        tellDelivery(configuration, registry)
    }

    var configuration: Configuration { present.withLock(\.configuration) }
    var registry: ProfileRegistry { present.withLock(\.registry) }
    var herdDevices: [SupervisedDevice] { present.withLock(\.devices) }

    /// Only what ``Configuration/taking(_:)`` takes may differ from before.
    func set(_ configuration: Configuration, _ registry: ProfileRegistry, _ devices: [SupervisedDevice]) {
        present.withLock { present in
            (present.configuration, present.registry, present.devices) = (configuration, registry, devices)
        }
    }

    var reloadState: ReloadState { present.withLock(\.reloads) }

    func record(_ outcome: ReloadOutcome) { present.withLock { $0.reloads.record(outcome) } }

    /// The sections whose files were replaced since they were read at the start.
    func sectionsWithNewFiles(_ registry: ProfileRegistry) -> [String] {
        present.withLock { $0.startFiles.changedSections(registry) }
    }

    /// What `systemctl status` shows while all is well.
    var supervisionStatus: String {
        let count = configuration.devices.count
        return configuration.hasNothingToConnect
            ? "no devices: name them in the configuration, then: gattherd reload"
            : "\(count) device\(count == 1 ? "" : "s") configured"
    }

    /// Runs until `stopped` returns, then closes everything in order.
    package func run(until stopped: @escaping @Sendable () async -> Void) async throws(GatewayError) {
        log(
            .notice,
            "started",
            [.init("gateway", configuration.gateway), .init("devices", configuration.devices.count)]
        )
        if configuration.hasNothingToConnect {
            let advice = "find them with 'gattherd scan', name them in the configuration, then: gattherd reload"
            log(.warning, "no devices are configured: nothing is connected", [.init("advice", advice)])
        }
        SystemdNotifier.ready(supervisionStatus)
        // Cancelled when the scope is left.
        async let _ = socket.run { await answer($0) }
        async let _ = tellNotices()
        async let _ = serveHTTP()
        async let _ = SystemdNotifier.watch { await gateway.pulse() }
        async let _ = releaseMemory()
        await gateway.run {
            await stopped()
            SystemdNotifier.stopping()
        }
        do throws(StoreFault) {
            try await history.close()
        } catch {
            throw GatewayError(.inputOutput, "gattherd: \(error.detail)")
        }
        log(.notice, "stopped")
    }

    /// What history went through becomes an event.
    private func tellNotices() async {
        for await notice in history.notices { gateway.recorder.record(kind: "history", notice.members) }
    }

    /// Gives back what a start, a reload, a stall or a rare request has left: at the start, and then ever more rarely.
    private func releaseMemory() async {
        ProgramMemory.returnLargeBlocks()
        var pause = Duration.seconds(1)
        repeat {
            ProgramMemory.release()
            pause = min(pause * 4, .seconds(900))
        } while (try? await Task.sleep(for: pause, clock: .loop)) != nil
    }

    // MARK: - Rooms

    /// Longer than this values wait in ingest only, where they have their times already.
    private static let longestGathering = Duration.milliseconds(100)

    private static func central(_ configuration: Configuration, _ log: Log) -> BlueZCentral {
        var limits = BlueZCentral.Limits()
        limits.gathering = min(configuration.history.commitInterval, longestGathering)
        return BlueZCentral(bus: DBusAddress(configuration.bluetooth.bus), limits: limits, log: log)
    }

    static func profiles(_ configuration: Configuration, _ log: Log) throws(GatewayError) -> ProfileRegistry {
        do throws(ConfigErrors) {
            let registry = try configuration.loadProfiles()
            for refusal in registry.refusals {
                log(.error, "profile refused", [.init("path", refusal.place), .init("reason", refusal.advice)])
            }
            let mismatches = configuration.mismatches(with: registry)
            guard mismatches.isEmpty else { throw ConfigErrors(mismatches) }
            return registry
        } catch {
            throw GatewayError(.configuration, error.description)
        }
    }

    private static func history(_ configuration: Configuration, _ log: Log) async throws(GatewayError) -> ReadingHistory
    {
        do throws(StoreFault) {
            return try await ReadingHistory.open(HistoryOptions(configuration), log: log)
        } catch {
            throw GatewayError(.cannotCreate, "gattherd: \(error.detail)")
        }
    }

    /// Those that rules have made in earlier runs; `nil` when history cannot say for now.
    private static func enrolledDevices(_ history: ReadingHistory, _ log: Log) async -> [EnrolledDevice]? {
        do throws(StoreFault) {
            return try await history.enrolledDevices()
        } catch {
            log(.warning, "which devices rules have made cannot be read yet", [.init("history.error", error.detail)])
            return nil
        }
    }

    private static func controlSocket(_ configuration: Configuration, _ log: Log) throws(GatewayError) -> ControlSocket
    {
        do throws(ControlSocketError) {
            return try ControlSocket(path: configuration.controlSocketPath, log: log)
        } catch {
            throw GatewayError(.cannotCreate, "gattherd: \(error.description)")
        }
    }

    private static func delivery(
        _ configuration: Configuration,
        _ history: ReadingHistory,
        _ reception: RequestRouter,
        _ log: Log
    ) throws(GatewayError) -> MQTTDelivery? {
        guard let mqtt = configuration.mqtt else { return nil }
        return MQTTDelivery(
            try DeliverySettings(
                mqtt,
                gateway: configuration.gateway,
                devices: configuration.devices,
                log: log
            ),
            readings: history,
            log: log,
            setControl: { await reception.set($0) },
            askBridge: { await reception.answer($0) },
            record: { reception.record(kind: "broker", $0) }
        )
    }
}
