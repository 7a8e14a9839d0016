import GattherdGATT
import GattherdMachines
import GattherdModel
import GattherdSync
import Synchronization

/// The stored records of one stream of one device, for the decoder and the download.
///
/// A download's messages travel with the received values, so that the decoder sees both in their order.
final class RecordStream: Sendable {
    /// A message of a download to the decoder.
    enum Message: Sendable {
        /// A download starts on a new link.
        case open
        /// The clocks of the device and of the gateway at one moment, in microseconds since 1970.
        case compare(device: Int64, gateway: Timestamp)
        /// The device is told the time, by which it dates its records.
        case tell(Timestamp)
        case begin(RecordRequest, RecordRequest.Relation)
        case complete
        /// The request has failed.
        case end
        /// Demands the facts.
        case drain
        /// The link has ended.
        case close
    }

    private struct Shared: Sendable {
        /// The messages, each with the number of losses before it.
        var messages: [(message: Message, losses: UInt64)] = []
        var facts = DownloadFacts()
        var status: RecordStatus?
        var receive: (@Sendable (DownloadFacts, _ isAnswer: Bool) -> Void)?
    }

    let key: RecordCursor.Key
    let address: String
    let rule: RecordRule
    /// The beginning of a value that ends a download and is not a record.
    let end: BytePattern?
    /// The losses of the stream, and of those whose records belong to its own.
    let losses: RecordLosses
    private let shared = Locked(Shared())

    init(
        key: RecordCursor.Key,
        address: String,
        rule: RecordRule,
        end: BytePattern?,
        losses: RecordLosses = RecordLosses()
    ) {
        (self.key, self.address, self.rule, self.end) = (key, address, rule, end)
        self.losses = losses
    }

    /// The state of the current or last download.
    var status: RecordStatus? { shared.withLock { $0.status } }

    func setStatus(_ status: RecordStatus) {
        shared.withLock { $0.status = status }
    }

    /// The stream whose records the records of this stream belong to.
    var companion: RecordCursor.Key? {
        rule.companion.map { RecordCursor.Key(device: key.device, profile: key.profile, stream: $0) }
    }

    /// The newest facts.
    var facts: DownloadFacts { shared.withLock { $0.facts } }

    /// Changes the state of the current download.
    func updateStatus(_ change: (inout RecordStatus) -> Void) {
        shared.withLock { shared in
            guard var status = shared.status else { return }
            change(&status)
            shared.status = status
        }
    }

    /// Sets the receiver of the facts; `isAnswer` is true for the answers to ``Message/drain``.
    func onFacts(_ receive: (@Sendable (DownloadFacts, _ isAnswer: Bool) -> Void)?) {
        shared.withLock { $0.receive = receive }
    }

    /// Queues a message; the decoder handles it in order with the values that arrive now.
    ///
    /// - Returns: False if there was no room for it.
    @discardableResult
    func post(_ message: Message, through intake: Intake, _ binding: StreamBinding, at time: Timestamp) -> Bool {
        shared.withLock { $0.messages.append((message, losses.count)) }
        guard !intake.receive([], for: binding, at: time) else {
            // The download waits for the answer.
            if case .drain = message { intake.demandCommit() }
            return true
        }
        // A full intake has no place for it; the message of another place must not be taken for this one.
        shared.withLock { _ = $0.messages.popLast() }
        return false
    }

    /// Removes and returns the next message, with the number of losses before it was posted.
    func removeMessage() -> (message: Message, losses: UInt64)? {
        shared.withLock { $0.messages.isEmpty ? nil : $0.messages.removeFirst() }
    }

    /// Publishes the facts; answers a demand for them.
    func publish(_ facts: DownloadFacts, isAnswer: Bool) {
        let receive = shared.withLock { shared in
            shared.status?.count(facts, after: shared.facts)
            shared.facts = facts
            return shared.receive
        }
        receive?(facts, isAnswer)
    }
}

/// The number of values that had no room in the intake, of a stream and of those whose records belong to its own.
final class RecordLosses: Sendable {
    private let values = Atomic<UInt64>(0)

    var count: UInt64 { values.load(ordering: .relaxed) }

    func add() {
        values.wrappingAdd(1, ordering: .relaxed)
    }
}

/// The state of a download of stored records, for people.
struct RecordStatus: Hashable, Sendable {
    enum State: String, Hashable, Sendable {
        case downloading
        case complete
        case failed
        /// The link ended during the download.
        case interrupted
    }

    var state: State
    /// The number of records of the current request so far.
    private(set) var done = 0
    /// The number of new records of the download so far.
    private(set) var stored = 0
    /// The records that the device has announced.
    var total: Int?
    var detail: String?
    var since: Timestamp

    init(state: State, since: Timestamp) {
        (self.state, self.since) = (state, since)
    }

    /// Adds the records since `before`; a further request counts from zero.
    mutating func count(_ facts: DownloadFacts, after before: DownloadFacts) {
        guard state == .downloading else { return }
        done = facts.count
        stored += facts.stored < before.stored ? facts.stored : facts.stored - before.stored
        if let total, done > total { self.total = done }
    }
}
