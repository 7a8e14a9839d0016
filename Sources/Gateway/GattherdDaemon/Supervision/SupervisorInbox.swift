import GattherdBluetooth
import GattherdMachines
import GattherdSync

/// The messages to a supervisor's loop; any thread may post them.
struct SupervisorInbox: Sendable {
    enum Message: Sendable {
        case machine(SupervisorMachine.Event)
        case central(CentralEvent)
        case session(LinkSessionProgress, of: SupervisedDevice, ticket: Int)
        case attemptEnded(PeripheralID, device: String)
        case reload(ReloadedDevices)
        case offer(Supervisor.Offer?)
        case listen(Bool)
        case roundTrip
        case stop
    }

    /// The messages in order, for one reader.
    let messages: AsyncStream<Message>
    private let continuation: AsyncStream<Message>.Continuation
    /// The number of calls of ``roundTrip()`` that the loop has seen.
    private let roundTrips = LatestValue(0)

    init() {
        // Bounded by the work in progress: a few replies for each link, and messages of BlueZ, which are read at once.
        (messages, continuation) = AsyncStream.makeStream(of: Message.self, bufferingPolicy: .unbounded)
    }

    func post(_ message: Message) { continuation.yield(message) }

    /// Posts an event for the supervisor machine.
    func send(_ event: SupervisorMachine.Event) { post(.machine(event)) }

    /// Returns when the loop has processed all earlier messages, or the caller is cancelled.
    func roundTrip() async {
        let before = roundTrips.state
        post(.roundTrip)
        for await count in roundTrips.watch() where count > before { return }
    }

    /// Records that the loop has reached ``Message/roundTrip``.
    func countRoundTrip() { roundTrips.update { $0 += 1 } }
}
