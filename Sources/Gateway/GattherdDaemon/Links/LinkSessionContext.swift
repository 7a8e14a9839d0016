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
    let catalogue: StreamCatalogue
    let store: any ReadingStore
    let recorder: EventRecorder
    let bonds: BondKeeper
    let now: @Sendable () -> Timestamp
    let resolveTimeout: Duration
    let describe: (@Sendable ([DescribedCharacteristic], Set<String>) -> SelfDescription?)?
    /// The policy for silent streams.
    let silence: SilenceWatch.Policy
    let silenceProbes: Counter
    /// The start of the silence watches' time.
    let start = SuspendingClock.now
    let peripheralNames = Locked<[PeripheralID: String]>([:])

    /// The number of streams whose subscription ended or was renewed while the link was up.
    let interruptions: Counter

    /// Counts and records that values of a stream may be missing.
    func noteInterruption(_ stream: StreamDefinition, _ reason: String) {
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
