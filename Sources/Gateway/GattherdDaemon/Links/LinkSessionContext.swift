import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// What a session needs of the daemon, whichever device it serves.
struct LinkSessionContext: Sendable {
    let central: any CentralBackend
    let intake: Intake
    let roster: ConfiguredDevices
    let catalogue: StreamCatalogue
    let store: any ReadingStore
    let recorder: EventRecorder
    let bonds: BondKeeper
    let now: @Sendable () -> Timestamp
    let resolveTimeout: Duration
    let describe: (@Sendable ([DescribedCharacteristic], Set<String>) -> SelfDescription?)?
    /// How patient to be with silent streams.
    let silence: SilenceWatch.Policy
    let silenceProbes: Counter
    /// From when on the times of silence watches count.
    let start = SuspendingClock.now
    let peripheralNames = Locked<[PeripheralID: String]>([:])

    /// The streams whose subscription ended, or had to be made anew, while the link was up.
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

    /// What the peripheral calls itself, as last heard.
    func peripheralName(_ id: PeripheralID) -> String? {
        peripheralNames.withLock { $0[id] }
    }
}
