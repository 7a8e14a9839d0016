import GattherdBluetooth
import GattherdLog
import GattherdModel

/// The parts of a supervisor that any thread may use.
struct SupervisorParts: Sendable {
    /// The parts of the gateway around a supervisor.
    struct Environment: Sendable {
        var central: any CentralBackend
        let intake: Intake
        let store: any ReadingStore
        let announcer: (any Announcer)?
        let recorder: EventRecorder
        let settings: Supervisor.Settings
        let log: Log
        let now: @Sendable () -> Timestamp

        /// Returns the environment with a central that logs each operation; `name` returns the device at an address.
        func loggingOperations(_ name: @escaping @Sendable (BluetoothAddress) -> String?) -> Environment {
            var environment = self
            environment.central = LoggedBackend(central, log: log, name: name)
            return environment
        }
    }

    let inbox = SupervisorInbox()
    let status = SupervisorStatus()
    let counters = RecoveryCounters()
    let watches = DeviceWatches()
    let central: any CentralBackend
    let settings: Supervisor.Settings
    let context: LinkSessionContext
    /// The sensors, which are never connected.
    let sensors: SensorWatch
    let controls: ControlService
    let reporter: LinkReporter
    let holds: DeviceHolds

    /// Makes the parts for all devices; the profiles are in order of preference.
    init(_ devices: [SupervisedDevice], _ profiles: [any Profile], in environment: Environment) {
        let configuredDevices = ConfiguredDevices(
            devices.filter { $0.listening == nil },
            profiles: profiles.filter { !$0.isForAdvertisements }
        )
        let environment = environment.loggingOperations { configuredDevices[$0]?.name }
        (central, settings) = (environment.central, environment.settings)
        context = LinkSessionContext(configuredDevices, counters, in: environment)
        sensors = SensorWatch(
            intake: environment.intake,
            addressHash: settings.addressHash,
            leases: settings.leases
        )
        sensors.replace(with: devices, profiles, context.catalogue) { environment.announcer?.describe($0) }
        controls = ControlService(configuredDevices, sensors, context.catalogue, in: environment)
        reporter = LinkReporter(
            status: status,
            announcer: environment.announcer,
            recorder: environment.recorder,
            log: environment.log,
            now: environment.now
        )
        holds = DeviceHolds(
            store: environment.store,
            configuredDevices: configuredDevices,
            sensors: sensors,
            log: environment.log,
            send: inbox.send
        )
    }
}

extension LinkSessionContext {
    fileprivate init(
        _ configuredDevices: ConfiguredDevices,
        _ counters: RecoveryCounters,
        in environment: SupervisorParts.Environment
    ) {
        self.init(
            central: environment.central,
            intake: environment.intake,
            configuredDevices: configuredDevices,
            store: environment.store,
            recorder: environment.recorder,
            settings: environment.settings,
            counters: counters,
            log: environment.log,
            now: environment.now
        )
    }
}

extension ControlService {
    fileprivate convenience init(
        _ configuredDevices: ConfiguredDevices,
        _ sensors: SensorWatch,
        _ catalogue: StreamCatalogue,
        in environment: SupervisorParts.Environment
    ) {
        self.init(
            configuredDevices: configuredDevices,
            sensors: sensors,
            central: environment.central,
            catalogue: catalogue,
            recorder: environment.recorder,
            leases: environment.settings.leases
        )
    }
}
