import GattherdMQTT
import GattherdMachines
import GattherdModel

/// Publishes readings by the rules of their streams.
///
/// On the loop's thread only.
final class ReadingPublisher {
    /// The maximum number of removed devices whose waiting readings are known; the broker's messages name some of them.
    private static let maximumRemoved = 1000

    private let context: DeliveryContext
    private let admission: TopicAdmission
    /// The buffer of payloads, whose capacity is used again.
    private var writer = JSONWriter()
    private var limit = ArrayLimit()
    /// True if the limit was learned from lost sessions.
    private var isLimitLearned = false
    private var streams = PublishedStreams()
    /// The newest reading at the removal of a device, by the device's name.
    private var lastOfRemoved: [String: Int64] = [:]
    var rules: PublishingRules {
        didSet { updateStreams() }
    }
    /// The addresses of all devices, by name; `nil` until they are known.
    var enrolled: [String: String]? {
        didSet { updateStreams() }
    }

    init(_ context: DeliveryContext, _ admission: TopicAdmission) {
        self.context = context
        self.admission = admission
        rules = context.settings.publishing
    }

    /// Resets the limit that the last session's broker had stated.
    func startSession() {
        if !isLimitLearned { limit = ArrayLimit() }
    }

    /// Halves an array that the session did not deliver.
    ///
    /// With MQTT 3.1.1 a broker states no limit, and ends the session. A network may also end it before a large packet
    /// has passed.
    func endSession(unansweredArray count: Int?) {
        guard let count else { return }
        limit.refuse(count, hasEndedSession: true)
        isLimitLearned = true
    }

    /// Appends messages to the session; returns the outcomes of readings that cannot be published now.
    func publish(_ messages: [DeliveryMessage], to session: BrokerSession) -> [PublishOutcome] {
        var split: Set<String> = []
        return messages.flatMap { message in
            switch message {
            case .reading(let reading): publish([reading], isArray: false, to: session)
            case .batch(let readings): publishArray(readings[...], to: session, &split)
            }
        }
    }

    /// Appends a message with as many readings as the broker accepts in one; the others follow in other messages.
    ///
    /// - Parameters:
    ///   - readings: The readings.
    ///   - session: The session.
    ///   - split: The topics with readings left over, which later readings must not overtake.
    /// - Returns: The outcomes of readings that are not sent.
    private func publishArray(
        _ readings: ArraySlice<JournalReading>,
        to session: BrokerSession,
        _ split: inout Set<String>
    ) -> [PublishOutcome] {
        guard let stream = readings.first?.stream else { return [] }
        let topic = self.stream(stream).topic
        if split.contains(topic) {
            return readings.outcomes(.remaining)
        }
        let first = readings.prefix(limit.count)
        let rest = readings.dropFirst(first.count).outcomes(.remaining)
        let outcomes = publish(first, isArray: true, to: session) + rest
        if outcomes.contains(where: { $0.verdict == .remaining }) { split.insert(topic) }
        return outcomes
    }

    /// Appends a message with readings of one stream.
    ///
    /// - Parameters:
    ///   - readings: The readings.
    ///   - isArray: True for a message that is an array.
    ///   - session: The session.
    ///   - again: The reading as part of a repair; `nil` for readings whose outcome is awaited.
    /// - Returns: The outcomes of readings that are not sent.
    private func publish(
        _ readings: ArraySlice<JournalReading>,
        isArray: Bool,
        to session: BrokerSession,
        again: RepeatedReading? = nil
    ) -> [PublishOutcome] {
        guard let first = readings.first else { return [] }
        let stream = stream(first.stream)
        let topic = stream.topic
        guard admission.admits(topic) else { return readings.outcomes(.setAside("the topic is set aside")) }
        guard !admission.defers(topic) else { return readings.outcomes(.deferred) }
        var rule = rule(of: stream)
        if let last = readings.last, isOfRemoved(last) { rule.isRetained = false }
        do throws(MQTTRefusal) {
            // Before the readings: when these are acknowledged, the broker has the bare values as well.
            if rule.hasScalars { try publishScalars(readings, rule, to: session) }
            try session.sender.publish(
                payload(readings, isArray: isArray),
                to: topic,
                readings: again == nil ? readings.map(\.seq) : [],
                again.map { .repeated($0) } ?? .other,
                rule,
                // Only QoS 1 shows when the broker has room for the next repeated reading.
                isAcknowledged: rule.isAcknowledged || again != nil
            )
            if rule.isRetained, let last = readings.last { stream.record(last, in: session.number) }
            if isArray { limit.accept(readings.count) }
            return []
        } catch {
            guard case .tooLarge = error, readings.count > 1 else { return readings.outcomes(error.verdict) }
            // The rest follows in other messages, as the window has room for one only.
            limit.refuse(readings.count)
            let half = readings.prefix(limit.count)
            return publish(half, isArray: isArray, to: session)
                + readings.dropFirst(half.count).outcomes(.remaining)
        }
    }

    /// Removes the retained readings of a removed device.
    ///
    /// - Parameters:
    ///   - device: The name, which another device may have now.
    ///   - head: The newest number in the journal.
    ///   - cursor: The number up to which no reading waits.
    func remove(_ device: String, through head: Int64, after cursor: Int64) {
        streams.remove(device)
        lastOfRemoved = lastOfRemoved.filter { $0.value > cursor }
        if head > cursor, lastOfRemoved.count < Self.maximumRemoved { lastOfRemoved[device] = head }
    }

    /// True if the device of the reading was removed: the reading is no state of another one of that name.
    func isOfRemoved(_ reading: JournalReading) -> Bool {
        guard !lastOfRemoved.isEmpty, let last = lastOfRemoved[reading.device] else { return false }
        return reading.seq <= last
    }

    /// The newest reading of each topic without one in the session of this number or a later one.
    func missing(since session: Int) -> [JournalReading] {
        streams.missing(since: session).filter(isRepeatable)
    }

    /// True unless a newer reading of the topic was published meanwhile, or this one again.
    func isMissing(_ reading: JournalReading, since session: Int) -> Bool {
        stream(reading.stream).isMissing(reading, since: session) && isRepeatable(reading)
    }

    /// Publishes a reading of a repair again; returns the verdict on a reading that is not sent.
    func publish(again item: RepeatedReading, to session: BrokerSession) -> PublishOutcome.Verdict? {
        let isArray = stream(item.reading.stream).rule.batch != nil
        return publish([item.reading], isArray: isArray, to: session, again: item).first?.verdict
    }

    /// Records that the broker did not accept a repeated reading.
    func refused(_ item: RepeatedReading) {
        stream(item.reading.stream).refused(item.reading)
    }

    /// False for a reading that would be wrong later: an event would seem to happen again, and an expiry starts anew.
    private func isRepeatable(_ reading: JournalReading) -> Bool {
        let rule = stream(reading.stream).rule
        return rule.isRetained && rule.expiry == nil && !reading.stream.metrics.contains { $0.kind == .event }
    }

    private func payload(_ readings: ArraySlice<JournalReading>, isArray: Bool) -> ArraySlice<UInt8> {
        writer.removeAll()
        if isArray { writer.beginArray() }
        for reading in readings { reading.writeJSON(to: &writer) }
        if isArray { writer.endArray() }
        return writer.bytes[...]
    }

    private func stream(_ definition: StreamDefinition) -> PublishedStream {
        streams.stream(definition) { stream in
            PublishedStream(
                topic: context.topics.reading(stream.device, stream.stream),
                rule: rule(stream.device, stream.stream)
            )
        }
    }

    private func updateStreams() {
        streams.update(rule)
    }

    private func rule(_ device: String, _ stream: String) -> StreamPublishing {
        var rule = rules[device, stream]
        // The device was removed, so nothing would clear a retained reading.
        if let enrolled, enrolled[device] == nil { rule.isRetained = false }
        return rule
    }

    private func rule(of stream: PublishedStream) -> StreamPublishing {
        var rule = stream.rule
        // Only QoS 1 shows whether the broker accepts the reading.
        if admission.needsAnswers { rule.isAcknowledged = true }
        return rule
    }

    /// Publishes the newest bare value of each metric.
    ///
    /// MQTT 5 carries the reading's `seq` and time as properties, as the payload has no room.
    private func publishScalars(
        _ readings: ArraySlice<JournalReading>,
        _ rule: StreamPublishing,
        to session: BrokerSession
    ) throws(MQTTRefusal) {
        var published: Set<String> = []
        for reading in readings.reversed() {
            let origin: [MessageProperties.UserProperty] = [
                .init(name: "seq", value: "\(reading.seq)"), .init(name: "ts", value: reading.time.rfc3339),
            ]
            for (metric, payload) in reading.scalars where published.insert(metric).inserted {
                let topic = context.topics.scalar(reading.device, reading.stream.stream, metric)
                guard admission.admits(topic) else { continue }
                try session.sender.publish(
                    payload[...],
                    to: topic,
                    readings: [],
                    .other,
                    rule,
                    isAcknowledged: admission.needsAnswers,
                    MessageProperties(isJSON: false, user: origin)
                )
            }
        }
    }
}

/// The maximum number of readings of an array that fit into the broker's largest packet; halved by each array that does
/// not fit.
///
/// A number of arrays of this size doubles it again, as readings of other streams may be smaller. This number grows
/// with each session that an array has ended, because the next attempt may end another one.
struct ArrayLimit: Hashable, Sendable {
    private static let longestPatience = 100_000

    private(set) var count = Int.max
    private var accepted = 0
    /// The number of arrays after which a larger one is tried.
    private var patience = 100

    mutating func accept(_ readings: Int) {
        guard readings >= count else { return }
        accepted += 1
        guard accepted >= patience else { return }
        (count, accepted) = (count > Int.max / 2 ? .max : count * 2, 0)
    }

    /// Records an array that did not fit; `hasEndedSession` is true if the session ended with it.
    mutating func refuse(_ readings: Int, hasEndedSession: Bool = false) {
        (count, accepted) = (max(1, readings / 2), 0)
        if hasEndedSession { patience = min(patience * 4, Self.longestPatience) }
    }
}

extension ArraySlice<JournalReading> {
    /// Returns an outcome with this verdict for each reading.
    fileprivate func outcomes(_ verdict: PublishOutcome.Verdict) -> [PublishOutcome] {
        map { PublishOutcome(seq: $0.seq, verdict) }
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
