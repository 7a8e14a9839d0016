import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// The topics that the broker refuses; see ``TopicRefusals``.
extension MQTTDelivery {
    /// Records an answered packet; the broker has accepted all packets before it.
    func accepted(_ identifier: UInt16, isAccepted: Bool = true) {
        let wasCautious = refusals.isCautious
        for topic in refusals.acknowledged(identifier, isAccepted: isAccepted) { logReturn(of: topic) }
        if wasCautious, !refusals.isCautious { endCaution() }
    }

    /// Records that the broker ended the session, possibly because of a topic.
    func blame(_ reason: String) {
        guard link?.isConnected == true else { return }
        switch refusals.sessionEnded(reason, at: now) {
        case .setAside(let topic): setAside(topic)
        case .chosenTopic: suspendChosenTopics(reason)
        case .brokerAcceptsNothing: logFaultyBroker(reason)
        case nil: break
        }
    }

    /// Records a dropped reading: a broker that processes packets in order acknowledged a later one.
    func omitted(_ reading: JournalReading) {
        guard let link, link.newestAcknowledged > reading.seq else { return }
        setAside(refusals.omitted(topics.reading(reading.device, reading.stream), at: now))
    }

    /// Publishes responses on the gateway's own topics only, for a time.
    func suspendChosenTopics(_ reason: String) {
        let isNew = !areChosenTopicsRefused
        chosenTopicsRefusedUntil = now + Self.chosenTopicsPause
        guard isNew else { return }
        record(["state": .text("response_topics_refused"), "error": .text(reason)])
        log(
            .warning,
            "the broker refuses a response topic; responses are published on the gateway's topics for an hour",
            [.init("mqtt.reason", reason)]
        )
    }

    /// The time for which responses avoid chosen topics after a refusal.
    private static let chosenTopicsPause = Duration.seconds(3600)

    var areChosenTopicsRefused: Bool { chosenTopicsRefusedUntil.map { now < $0 } ?? false }

    private func logFaultyBroker(_ reason: String) {
        guard deliveryLogger.mayLog(of: .faultyBroker, at: now) else { return }
        record(["state": .text("accepts_nothing"), "error": .text(reason)])
        log(.error, "the broker accepts no message; check the broker", [.init("mqtt.reason", reason)])
    }

    func setAside(_ topic: String?) {
        guard let topic, let refusal = refusals[topic] else { return }
        counters.topicsSetAside.add()
        report()
        record([
            "state": .text("topic_set_aside"), "topic": .text(topic), "error": .text(refusal.reason),
            "device": topics.device(topic).map { .text($0) },
        ])
        log(
            .error,
            "the broker refuses a topic, which is set aside; allow the MQTT user to use it in the broker's access list",
            [
                .init("mqtt.topic", topic), .init("mqtt.reason", refusal.reason),
                .init("retry.after", refusal.retryAt - now),
            ]
        )
    }

    private func logReturn(of topic: String) {
        report()
        record([
            "state": .text("topic_accepted"), "topic": .text(topic), "device": topics.device(topic).map { .text($0) },
        ])
        log(.notice, "the broker accepts a topic again", [.init("mqtt.topic", topic)])
    }

    /// Bounds the time for which packets are sent one at a time.
    func armCaution(_ link: BrokerLink) {
        guard let end = refusals.relaxAt else { return }
        let session = link.session
        loop.schedule(after: end - now) { [weak self] in
            self?.assumeIsolated { $0.relax(session) }
        }
    }

    private func relax(_ session: Int) {
        guard link?.session == session, refusals.relax(at: now) else { return }
        endCaution()
    }

    private func endCaution() {
        guard let link else { return }
        step(.windowChanged(session: link.session, receiveMaximum: link.receiveMaximum))
        pumpOutbox()
    }

    /// Schedules the publishing of deferred topics.
    func armDeferral(_ link: BrokerLink) {
        guard let end = refusals.deferralEnd else { return }
        let session = link.session
        loop.schedule(after: end - now) { [weak self] in
            self?.assumeIsolated { if $0.link?.session == session { $0.pumpOutbox() } }
        }
    }

    /// Keeps a state whose topic is set aside for the next attempt.
    func hold(_ state: PublishQueue.State, on topic: String) {
        guard link?.isLeaving == false else { return }
        heldStates = heldStates.filter { refusals[$0.key] != nil }
        heldStates[topic] = state
        armRetry()
    }

    /// Schedules the earliest attempt at a held state.
    private func armRetry() {
        let deadline = heldStates.keys.compactMap { refusals[$0]?.retryAt }.min()
        guard deadline != retryTimer?.deadline else { return }
        if let retryTimer { loop.cancel(retryTimer.timer) }
        retryTimer = deadline.map { deadline in
            let timer = loop.schedule(after: deadline - now) { [weak self] in
                self?.assumeIsolated { $0.retryHeldStates() }
            }
            return (timer, deadline)
        }
    }

    private func retryHeldStates() {
        retryTimer = nil
        for (topic, state) in heldStates where refusals[topic].map({ $0.retryAt <= now }) ?? true {
            heldStates[topic] = nil
            tell(state)
        }
        pumpOutbox()
        armRetry()
    }

    /// Bounds the time for which a packet other than a reading may stay unanswered.
    func armAnswerTimer() {
        guard let link, !link.isAnswerTimerArmed, let oldest = link.others.oldest else { return }
        link.isAnswerTimerArmed = true
        let session = link.session
        loop.schedule(after: oldest.since + settings.options.acknowledgement - now) { [weak self] in
            self?.assumeIsolated { $0.checkAnswers(session) }
        }
    }

    private func checkAnswers(_ session: Int) {
        guard let link, link.session == session else { return }
        link.isAnswerTimerArmed = false
        let limit = settings.options.acknowledgement
        guard let oldest = link.others.oldest, now >= oldest.since + limit else { return armAnswerTimer() }
        if let topic = oldest.topic, link.others.isOvertaken(oldest) {
            if case .response(let response) = oldest.content, response.isOnChosenTopic {
                suspendChosenTopics("it does not acknowledge a response")
            } else {
                setAside(refusals.omitted(topic, at: now))
            }
        }
        let name = oldest.topic ?? "an unsubscription"
        step(.failed(session: session, BrokerFault(.lost, "the broker has not answered '\(name)' for \(limit)")))
    }
}
