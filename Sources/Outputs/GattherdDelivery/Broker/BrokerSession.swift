import GattherdMQTT
import GattherdMachines
import GattherdSync

/// An MQTT session on a new connection, with the packets that the broker has not answered.
///
/// On the loop's thread only. A new connection starts with a new object.
final class BrokerSession {
    enum Event {
        /// A CONNACK that accepts the session.
        case connected(BrokerLimits)
        /// A CONNACK that refuses the session, with the broker's text.
        case refused(MQTTReason, String?)
        /// Outcomes of published readings.
        case answered([PublishOutcome])
        /// The retained states are sent, and readings may follow.
        case opened
        /// The broker has the final `offline`, or cannot have it.
        case offlinePublished
        /// Packets need no longer be sent one at a time.
        case cautionEnded
        /// The broker refused a packet other than a reading.
        case refusedMessage(PacketsInFlight.Content, MQTTReason)
        /// The broker answered a subscription of a state.
        case subscribed(PublishQueue.State, filter: String, MQTTReason)
        case message(BrokerMessage)
        /// More messages may be sent now.
        case ready
        case failed(BrokerFault)
    }

    /// The age up to which the loss of a session suggests another client with the same id, which returns within the
    /// longest pause of its own backoff.
    private static let contestedAge = Duration.seconds(10)

    /// The longest time for which answers stay unread because nothing is to be published.
    private static let longestPause = Duration.milliseconds(5)

    let number: Int
    private let context: DeliveryContext
    private let admission: TopicAdmission
    private let connection: LoopConnection
    private let report: (Event) -> Void
    /// The packets to the broker.
    let sender: PacketSender
    /// The time at which CONNACK arrived.
    private var connectedAt: Duration?
    private var acknowledgementDelay = AcknowledgementDelay()
    /// The outcomes of a window's first readings, while the session waits for the others.
    private var partialOutcomes: [PublishOutcome] = []
    /// The packet identifier of the final `offline`, unless the broker has refused it.
    private var offline: UInt16?
    /// The number of QoS 1 messages that the broker accepts unacknowledged.
    private(set) var receiveMaximum = 1

    /// Creates the session on a connection; `report` receives all events from ``start()`` to ``close()``.
    init(
        _ number: Int,
        _ mqtt: MQTTConnection,
        _ context: DeliveryContext,
        _ admission: TopicAdmission,
        report: @escaping (Event) -> Void
    ) {
        self.number = number
        self.context = context
        self.admission = admission
        self.report = report
        connection = LoopConnection(mqtt, context.time)
        sender = PacketSender(mqtt, context, admission) { report(.failed($0)) }
    }

    var isConnected: Bool { connectedAt != nil }
    var isClosed: Bool { connection.isClosed }
    /// True if the broker has answered every packet.
    var isIdle: Bool { sender.messagesInFlight == 0 && sender.readingsInFlight == 0 }

    /// Sends CONNECT.
    func start() {
        connection.start(
            ready: { [weak self] in self?.socketIsReady(canRead: $0) },
            failed: { [weak self] in self?.connectionFailed($0) }
        )
        flush()
        watch()
    }

    /// Watches the socket for the readiness that the connection needs now.
    func watch() {
        connection.watch()
    }

    /// Sends the waiting bytes.
    func flush() {
        guard connection.flush() else { return }
        let outcomes = sender.sentReadings()
        if !outcomes.isEmpty { report(.answered(outcomes)) }
    }

    /// Delays reading while acknowledgements arrive one by one; reading each would cost more than publishing.
    ///
    /// - Parameters:
    ///   - isCatchingUp: True if the broker limits the rate; the delay is then short.
    ///   - pause: The time in which nothing more will be published anyway.
    func gatherAcknowledgements(isCatchingUp: Bool, pause: Duration) {
        let readings = sender.readingsInFlight
        guard let delay = acknowledgementDelay.delay(for: readings, isCatchingUp: isCatchingUp) else { return }
        connection.delayReading(by: max(delay, min(pause, Self.longestPause)))
    }

    /// Marks the retained states as sent.
    func open() {
        report(.opened)
    }

    /// Ends a session that cannot publish.
    func fail(_ fault: BrokerFault) {
        report(.failed(fault))
    }

    /// Waits for the answer to the final `offline`; `nil` if it could not be published.
    func awaitOffline(_ identifier: UInt16?) {
        offline = identifier
        if identifier == nil { report(.offlinePublished) }
    }

    /// Ends the session: with DISCONNECT if the broker has the final `offline`, else the broker publishes the will.
    ///
    /// - Returns: The responses that the broker has not acknowledged.
    func close() -> [MQTTResponse] {
        let isClean = offline.map { !sender.isUnanswered($0) } ?? false
        connection.close(isClean && sender.isClear ? .success : nil)
        sender.close()
        return sender.unansweredResponses
    }
}

/// Receives packets.
extension BrokerSession {
    private func socketIsReady(canRead: Bool) {
        if canRead { receive() }
        flush()
        report(.ready)
        watch()
    }

    private func receive() {
        let inFlight = sender.readingsInFlight
        var outcomes: [PublishOutcome] = []
        var failure = receive(&outcomes)
        // The rest of a window often waits in the broker's kernel until its first part is acknowledged.
        if failure == nil, !outcomes.isEmpty, !isNearlyAnswered(inFlight) {
            failure = receive(&outcomes, isFurther: true)
        }
        if failure == nil, !outcomes.isEmpty, waitForRest(of: inFlight, outcomes) { return }
        if failure == nil { failure = reportWindow(outcomes, of: inFlight) } else { reportAnswered(outcomes) }
        guard let failure, !connection.isClosed else { return }
        if failure.isEndOfConnection { blameTopic("it ends the session without a reason") }
        report(.failed(fault(failure)))
    }

    /// Reports the answers, and receives the last ones of a window if nothing is published behind it.
    ///
    /// Otherwise the published readings acknowledge the answers.
    private func reportWindow(_ outcomes: [PublishOutcome], of inFlight: Int) -> MQTTConnectionError? {
        let hasAnswers = !outcomes.isEmpty || !partialOutcomes.isEmpty
        let (unanswered, isTail) = (sender.readingsInFlight, isNearlyAnswered(inFlight))
        reportAnswered(outcomes)
        guard hasAnswers, unanswered > 0, isTail, sender.readingsInFlight <= unanswered, !connection.isClosed else {
            return nil
        }
        var last: [PublishOutcome] = []
        let failure = receive(&last, isFurther: true)
        reportAnswered(last)
        return failure
    }

    /// True if only a few of the messages that were in flight are unanswered.
    private func isNearlyAnswered(_ inFlight: Int) -> Bool {
        AcknowledgementDelay.isNearly(sender.readingsInFlight, of: inFlight)
    }

    /// Reads and handles packets; returns the reason why the connection has ended, if it has.
    private func receive(_ outcomes: inout [PublishOutcome], isFurther: Bool = false) -> MQTTConnectionError? {
        var failure: MQTTConnectionError?
        do throws(MQTTConnectionError) {
            if isFurther {
                try connection.mqtt.receiveFurther(at: context.now)
            } else {
                try connection.mqtt.receive(at: context.now)
            }
        } catch {
            failure = error
        }
        handlePackets(&outcomes)
        return failure
    }

    private func reportAnswered(_ outcomes: [PublishOutcome]) {
        let all = partialOutcomes + outcomes
        partialOutcomes = []
        if !all.isEmpty { report(.answered(all)) }
    }

    /// Reports the outcomes of readings before an event that ends the session.
    private func reportAnswered(removing outcomes: inout [PublishOutcome]) {
        let answered = outcomes
        outcomes = []
        reportAnswered(answered)
    }

    /// Delays reading once more if only a part of a window is acknowledged; returns false if `outcomes` should be
    /// reported.
    private func waitForRest(of inFlight: Int, _ outcomes: [PublishOutcome]) -> Bool {
        guard partialOutcomes.isEmpty else { return false }
        guard let delay = acknowledgementDelay.rest(for: sender.readingsInFlight, of: inFlight) else { return false }
        partialOutcomes = outcomes
        connection.delayReading(by: delay)
        return true
    }

    /// Handles the broker's packets and collects the outcomes of readings.
    private func handlePackets(_ outcomes: inout [PublishOutcome]) {
        for event in connection.mqtt.drainEvents() {
            guard !connection.isClosed else { return }
            switch event {
            case .acknowledged(let identifier, let reason): acknowledged(identifier, reason, &outcomes)
            case .connected(let reason, let text, let limits): connected(reason, text, limits)
            case .disconnected(let reason, let text):
                reportAnswered(removing: &outcomes)
                if reason.mayConcernTopic { blameTopic(reason.words) }
                if reason == .topicAliasInvalid { admission.refuseAliases() }
                report(.failed(reason.loss(text) ?? fault(.ended)))
            case .subscribed(let identifier, let reason):
                let packet = sender.removeMessage(identifier)
                if admission.answered(identifier) { report(.cautionEnded) }
                if case .subscription(let state, let filter) = packet?.content {
                    report(.subscribed(state, filter: filter, reason))
                }
            case .unsubscribed(let identifier): _ = sender.removeMessage(identifier)
            case .message(let message): report(.message(message))
            }
        }
    }

    private func acknowledged(_ identifier: UInt16, _ reason: MQTTReason, _ outcomes: inout [PublishOutcome]) {
        if let (seqs, topic) = sender.removeReadings(identifier, reason) {
            let (verdict, hasCautionEnded) = admission.verdict(reason, on: topic, identifier)
            if hasCautionEnded { report(.cautionEnded) }
            for seq in seqs { outcomes.append(PublishOutcome(seq: seq, verdict)) }
            return
        }
        if admission.answered(identifier, reason) { report(.cautionEnded) }
        guard let packet = sender.removeMessage(identifier) else { return }
        if let topic = packet.topic, !reason.isFailure { admission.recordAcceptance(of: topic) }
        if reason.isFailure { report(.refusedMessage(packet.content, reason)) }
        guard offline == identifier else { return }
        // A broker that refuses `offline` still has `online`, which only the last will corrects.
        if reason.isFailure { offline = nil }
        reportAnswered(removing: &outcomes)
        report(.offlinePublished)
    }

    private func connected(_ reason: MQTTReason, _ text: String?, _ limits: BrokerLimits) {
        guard reason == .success else { return report(.refused(reason, text)) }
        guard limits.takesQoS1 else { return report(.failed(.withoutQoS1)) }
        connectedAt = context.now
        sender.apply(limits)
        receiveMaximum = limits.receiveMaximum
        connection.keepAlive()
        report(.connected(limits))
    }

    private func connectionFailed(_ failure: LoopConnection.Failure) {
        switch failure {
        case .lost(let error): report(.failed(fault(error)))
        case .unwatched(let error): report(.failed(BrokerFault(.lost, error.description)))
        }
    }

    /// Records that the broker ended the session, possibly because of a topic.
    private func blameTopic(_ reason: String) {
        if isConnected { admission.endSession(reason, mayBeTooLarge: sender.unansweredArray != nil) }
    }

    private func fault(_ error: MQTTConnectionError) -> BrokerFault {
        let explanation = connection.mqtt.tls?.explanation
        guard isConnected else { return .unanswered(context.settings, error, explanation) }
        return explanation.map { BrokerFault(.security, $0) } ?? BrokerFault(.lost, loss(error))
    }

    /// The text for a lost connection.
    ///
    /// Two clients with one id end each other's session, and mosquitto gives no reason.
    private func loss(_ error: MQTTConnectionError) -> String {
        let words = "the connection was lost: \(error)"
        guard let start = connectedAt, context.now - start < Self.contestedAge else { return words }
        return words
            + "; if this repeats, look for another client with the same client_id, such as a gateway of the same name"
    }
}
