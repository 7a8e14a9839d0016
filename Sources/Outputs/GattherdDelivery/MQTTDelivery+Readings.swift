import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel

/// Readings on their way from the journal to the broker.
extension MQTTDelivery {
    /// Follows the journal's head.
    ///
    /// A closed journal has no head; the first head marks the backlog of earlier runs.
    func followHead() async {
        for await seq in readings.heads() where seq >= 0 { step(.headMoved(seq)) }
    }

    func load() async {
        do throws(StoreFault) {
            step(.cursorLoaded(try await readings.acknowledged()))
        } catch {
            journalFailed(.load, error)
        }
    }

    /// Fetches from memory if possible; the file serves the backlog of earlier runs.
    func fetchNow(after seq: Int64, limit: Int) {
        guard let batch = readings.recent(after: seq, limit: limit) else {
            return enqueue(.fetch(after: seq, limit: limit))
        }
        step(.fetched(batch, skipping: unwanted(batch)))
    }

    func fetch(after seq: Int64, limit: Int) async {
        do throws(StoreFault) {
            let batch = try await readings.readings(after: seq, limit: limit)
            step(.fetched(batch, skipping: unwanted(batch)))
        } catch {
            journalFailed(.fetch, error)
        }
    }

    func save(_ seq: Int64) async {
        do throws(StoreFault) {
            try await readings.acknowledge(through: seq)
            step(.saved(seq))
        } catch {
            journalFailed(.save, error)
        }
    }

    private func journalFailed(_ operation: DeliveryMachine.JournalOperation, _ fault: StoreFault) {
        if deliveryLogger.mayLog(of: .log, at: now) {
            log(
                .warning,
                "delivery cannot use the journal",
                [.init("log.operation", operation.rawValue), .init("log.error", fault.detail)]
            )
        }
        step(.journalFailed(operation))
    }

    /// Publishes a batch in few TCP segments.
    func publish(_ batch: [JournalReading], again: Int, session: Int) {
        guard link?.session == session else { return }
        counters.published.add(UInt64(batch.count))
        counters.republished.add(UInt64(again))
        let failures = batch.compactMap(publish)
        if !failures.isEmpty { step(.answered(session: session, failures)) }
        flushLink()
        gatherAcknowledgements()
    }

    /// Publishes a reading; returns an outcome only if that is impossible.
    private func publish(_ reading: JournalReading) -> PublishOutcome? {
        let topic = topics.reading(reading.device, reading.stream)
        guard refusals.isEmpty || refusals.admits(topic, at: now) else {
            return PublishOutcome(seq: reading.seq, .refused("the topic is set aside"))
        }
        guard !refusals.defers(topic, at: now) else { return PublishOutcome(seq: reading.seq, .deferred) }
        var rule = publishing[reading.device, reading.stream]
        // Only QoS 1 shows whether the broker accepts the reading.
        if needsAnswers { rule.isAcknowledged = true }
        // The device was removed, so nothing would clear a retained reading.
        if let enrolled, enrolled[reading.device] == nil { rule.isRetained = false }
        do throws(MQTTRefusal) {
            // Before the reading: when it is acknowledged, the broker has these as well.
            if rule.hasScalars { try publishScalars(reading, rule) }
            let mid = try publish(reading.payload, to: topic, rule, qos: rule.isAcknowledged ? 1 : 0)
            if mid == 0 {
                link?.recordUnacknowledged(reading.seq)
            } else {
                link?.readings[mid] = (reading.seq, topic)
            }
            return nil
        } catch {
            return PublishOutcome(seq: reading.seq, error.verdict)
        }
    }

    /// Publishes the bare values; MQTT 5 carries the reading's `seq` as a property, as the payload has no room.
    private func publishScalars(_ reading: JournalReading, _ rule: StreamPublishing) throws(MQTTRefusal) {
        guard let content = ReadingContent(reading.payload) else { return }
        let origin: [MessageProperties.UserProperty] = [
            .init(name: "seq", value: "\(reading.seq)"), .init(name: "ts", value: content.time?.rfc3339 ?? ""),
        ]
        for (metric, payload) in content.scalars {
            let topic = topics.scalar(reading.device, reading.stream, metric)
            guard refusals.isEmpty || refusals.admits(topic, at: now) else { continue }
            let qos = needsAnswers ? 1 : 0
            let mid = try publish(payload[...], to: topic, rule, qos: qos, .init(isJSON: false, user: origin))
            if mid == 0 {
                link?.recordUnacknowledged(nil)
            } else {
                link?.others.add(mid, .other, on: topic, at: now)
                armAnswerTimer()
            }
        }
    }

    /// True while each packet needs an answer, because a topic is or may be refused.
    private var needsAnswers: Bool { refusals.isCautious || !refusals.isEmpty }

    private func publish(
        _ payload: ArraySlice<UInt8>,
        to topic: String,
        _ rule: StreamPublishing,
        qos: Int,
        _ properties: MessageProperties = .init()
    ) throws(MQTTRefusal) -> UInt16 {
        let alias = link?.aliases.number(of: topic)
        var properties = properties
        properties.expiry = rule.expirySeconds
        properties.alias = alias?.number
        let packet = PublishPacket(
            topic: alias?.isKnown == true ? nil : topic,
            payload: payload,
            isRetained: rule.isRetained && link?.canRetain == true,
            properties: properties
        )
        let mid = try link?.connection.publish(packet, qos: qos)
        if alias?.isKnown == false { link?.aliases.introduced(topic) }
        refusals.sent(topic, identifier: mid ?? 0, .message)
        return mid ?? 0
    }
}

/// The selection of readings by policy.
extension MQTTDelivery {
    /// The sequence numbers that their streams' policies suppress.
    private func unwanted(_ batch: [JournalReading]) -> Set<Int64> {
        guard isSelective else { return [] }
        var unwanted: Set<Int64> = []
        for reading in batch {
            let policy = publishing[reading.device, reading.stream].policy
            guard !policy.isEverything, let content = ReadingContent(reading.payload)?.filtered else { continue }
            if !filter.passes(content, of: reading.device, reading.stream, under: policy) {
                unwanted.insert(reading.seq)
            }
        }
        counters.suppressed.add(UInt64(unwanted.count))
        return unwanted
    }
}
