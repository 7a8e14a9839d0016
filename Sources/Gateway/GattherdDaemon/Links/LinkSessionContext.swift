import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// The daemon's parts that each link session uses.
struct LinkSessionContext: Sendable {
    let central: any CentralBackend
    let intake: Intake
    let configuredDevices: ConfiguredDevices
    let catalogue = StreamCatalogue()
    let deviceRecorder: DeviceRecorder
    let recorder: EventRecorder
    let bonds: BondKeeper
    let now: @Sendable () -> Timestamp
    let resolveTimeout: Duration
    /// The pause between attempts to subscribe to what another program has reserved.
    let reservedRetry: Duration
    let describe: (@Sendable ([DescribedCharacteristic], Set<String>) -> SelfDescription?)?
    /// The policy for silent streams.
    let silence: SilenceWatch.Policy
    let silenceProbes: Counter
    /// The start of the silence watches' time.
    let start = SuspendingClock.now
    let peripheralNames = Locked<[PeripheralID: String]>([:])
    /// The number of streams whose subscription ended or was renewed while the link was up.
    private let interruptions: Counter

    init(
        central: any CentralBackend,
        intake: Intake,
        configuredDevices: ConfiguredDevices,
        store: any ReadingStore,
        recorder: EventRecorder,
        settings: Supervisor.Settings,
        counters: RecoveryCounters,
        log: Log,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.central = central
        self.intake = intake
        self.configuredDevices = configuredDevices
        deviceRecorder = DeviceRecorder(store, log: log)
        self.recorder = recorder
        bonds = BondKeeper(configuredDevices: configuredDevices, recorder: recorder, log: log)
        self.now = now
        resolveTimeout = settings.resolveTimeout
        reservedRetry = settings.reservedRetry
        describe = settings.describe
        silence = settings.silence
        silenceProbes = counters.silenceProbes
        interruptions = counters.interruptions
    }

    /// Counts and records that values of a stream may be missing.
    func recordInterruption(_ stream: StreamDefinition, _ reason: String) {
        interruptions.add()
        let detail = "values may be missing: \(reason)"
        recorder.record(
            device: stream.device,
            kind: "stream",
            ["stream": .text(stream.stream), "error": .text(detail)]
        )
    }

    /// Returns the peripheral's own name as last advertised.
    func peripheralName(_ id: PeripheralID) -> String? {
        peripheralNames.withLock { $0[id] }
    }
}

/// The link of a session, with the daemon's parts that the session uses.
struct ServedLink: Sendable {
    let device: SupervisedDevice
    let peripheral: PeripheralID
    let context: LinkSessionContext
    let log: Log

    init(_ device: SupervisedDevice, _ peripheral: PeripheralID, _ context: LinkSessionContext, log: Log) {
        self.device = device
        self.peripheral = peripheral
        self.context = context
        self.log = log
    }

    var central: any CentralBackend { context.central }
    var intake: Intake { context.intake }

    func services(timeout: Duration) async throws(LinkFault) -> [RemoteService] {
        do throws(BluetoothError) {
            return try await central.services(of: peripheral, timeout: timeout)
        } catch {
            throw LinkFault(error, while: "resolving the GATT table")
        }
    }

    /// Ignores the failure of an optional operation unless it affects the whole link.
    ///
    /// While subscribing, `busy` is about the characteristic: another program has reserved its notifications.
    func tolerate(
        _ error: BluetoothError,
        isRequired: Bool,
        isSubscribing: Bool = false,
        of stream: String? = nil,
        while action: String
    ) throws(LinkFault) {
        let fault = context.bonds.fault(error, of: peripheral, while: action)
        let isUnpaired = error.kind == .authentication && !context.bonds.isPaired(peripheral)
        let isAboutAttribute = error.isAboutAttribute || isSubscribing && error.kind == .busy
        let isLinkProblem = !isAboutAttribute || isUnpaired
        guard !isLinkProblem, !isRequired else { throw fault }
        let what: StaticString = stream == nil ? "a task failed" : "a stream is not served"
        log(.warning, what, [.init("action", action), .init("error", error.detail)])
        context.recorder.record(
            device: device.name,
            kind: stream == nil ? "task" : "stream",
            ["stream": stream.map { .text($0) }, "error": .text("\(action): \(error.detail)")]
        )
    }
}
