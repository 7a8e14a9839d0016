import GattherdBluetooth
import GattherdMachines
import GattherdSync

/// The messages to a supervisor's loop; any thread may post them.
struct SupervisorInbox: Sendable {
    enum Message: Sendable {
        case machine(SupervisorMachine.Event)
        case central(CentralEvent)
        /// A mark between events of BlueZ, see ``SupervisorInbox/forward(_:)``.
        case checkpoint
        case session(LinkSessionProgress, of: SupervisedDevice, ticket: Int)
        case attemptEnded(PeripheralID, device: String)
        case reload(ReloadedDevices)
        /// Applies the newest reload again, after a device has left that has a successor.
        case reapply
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
    /// The number of BlueZ's events between two checkpoints.
    private static let checkpointInterval = 64
    /// The number of checkpoints that the loop has reached.
    private let checkpoints = LatestValue(0)

    init() {
        // Bounded by the work in progress: a few replies for each link, and the events of BlueZ up to a checkpoint.
        (messages, continuation) = AsyncStream.makeStream(of: Message.self, bufferingPolicy: .unbounded)
    }

    func post(_ message: Message) { continuation.yield(message) }

    /// Posts an event for the supervisor machine.
    func send(_ event: SupervisorMachine.Event) { post(.machine(event)) }

    /// Posts the events of BlueZ until they end or the caller is cancelled; called once.
    ///
    /// At each checkpoint it waits for the loop. Meanwhile the central joins the changes of each peripheral, so that
    /// frequent advertisements neither fill the memory nor delay other messages.
    func forward(_ events: AsyncStream<CentralEvent>) async {
        var (count, posted) = (0, 0)
        for await event in events {
            post(.central(event))
            count += 1
            guard count.isMultiple(of: Self.checkpointInterval) else { continue }
            posted += 1
            post(.checkpoint)
            for await reached in checkpoints.watch() where reached >= posted { break }
        }
    }

    /// Records that the loop has reached ``Message/checkpoint``.
    func countCheckpoint() { checkpoints.update { $0 += 1 } }

    /// Returns when the loop has processed all earlier messages, or the caller is cancelled.
    func roundTrip() async {
        let before = roundTrips.state
        post(.roundTrip)
        for await count in roundTrips.watch() where count > before { return }
    }

    /// Records that the loop has reached ``Message/roundTrip``.
    func countRoundTrip() { roundTrips.update { $0 += 1 } }
}
