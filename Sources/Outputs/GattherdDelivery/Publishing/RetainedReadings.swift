import GattherdLog
import GattherdMQTT
import GattherdModel
import GattherdSync

/// The newest retained reading of each topic, and the session in which it was published.
struct RetainedReadings {
    private var newest: [String: (reading: JournalReading, session: Int)] = [:]

    /// Records a published reading; its samples are copied, because those of a whole commit share their storage.
    mutating func record(_ reading: JournalReading, on topic: String, in session: Int) {
        let copy = JournalReading(
            seq: reading.seq,
            stream: reading.stream,
            time: reading.time,
            source: reading.source,
            isStored: reading.isStored,
            samples: ArraySlice(Array(reading.samples))
        )
        newest[topic] = (copy, session)
    }

    /// Removes the readings of a removed device.
    mutating func remove(_ device: String) {
        newest = newest.filter { $0.value.reading.device != device }
    }

    /// The newest readings of topics on which none was published in the session, in journal order.
    func missing(in session: Int) -> [JournalReading] {
        newest.values.filter { $0.session != session }.map(\.reading).sorted { $0.seq < $1.seq }
    }
}

/// The search for the gateway's retained state, which shows whether the broker keeps retained messages.
///
/// The subscription to the state is sent before `online`. A broker that keeps retained messages then sends the state of
/// the last session, which is at least the last will.
struct RetainedStateCheck: Hashable {
    /// The session in which the state was missing; `nil` once the readings are published again.
    private var missingSince: Int?
    private var foundIn: Int?

    /// Records that the broker accepted the subscription; it sends the retained state at about the same time.
    mutating func subscribed(in session: Int) {
        if foundIn != session, missingSince == nil { missingSince = session }
    }

    /// Records that the broker sent the retained state.
    mutating func found(in session: Int) {
        foundIn = session
        // A later session finds the state that this one has published.
        if missingSince == session { missingSince = nil }
    }

    /// Returns true once if the broker has lost its retained messages.
    mutating func takeLoss() -> Bool {
        defer { missingSince = nil }
        return missingSince != nil
    }
}

/// Publishes the newest readings again to a broker that has lost its retained messages.
///
/// A broker without persistence loses them at its restart. Later subscribers would see nothing of a slow stream until
/// its next reading, perhaps for hours.
///
/// On the loop's thread only.
final class RetainedRepair {
    private let context: DeliveryContext
    private let admission: TopicAdmission
    private let readings: ReadingPublisher
    private var check = RetainedStateCheck()
    /// Returns true for a reading that is published again anyway.
    var isAwaited: (JournalReading) -> Bool = { _ in false }

    init(_ context: DeliveryContext, _ admission: TopicAdmission, _ readings: ReadingPublisher) {
        (self.context, self.admission, self.readings) = (context, admission, readings)
    }

    /// Handles a message of the broker, which may be the retained state.
    func receive(_ message: BrokerMessage, in session: BrokerSession) {
        if message.isRetained, message.topic == context.topics.state { check.found(in: session.number) }
    }

    /// Handles the broker's answer to the subscription of a state.
    func subscribed(_ state: PublishQueue.State, _ reason: MQTTReason, in session: BrokerSession) {
        guard state == .subscribeToState, !reason.isFailure else { return }
        check.subscribed(in: session.number)
        publishLater(to: session)
    }

    /// Waits for the retained state, and during the search for a refused topic, when packets are sent one at a time.
    private func publishLater(to session: BrokerSession) {
        context.loop.schedule(after: context.settings.repairPause) { [weak self, weak session] in
            guard let self, let session, !session.isClosed else { return }
            guard !admission.isCautious else { return publishLater(to: session) }
            if check.takeLoss(), session.sender.canRetain { publish(to: session) }
        }
    }

    private func publish(to session: BrokerSession) {
        let count = readings.publishMissing(to: session, unless: isAwaited)
        guard count > 0 else { return }
        context.counters.published.add(UInt64(count))
        context.counters.republished.add(UInt64(count))
        context.logger.republishedRetained(count)
        session.flush()
        session.watch()
    }
}
