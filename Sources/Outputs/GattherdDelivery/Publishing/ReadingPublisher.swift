import GattherdMQTT
import GattherdMachines
import GattherdModel

/// Publishes readings by the rules of their streams.
///
/// On the loop's thread only.
final class ReadingPublisher {
    private let context: DeliveryContext
    private let admission: TopicAdmission
    var rules: PublishingRules
    /// The addresses of all devices, by name; `nil` until they are known.
    var enrolled: [String: String]?

    init(_ context: DeliveryContext, _ admission: TopicAdmission) {
        self.context = context
        self.admission = admission
        rules = context.settings.publishing
    }

    /// Appends a batch to the session; returns the outcomes of readings that cannot be published now.
    func publish(_ batch: [JournalReading], to session: BrokerSession) -> [PublishOutcome] {
        batch.compactMap { publish($0, to: session) }
    }

    private func publish(_ reading: JournalReading, to session: BrokerSession) -> PublishOutcome? {
        let topic = context.topics.reading(reading.device, reading.stream)
        guard admission.admits(topic) else {
            return PublishOutcome(seq: reading.seq, .refused("the topic is set aside"))
        }
        guard !admission.defers(topic) else { return PublishOutcome(seq: reading.seq, .deferred) }
        let rule = rule(for: reading)
        do throws(MQTTRefusal) {
            // Before the reading: when it is acknowledged, the broker has these as well.
            if rule.hasScalars { try publishScalars(reading, rule, to: session) }
            try session.sender.publish(
                reading.payload,
                to: topic,
                reading: reading.seq,
                rule,
                isAcknowledged: rule.isAcknowledged
            )
            return nil
        } catch {
            return PublishOutcome(seq: reading.seq, error.verdict)
        }
    }

    private func rule(for reading: JournalReading) -> StreamPublishing {
        var rule = rules[reading.device, reading.stream]
        // Only QoS 1 shows whether the broker accepts the reading.
        if admission.needsAnswers { rule.isAcknowledged = true }
        // The device was removed, so nothing would clear a retained reading.
        if let enrolled, enrolled[reading.device] == nil { rule.isRetained = false }
        return rule
    }

    /// Publishes the bare values; MQTT 5 carries the reading's `seq` as a property, as the payload has no room.
    private func publishScalars(
        _ reading: JournalReading,
        _ rule: StreamPublishing,
        to session: BrokerSession
    ) throws(MQTTRefusal) {
        guard let content = ReadingContent(reading.payload) else { return }
        let origin: [MessageProperties.UserProperty] = [
            .init(name: "seq", value: "\(reading.seq)"), .init(name: "ts", value: content.time?.rfc3339 ?? ""),
        ]
        for (metric, payload) in content.scalars {
            let topic = context.topics.scalar(reading.device, reading.stream, metric)
            guard admission.admits(topic) else { continue }
            try session.sender.publish(
                payload[...],
                to: topic,
                reading: nil,
                rule,
                isAcknowledged: admission.needsAnswers,
                MessageProperties(isJSON: false, user: origin)
            )
        }
    }
}
