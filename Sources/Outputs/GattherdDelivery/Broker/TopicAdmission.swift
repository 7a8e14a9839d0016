import GattherdLog
import GattherdMQTT
import GattherdMachines

/// The decision which topics may be published to, learned from the broker's answers and logged.
///
/// On the loop's thread only. See ``TopicRefusals`` for the search, and ``BusyTopics`` for a busy broker.
final class TopicAdmission {
    /// The time for which responses avoid chosen topics after a refusal.
    private static let chosenTopicsPause = Duration.seconds(3600)

    private let context: DeliveryContext
    private let board: DeliveryBoard
    private var refusals: TopicRefusals
    private var busyTopics: BusyTopics
    /// The time until which responses use the gateway's own topics only.
    private var chosenTopicsRefusedUntil: Duration?
    /// False once the broker has ended a session because of a topic alias, although it allowed aliases.
    private(set) var allowsAliases = true

    init(_ context: DeliveryContext, _ board: DeliveryBoard) {
        self.context = context
        self.board = board
        refusals = TopicRefusals(context.settings.options.topics)
        busyTopics = BusyTopics(timeout: context.settings.options.busyTimeout)
    }

    /// True while packets should be sent one at a time.
    var isCautious: Bool { refusals.isCautious }
    /// True while each packet needs an answer, because a topic is or may be refused.
    var needsAnswers: Bool { refusals.isCautious || !refusals.isEmpty }
    /// True while topics are deferred.
    var isDeferring: Bool { refusals.deferralEnd != nil }
    /// True if responses use the gateway's own topics only.
    var areChosenTopicsRefused: Bool { chosenTopicsRefusedUntil.map { context.now < $0 } ?? false }

    /// True if a packet for the topic may be sent; a topic that is set aside may be tried when its pause is over.
    func admits(_ topic: String) -> Bool {
        refusals.isEmpty || refusals.admits(topic, at: context.now)
    }

    /// True while a packet for the topic should wait until the broker has accepted another topic.
    func defers(_ topic: String) -> Bool { isDeferring && refusals.defers(topic, at: context.now) }

    /// True if the topic is set aside.
    func isSetAside(_ topic: String) -> Bool { refusals[topic] != nil }

    /// The time of the next attempt at a topic that is set aside.
    func retryTime(of topic: String) -> Duration? { refusals[topic]?.retryAt }

    /// Records a packet that is sent; `identifier` is 0 without an answer.
    func sent(_ topic: String, _ identifier: UInt16, _ origin: TopicRefusals.Origin) {
        refusals.sent(topic, identifier: identifier, origin)
    }
}

/// Follows the session with the broker.
extension TopicAdmission {
    func startSession() {
        refusals.began(at: context.now)
        busyTopics.startSession()
    }

    /// The end of the time for which packets are sent one at a time; `nil` if they are not.
    var cautionEnd: Duration? { refusals.relaxAt }
    /// The end of the deferral; `nil` if no topic is deferred.
    var deferralEnd: Duration? { refusals.deferralEnd }

    /// Ends the caution when it has lasted too long; returns true if it did.
    func endCaution() -> Bool { refusals.relax(at: context.now) }

    /// Records that the broker ended the session because of a topic alias; otherwise it would end each further one.
    func refuseAliases() {
        allowsAliases = false
    }

    /// Records that the broker ended the session, possibly because of a topic or of the size of a message.
    func endSession(_ reason: String, mayBeTooLarge: Bool) {
        switch refusals.sessionEnded(reason, mayBeTooLarge: mayBeTooLarge, at: context.now) {
        case .setAside(let topic): setAside(topic)
        case .chosenTopic: suspendChosenTopics(reason)
        case .brokerAcceptsNothing: context.logger.brokerAcceptsNothing(reason)
        case nil: break
        }
    }
}

/// The broker's answers.
extension TopicAdmission {
    /// Returns the verdict on an answered reading, and whether the caution has ended.
    func verdict(
        _ reason: MQTTReason,
        on topic: String,
        _ identifier: UInt16
    ) -> (PublishOutcome.Verdict, hasCautionEnded: Bool) {
        guard !reason.concernsTopic else { return (refuse(identifier, on: topic, reason), false) }
        switch busyTopics.verdict(reason, on: topic, at: context.now) {
        case .reading(let verdict): return (verdict, answered(identifier, reason))
        case .topicRefused: return (refuse(identifier, on: topic, reason, isProven: true), false)
        }
    }

    /// Records an answered packet: the broker has processed all packets before it.
    ///
    /// - Parameters:
    ///   - identifier: The packet's.
    ///   - reason: The broker's; a subscription may be refused without a verdict on its topic.
    /// - Returns: True if the caution has ended.
    func answered(_ identifier: UInt16, _ reason: MQTTReason = .success) -> Bool {
        guard !reason.concernsTopic else {
            _ = refuse(identifier, reason)
            return false
        }
        let wasCautious = refusals.isCautious
        for topic in refusals.acknowledged(identifier, isAccepted: !reason.isFailure) {
            board.show(refusals.all)
            context.logger.topicAccepted(topic, device: context.topics.device(topic))
        }
        return wasCautious && !refusals.isCautious
    }

    /// Records that the broker accepted a message on a topic.
    func recordAcceptance(of topic: String) {
        busyTopics.recordAcceptance(of: topic)
    }

    /// Records that the broker acknowledged later packets and not one on the topic.
    func omitted(_ topic: String) {
        setAside(refusals.omitted(topic, at: context.now))
    }

    /// Publishes responses on the gateway's own topics only, for a time.
    func suspendChosenTopics(_ reason: String) {
        let isNew = !areChosenTopicsRefused
        chosenTopicsRefusedUntil = context.now + Self.chosenTopicsPause
        if isNew { context.logger.responseTopicRefused(reason) }
    }

    /// Records that the broker refused the topic of a packet; returns the verdict on its readings.
    private func refuse(
        _ identifier: UInt16,
        on topic: String? = nil,
        _ reason: MQTTReason,
        isProven: Bool = false
    ) -> PublishOutcome.Verdict {
        switch refusals.refused(identifier, on: topic, reason.words, isProven: isProven, at: context.now) {
        case .setAside(let topic):
            setAside(topic)
            return .setAside(reason.words)
        case .isSetAside: return .setAside(reason.words)
        case .ignored: return .refused(reason.words)
        case .unproven: break
        case .brokerAcceptsNothing: context.logger.brokerAcceptsNothing(reason.words)
        }
        return .unproven(reason.words)
    }

    private func setAside(_ topic: String?) {
        guard let topic, let refusal = refusals[topic] else { return }
        context.counters.topicsSetAside.add()
        board.show(refusals.all)
        context.logger.topicSetAside(refusal, device: context.topics.device(topic), at: context.now)
    }
}
