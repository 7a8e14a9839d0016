import GattherdMQTT
import GattherdMachines
import GattherdModel

/// Publishes readings by the rules of their streams.
///
/// On the loop's thread only.
final class ReadingPublisher {
    private let context: DeliveryContext
    private let admission: TopicAdmission
    /// The buffer of payloads, whose capacity is used again.
    private var writer = JSONWriter()
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
        let topic = context.topics.reading(reading.device, reading.stream.stream)
        guard admission.admits(topic) else {
            return PublishOutcome(seq: reading.seq, .refused("the topic is set aside"))
        }
        guard !admission.defers(topic) else { return PublishOutcome(seq: reading.seq, .deferred) }
        let rule = rule(for: reading)
        do throws(MQTTRefusal) {
            // Before the reading: when it is acknowledged, the broker has these as well.
            if rule.hasScalars { try publishScalars(reading, rule, to: session) }
            writer.removeAll()
            reading.writeJSON(to: &writer)
            try session.sender.publish(
                writer.bytes[...],
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
        var rule = rules[reading.device, reading.stream.stream]
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
        let origin: [MessageProperties.UserProperty] = [
            .init(name: "seq", value: "\(reading.seq)"), .init(name: "ts", value: reading.time.rfc3339),
        ]
        for (metric, payload) in reading.scalars {
            let topic = context.topics.scalar(reading.device, reading.stream.stream, metric)
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

extension JournalReading {
    /// The bare value of each metric; of a list, the last element.
    ///
    /// A metric has none if its name is the last topic level of a request or a response.
    fileprivate var scalars: [(metric: String, payload: [UInt8])] {
        stream.metrics.indices.compactMap { index in
            let metric = stream.metrics[index]
            let values = samples.lazy.filter { $0.metric == index }
            guard let sample = metric.isRepeated ? values.last : values.first else { return nil }
            guard metric.name != "set", metric.name != "result" else { return nil }
            return (metric.name, Array(sample.value.bare.utf8))
        }
    }
}

extension SampleValue {
    /// The value without JSON syntax.
    fileprivate var bare: String {
        switch self {
        case .integer(let number): "\(number)"
        case .real(let number): number.isFinite ? "\(number)" : "null"
        case .boolean(let flag): "\(flag)"
        case .text(let text): text
        case .null: "null"
        }
    }
}
