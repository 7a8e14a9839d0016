import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// Publishes the newest readings again to a broker that has lost its retained messages.
///
/// A broker without persistence loses them at its restart. Later subscribers would see nothing of a slow stream until
/// its next reading, perhaps for hours. Only the readings since the start of the process are in memory. They are
/// published a few at a time, because other messages need room, and at the pace of a backlog, because brokers bound the
/// queue of a subscriber. After a lost connection the next session continues.
///
/// On the loop's thread only.
final class RetainedRepair {
    /// The maximum number of unanswered packets other than readings, so that states and responses always have room.
    private static let window = 8

    private let context: DeliveryContext
    private let admission: TopicAdmission
    private let readings: ReadingPublisher
    private let startTimer: DeadlineTimer
    /// The timer of the pace.
    private let timer: DeadlineTimer
    private var check = RetainedStateCheck()
    /// The session since which the repair in progress publishes; `nil` if none is in progress.
    private var repairing: Int?
    private var queue: RepairQueue
    /// Returns true for a reading that is published again anyway.
    var isAwaited: (JournalReading) -> Bool = { _ in false }

    init(_ context: DeliveryContext, _ admission: TopicAdmission, _ readings: ReadingPublisher) {
        (self.context, self.admission, self.readings) = (context, admission, readings)
        (startTimer, timer) = (DeadlineTimer(context.time), DeadlineTimer(context.time))
        queue = RepairQueue(context.settings.options)
    }

    /// Follows the session, after all others have handled its event.
    func handle(_ event: BrokerSession.Event, in session: BrokerSession) {
        switch event {
        case .subscribed(.subscribeToState, _, let reason) where !reason.isFailure:
            check.subscribed(in: session.number, at: context.now)
            startLater(session)
        case .message(let message) where message.isRetained && message.topic == context.topics.state:
            check.found(in: session.number)
            startLater(session)
        case .refusedMessage(.repeated(let item), let reason): refused(item, reason)
        case .ready: proceed(in: session)
        default: break
        }
    }

    /// Ends the session; the next one repeats the other readings, and then those without an answer.
    func endSession(unanswered: [RepeatedReading]) {
        unanswered.forEach(readings.refused)
        repairing = nil
        queue.removeAll()
        startTimer.set(nil)
        timer.set(nil)
    }

    /// Waits for the retained state; a session after the one with the loss waits for the rest of that time.
    private func startLater(_ session: BrokerSession) {
        startTimer.set(check.loss.map { $0.time + context.settings.repairPause }) { [weak self, weak session] in
            if let session { self?.start(session) }
        }
    }

    private func start(_ session: BrokerSession) {
        guard repairing == nil, let loss = check.loss, session.sender.canRetain, !session.isClosed else { return }
        let missing = readings.missing(since: loss.session).filter { !isAwaited($0) }
        queue.start(missing)
        repairing = loss.session
        if !missing.isEmpty { context.logger.repeatsReadings(missing.count) }
        proceed(in: session)
    }
}

/// Publishes the readings.
extension RetainedRepair {
    private func proceed(in session: BrokerSession) {
        guard let repairing else { return }
        while hasRoom(session), let item = dequeue(since: repairing) {
            publish(item, to: session)
            session.flush()
        }
        session.watch()
        if !queue.isEmpty { return continueLater(session) }
        guard self.repairing != nil, session.sender.unansweredReadings.isEmpty else { return }
        self.repairing = nil
        check.repaired()
    }

    /// True if the session has room for a reading; otherwise its next event continues.
    private func hasRoom(_ session: BrokerSession) -> Bool {
        let sender = session.sender
        guard sender.isConnected, sender.isClear else { return false }
        // During the search for a refused topic, one at a time.
        return admission.isCautious ? session.isIdle : sender.messagesInFlight < Self.window
    }

    private func dequeue(since loss: Int) -> RepeatedReading? {
        queue.dequeue(at: context.now) { readings.isMissing($0, since: loss) && !isAwaited($0) }
    }

    /// Continues when the pace allows the next reading.
    private func continueLater(_ session: BrokerSession) {
        guard hasRoom(session) else { return }
        timer.set(queue.nextTime(at: context.now)) { [weak self, weak session] in
            if let session { self?.proceed(in: session) }
        }
    }

    private func publish(_ item: RepeatedReading, to session: BrokerSession) {
        switch readings.publish(again: item, to: session) {
        case nil:
            context.counters.published.add()
            context.counters.republished.add()
        case .busy(let detail): repeatLater(item, detail)
        case .deferred: repeatLater(item, "its topic is deferred")
        case .refused(let detail): skip(item, detail)
        default: break
        }
    }

    private func refused(_ item: RepeatedReading, _ reason: MQTTReason) {
        readings.refused(item)
        // A topic that is set aside meanwhile is not tried again.
        if case .busy = reason.verdict { return repeatLater(item, reason.words) }
        if reason.concernsTopic { repeatLater(item, reason.words) } else { skip(item, reason.words) }
    }

    /// Publishes a reading after the others, unless the broker has refused it too often.
    private func repeatLater(_ item: RepeatedReading, _ detail: String) {
        if !queue.retry(item, at: context.now) { skip(item, detail) }
    }

    private func skip(_ item: RepeatedReading, _ detail: String) {
        context.logger.notRepeated(context.topics.reading(item.reading.device, item.reading.stream.stream), detail)
    }
}

/// The search for the gateway's retained state, which shows whether the broker keeps retained messages.
///
/// The subscription to the state is sent before `online`. A broker that keeps retained messages then sends the state of
/// the last session, which is at least the last will.
struct RetainedStateCheck: Hashable {
    /// A session in which the state was missing.
    struct Loss: Hashable {
        let session: Int
        /// The time at which the broker accepted the subscription.
        let time: Duration
    }

    /// The newest loss; `nil` once the readings are published again.
    private(set) var loss: Loss?
    /// The loss before it, which counts again if the state of the newest session arrives late.
    private var earlier: Loss?
    private var foundIn: Int?

    /// Records that the broker accepted the subscription; it sends the retained state at about the same time.
    ///
    /// A broker that has lost the state again has lost what was published meanwhile.
    mutating func subscribed(in session: Int, at now: Duration) {
        guard foundIn != session, loss?.session != session else { return }
        (earlier, loss) = (loss, Loss(session: session, time: now))
    }

    /// Records that the broker sent the retained state.
    mutating func found(in session: Int) {
        foundIn = session
        // A later session finds the state that this one has published.
        if loss?.session == session { (loss, earlier) = (earlier, nil) }
    }

    /// Records that the readings are published again.
    mutating func repaired() { (loss, earlier) = (nil, nil) }
}
