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
/// queue of a subscriber.
///
/// On the loop's thread only.
final class RetainedRepair {
    /// The maximum number of unanswered packets other than readings, so that states and responses always have room.
    private static let window = 8
    /// The number of refusals after which a reading is tried again; the pauses double, to about a minute in all.
    private static let maximumRefusals = 6

    private let context: DeliveryContext
    private let admission: TopicAdmission
    private let readings: ReadingPublisher
    private let timer: DeadlineTimer
    private var check = RetainedStateCheck()
    private var isRunning = false
    /// The readings that are still to be published, the next one last.
    private var waiting: [RepeatedReading] = []
    private var pace: TokenBucket
    /// The time before which nothing is published, because the broker was busy.
    private var pausedUntil = Duration.zero
    /// Returns true for a reading that is published again anyway.
    var isAwaited: (JournalReading) -> Bool = { _ in false }

    init(_ context: DeliveryContext, _ admission: TopicAdmission, _ readings: ReadingPublisher) {
        (self.context, self.admission, self.readings) = (context, admission, readings)
        timer = DeadlineTimer(context.time)
        pace = context.settings.options.pace
    }

    /// Follows the session, after all others have handled its event.
    func handle(_ event: BrokerSession.Event, in session: BrokerSession) {
        switch event {
        case .subscribed(.subscribeToState, _, let reason) where !reason.isFailure:
            check.subscribed(in: session.number)
            startLater(session)
        case .message(let message) where message.isRetained && message.topic == context.topics.state:
            check.found(in: session.number)
        case .refusedMessage(.repeated(let item), let reason): refused(item, reason)
        case .ready: proceed(in: session)
        default: break
        }
    }

    /// Ends the session; the next one begins anew, unless every reading was answered.
    func endSession() {
        isRunning = false
        waiting = []
        pausedUntil = .zero
        timer.set(nil)
    }

    /// Waits for the retained state.
    private func startLater(_ session: BrokerSession) {
        context.loop.schedule(after: context.settings.repairPause) { [weak self, weak session] in
            guard let self, let session, !session.isClosed else { return }
            if check.isLost, session.sender.canRetain, !isRunning { start(session) }
        }
    }

    private func start(_ session: BrokerSession) {
        let missing = readings.missing(in: session).filter { !isAwaited($0) }
        waiting = missing.reversed().map { RepeatedReading(reading: $0) }
        isRunning = true
        if !missing.isEmpty { context.logger.repeatsReadings(missing.count) }
        proceed(in: session)
    }
}

/// Publishes the readings.
extension RetainedRepair {
    private func proceed(in session: BrokerSession) {
        guard isRunning else { return }
        while hasRoom(session), let item = waiting.popLast() {
            publish(item, to: session)
            session.flush()
        }
        session.watch()
        guard isRunning, waiting.isEmpty, !session.sender.hasRepeatedReadings else { return }
        isRunning = false
        check.repaired()
    }

    /// True if a reading may be published now; otherwise the session's next event or the timer continues.
    private func hasRoom(_ session: BrokerSession) -> Bool {
        let sender = session.sender
        guard !waiting.isEmpty, sender.isConnected, sender.isClear else { return false }
        // During the search for a refused topic, one at a time.
        guard admission.isCautious ? session.isIdle : sender.messagesInFlight < Self.window else { return false }
        let now = context.now
        let refill = pace.allowance(at: now) > 0 ? now : now + pace.pause(at: now)
        let start = max(pausedUntil, refill)
        guard start > now else { return true }
        timer.set(start) { [weak self, weak session] in
            if let session { self?.proceed(in: session) }
        }
        return false
    }

    private func publish(_ item: RepeatedReading, to session: BrokerSession) {
        guard readings.isMissing(item.reading, in: session), !isAwaited(item.reading) else { return }
        switch readings.publish(again: item, to: session) {
        case nil:
            pace.spend(1)
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

    /// Publishes a reading after the others, and after a pause that doubles with each refusal.
    private func repeatLater(_ item: RepeatedReading, _ detail: String) {
        guard item.refusals < Self.maximumRefusals else { return skip(item, detail) }
        let pause = context.settings.options.retryPause * (1 << item.refusals)
        pausedUntil = max(pausedUntil, context.now + pause)
        waiting.insert(RepeatedReading(reading: item.reading, refusals: item.refusals + 1), at: 0)
    }

    private func skip(_ item: RepeatedReading, _ detail: String) {
        context.logger.notRepeated(context.topics.reading(item.reading.device, item.reading.stream.stream), detail)
    }
}
