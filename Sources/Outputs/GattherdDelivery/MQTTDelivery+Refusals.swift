import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// The topics that the broker refuses; see ``TopicRefusals``.
extension MQTTDelivery {
    /// The broker answered a packet, so it has accepted all before it.
    func accepted(_ identifier: UInt16) {
        let wasCautious = refusals.isCautious
        for topic in refusals.acknowledged(identifier) { narrateReturn(of: topic) }
        if wasCautious, !refusals.isCautious { endCaution() }
    }

    /// The broker ended the session, for a reason that may be a topic.
    func blame(_ reason: String) {
        guard link?.isConnected == true else { return }
        setAside(refusals.sessionEnded(reason, at: now))
    }

    func setAside(_ topic: String?) {
        guard let topic, let refusal = refusals.all.first(where: { $0.topic == topic }) else { return }
        counters.topicsSetAside.add()
        record([
            "state": .text("topic_set_aside"), "topic": .text(topic), "error": .text(refusal.reason),
            "device": topics.device(topic).map { .text($0) },
        ])
        log(
            .error,
            "the broker refuses a topic, which is set aside; allow our user to use it in the broker's access list",
            [
                .init("mqtt.topic", topic), .init("mqtt.reason", refusal.reason),
                .init("retry.after", refusal.retryAt - now),
            ]
        )
    }

    private func narrateReturn(of topic: String) {
        record([
            "state": .text("topic_accepted"), "topic": .text(topic), "device": topics.device(topic).map { .text($0) },
        ])
        log(.notice, "the broker accepts a topic again", [.init("mqtt.topic", topic)])
    }

    /// Packets go out one at a time for a while at most.
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
}
