import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// Appends the packets of a session to its connection, and keeps them until the broker answers.
///
/// On the loop's thread only.
final class PacketSender {
    private let mqtt: MQTTConnection
    private let context: DeliveryContext
    private let admission: TopicAdmission
    private let answerTimer: DeadlineTimer
    private let fail: (BrokerFault) -> Void
    private var readings = ReadingsInFlight()
    private var others = PacketsInFlight()
    private var aliases = TopicAliases()
    /// False if the broker accepts no filters with wildcards.
    private(set) var takesWildcards = true
    /// False if the broker keeps no retained messages.
    private(set) var canRetain = true

    /// Creates a sender without packets; `fail` is called when the broker does not answer a packet in time.
    init(
        _ mqtt: MQTTConnection,
        _ context: DeliveryContext,
        _ admission: TopicAdmission,
        fail: @escaping (BrokerFault) -> Void
    ) {
        self.mqtt = mqtt
        self.context = context
        self.admission = admission
        self.fail = fail
        answerTimer = DeadlineTimer(context.time)
    }

    /// False once the broker has ended the session, also before that is reported.
    var isConnected: Bool { mqtt.isConnected }
    /// True if everything is sent.
    var isClear: Bool { mqtt.isClear }
    /// The number of messages with readings without a PUBACK.
    var readingsInFlight: Int { readings.count }
    /// The number of readings in an array that may be too large; see ``ReadingsInFlight/unansweredArray``.
    var unansweredArray: Int? { readings.unansweredArray }
    /// The number of unanswered packets other than readings.
    var messagesInFlight: Int { others.count }
    /// The repeated readings that the broker has not answered.
    var unansweredReadings: [RepeatedReading] { others.repeatedReadings }
    /// The responses that the broker has not acknowledged.
    var unansweredResponses: [MQTTResponse] { others.responses }

    /// Applies the limits of CONNACK.
    func apply(_ limits: BrokerLimits) {
        canRetain = limits.canRetain
        takesWildcards = limits.takesWildcards
        aliases.maximum = admission.allowsAliases ? limits.topicAliases : 0
    }

    /// True until the broker answers the packet, unless the packet was a reading.
    func isUnanswered(_ identifier: UInt16) -> Bool { others.contains(identifier) }

    /// Removes the readings that a PUBACK answers; `nil` if the packet was another message.
    func removeReadings(_ identifier: UInt16, _ reason: MQTTReason) -> (seqs: [Int64], topic: String)? {
        let removed = readings.remove(identifier)
        if let removed, !reason.isFailure { aliases.accepted(removed.topic) }
        return removed
    }

    /// Removes an answered packet other than a reading.
    func removeMessage(_ identifier: UInt16) -> PacketsInFlight.Packet? { others.remove(identifier) }

    /// Returns the readings of QoS 0 that the kernel has accepted since the last call.
    func sentReadings() -> [PublishOutcome] { readings.sent(mqtt.drainSentCount()) }

    /// Records that the broker did not acknowledge a reading in time.
    ///
    /// A broker that processes packets in order has acknowledged a later one, so it drops this one.
    func recordOmission(of reading: JournalReading) {
        guard readings.newestAcknowledged > reading.seq else { return }
        admission.omitted(context.topics.reading(reading.device, reading.stream.stream))
    }

    /// Stops waiting for answers.
    func close() {
        answerTimer.set(nil)
    }

    /// Appends a message other than a reading, with QoS 1; returns its packet identifier.
    func publish(
        _ payload: [UInt8],
        to topic: String,
        _ content: PacketsInFlight.Content,
        _ origin: TopicRefusals.Origin,
        _ properties: MessageProperties = MessageProperties(),
        isRetained: Bool = false
    ) throws(MQTTRefusal) -> UInt16 {
        let packet = PublishPacket(
            topic: topic,
            payload: payload[...],
            isRetained: isRetained && canRetain,
            properties: properties
        )
        let identifier = try mqtt.publish(packet, qos: 1)
        add(identifier, content, on: topic)
        admission.sent(topic, identifier, origin)
        return identifier
    }

    /// Appends a message with readings, or if `seqs` is empty, a bare value or a repeated reading as `content`.
    func publish(
        _ payload: ArraySlice<UInt8>,
        to topic: String,
        readings seqs: [Int64],
        _ content: PacketsInFlight.Content,
        _ rule: StreamPublishing,
        isAcknowledged: Bool,
        _ properties: consuming MessageProperties = MessageProperties()
    ) throws(MQTTRefusal) {
        let alias = aliases.number(of: topic, isAcknowledged: isAcknowledged)
        properties.expiry = rule.expirySeconds
        properties.alias = alias?.number
        let packet = PublishPacket(
            topic: alias?.isKnown == true ? nil : topic,
            payload: payload,
            isRetained: rule.isRetained && canRetain,
            properties: properties
        )
        let identifier = try mqtt.publish(packet, qos: isAcknowledged ? 1 : 0)
        admission.sent(topic, identifier, .message)
        if identifier == 0 {
            readings.addUnacknowledged(seqs)
        } else if seqs.isEmpty {
            add(identifier, content, on: topic)
        } else {
            readings.add(identifier, seqs, on: topic)
        }
    }

    /// Appends a packet of a state; returns the identifier of a message.
    func send(_ packet: Announcements.Packet, of state: PublishQueue.State) throws(MQTTRefusal) -> UInt16? {
        switch packet {
        case .retained(let topic, let payload, let isJSON):
            let origin: TopicRefusals.Origin = payload.isEmpty ? .transientMessage : .message
            let properties = MessageProperties(isJSON: isJSON)
            return try publish(payload, to: topic, .state(state), origin, properties, isRetained: true)
        case .subscription(let filter, let options): try subscribe(to: filter, options, of: state)
        case .unsubscription(let filter): add(try mqtt.unsubscribe(from: filter), .other, on: nil)
        }
        return nil
    }

    private func subscribe(
        to filter: String,
        _ options: SubscriptionOptions,
        of state: PublishQueue.State
    ) throws(MQTTRefusal) {
        let identifier = try mqtt.subscribe(to: filter, options)
        add(identifier, .subscription(state, filter: filter), on: filter)
        admission.sent(filter, identifier, .subscription)
    }

    private func add(_ identifier: UInt16, _ content: PacketsInFlight.Content, on topic: String?) {
        others.add(identifier, content, on: topic, at: context.now)
        armAnswerTimer()
    }

    /// Bounds the time for which a packet other than a reading may stay unanswered.
    private func armAnswerTimer() {
        guard !answerTimer.isSet, let oldest = others.oldest else { return }
        answerTimer.set(oldest.since + context.settings.options.acknowledgement) { [weak self] in self?.checkAnswers() }
    }

    private func checkAnswers() {
        let limit = context.settings.options.acknowledgement
        guard let oldest = others.oldest, context.now >= oldest.since + limit else { return armAnswerTimer() }
        if let topic = oldest.topic, others.isOvertaken(oldest) {
            if case .response(let response) = oldest.content, response.isOnChosenTopic {
                admission.suspendChosenTopics("it does not acknowledge a response")
            } else {
                admission.omitted(topic)
            }
        }
        let name = oldest.topic ?? "an unsubscription"
        fail(BrokerFault(.lost, "the broker has not answered '\(name)' for \(limit)"))
    }
}
