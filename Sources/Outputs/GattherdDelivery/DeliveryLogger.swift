import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// Logs and records the events of delivery, limits repeated messages, and remembers the last fault.
final class DeliveryLogger: Sendable {
    private enum Subject: Hashable {
        case journal
        case notRepeated
        case busy
        case retainedRequest
        case misnamedRequest
        case refusedMessage
        case unpublished
        case droppedResponses
        case faultyBroker
        case refusedSubscription(String)
        case otherGateway
    }

    private struct State: Sendable {
        var lastFault: BrokerFault?
        var loggedAt: [Subject: SuspendingClock.Instant] = [:]
        var gaps = GapReports()
        var skips = SkipReports<(topic: String, detail: String)>()
    }

    /// The shortest time between two messages about one subject.
    private static let pause = Duration.seconds(60)

    private let log: Log
    private let record: MQTTDelivery.EventHandler
    private let topics: Topics
    private let host: String
    private let port: UInt16
    private let state = Locked(State())

    init(_ settings: DeliverySettings, _ log: Log, _ record: @escaping MQTTDelivery.EventHandler) {
        self.log = log
        self.record = record
        topics = Topics(base: settings.baseTopic)
        host = settings.host
        port = settings.port
    }

    /// The current fault of the broker connection.
    var lastFault: BrokerFault? { state.withLock { $0.lastFault } }

    /// True at most once a minute for each subject.
    private func mayLog(_ subject: Subject) -> Bool {
        let now = SuspendingClock.now
        return state.withLock { state in
            state.loggedAt = state.loggedAt.filter { now < $0.value + Self.pause }
            guard state.loggedAt[subject] == nil else { return false }
            state.loggedAt[subject] = now
            return true
        }
    }
}

/// Logs the changes of the session and of readings.
extension DeliveryLogger {
    func log(_ report: DeliveryMachine.Report) {
        switch report {
        case .connected: connected()
        case .disconnected(let fault, let delay): disconnected(fault, retryAfter: delay)
        case .busy(let detail):
            guard mayLog(.busy) else { return }
            record(["state": .text("busy"), "error": .text(detail)])
            log(.warning, "the broker does not accept readings for now", [.init("mqtt.reason", detail)])
        case .awaitingSubscribers(let reading):
            let topic = topics.reading(reading.device, reading.stream.stream)
            record(["state": .text("awaiting_subscribers"), "topic": .text(topic)])
            log(.notice, "waiting for subscribers to return", [.init("mqtt.topic", topic)])
        case .goingOnWithoutSubscribers:
            record(["state": .text("going_on_without_subscribers")])
            log(.notice, "continuing without the missing subscribers")
        case .acceptsNothing(let detail): brokerAcceptsNothing(detail)
        case .skipped, .unacknowledged: break
        }
    }

    /// Reports a reading that the broker refuses, together with others.
    func skipped(_ topic: String, _ detail: String) {
        state.withLock { $0.skips.add(1, (topic, detail)) }
    }

    private func reportSkips(_ count: Int64, _ topic: String, _ detail: String) {
        record([
            "state": .text("refused"), "count": .integer(count), "topic": .text(topic), "error": .text(detail),
        ])
        log(
            .error,
            "the broker refuses readings, which are skipped",
            [.init("mqtt.topic", topic), .init("skipped", count), .init("mqtt.reason", detail)]
        )
    }

    /// Logs that a reading, which was delivered before, is not published again for later subscribers.
    func notRepeated(_ topic: String, _ detail: String) {
        guard mayLog(.notRepeated) else { return }
        log(
            .warning,
            "a lost retained reading is not published again",
            [.init("mqtt.topic", topic), .init("mqtt.reason", detail)]
        )
    }

    /// Reports readings that history lost before they were published.
    func missing(_ found: JournalGap) {
        if let gap = state.withLock({ $0.gaps.add(found, at: SuspendingClock.now) }) { report(gap) }
    }

    /// Reports skipped readings, and a gap that exceeded the report limit, if they are due; if `isLast`, they are.
    ///
    /// Must be called repeatedly, because no further skip or gap may follow that would report them.
    func reportDue(isLast: Bool = false) {
        let now = SuspendingClock.now
        if let gap = state.withLock({ $0.gaps.due(at: now, isLast: isLast) }) { report(gap) }
        guard let skips = state.withLock({ $0.skips.due(at: now, isLast: isLast) }) else { return }
        reportSkips(skips.count, skips.subject.topic, skips.subject.detail)
    }

    private func report(_ gap: JournalGap) {
        record([
            "state": .text("gap"), "after": .integer(gap.after), "through": .integer(gap.through),
            "reason": .text(gap.reason),
        ])
        log(
            .warning,
            "readings are not published, because history does not have them any more",
            [LogField("after", gap.after), LogField("through", gap.through), LogField("reason", gap.reason)]
        )
    }

    /// Logs that readings are published again, because the broker has lost its retained messages or hides them.
    func repeatsReadings(_ count: Int) {
        log(
            .notice,
            "the broker does not show the gateway's retained state; the newest readings are published again",
            [LogField("readings", count)]
        )
    }

    func journalFailed(_ operation: DeliveryMachine.JournalOperation, _ fault: StoreFault) {
        guard mayLog(.journal) else { return }
        log(
            .warning,
            "the journal cannot be read or saved; retrying",
            [.init("log.operation", operation.rawValue), .init("log.error", fault.detail)]
        )
    }

    private func connected() {
        state.withLock { $0.lastFault = nil }
        record(["state": .text("connected"), "at": .text("\(host):\(port)")])
        log(.notice, "connected to the broker", [.init("mqtt.host", host), .init("mqtt.port", port)])
    }

    private func disconnected(_ fault: BrokerFault, retryAfter delay: Duration) {
        let isNew = state.withLock { state in
            defer { state.lastFault = fault }
            return state.lastFault != fault
        }
        if isNew { record(["state": .text(fault.kind.rawValue), "error": .text(fault.detail)]) }
        let level: LogLevel = !isNew ? .debug : fault.needsConfigurationChange ? .error : .warning
        log(level, "no session with the broker", [.init("mqtt.error", fault.detail), .init("retry.after", delay)])
    }
}

/// Refused topics.
extension DeliveryLogger {
    func topicSetAside(_ refusal: TopicRefusals.Refusal, device: String?, at now: Duration) {
        record([
            "state": .text("topic_set_aside"), "topic": .text(refusal.topic), "error": .text(refusal.reason),
            "device": device.map { .text($0) },
        ])
        log(
            .error,
            "the broker refuses a topic, which is set aside; allow the MQTT user to use it in the broker's access list",
            [
                .init("mqtt.topic", refusal.topic), .init("mqtt.reason", refusal.reason),
                .init("retry.after", refusal.retryAt - now),
            ]
        )
    }

    func topicAccepted(_ topic: String, device: String?) {
        record(["state": .text("topic_accepted"), "topic": .text(topic), "device": device.map { .text($0) }])
        log(.notice, "the broker accepts a topic again", [.init("mqtt.topic", topic)])
    }

    func responseTopicRefused(_ reason: String) {
        record(["state": .text("response_topics_refused"), "error": .text(reason)])
        log(
            .warning,
            "the broker refuses a response topic; responses are published on the gateway's topics for an hour",
            [.init("mqtt.reason", reason)]
        )
    }

    func brokerAcceptsNothing(_ reason: String) {
        guard mayLog(.faultyBroker) else { return }
        record(["state": .text("accepts_nothing"), "error": .text(reason)])
        log(.error, "the broker accepts no message; check the broker", [.init("mqtt.reason", reason)])
    }

    /// Logs that the broker refused a state, a response or an event.
    func refusedMessage(_ reason: MQTTReason) {
        guard mayLog(.refusedMessage) else { return }
        log(
            .error,
            "the broker refuses messages other than readings; allow the MQTT user all of the gateway's topics",
            [.init("mqtt.topic", "\(topics.base)/#"), .init("mqtt.reason", reason.words)]
        )
    }

    func refusedSubscription(_ filter: String, isNeeded: Bool) {
        guard mayLog(.refusedSubscription(filter)) else { return }
        let message: StaticString =
            isNeeded
            ? "the broker refuses a subscription, so messages to the gateway are lost; it is tried again"
            : filter == topics.stateFilter
                ? "the broker refuses a subscription, so a loss of its retained messages is not noticed"
                : "the broker refuses a subscription; retained messages of earlier runs are not cleared"
        log(isNeeded ? .error : .warning, message, [.init("mqtt.topic", filter)])
    }
}

/// Requests, responses and other messages.
extension DeliveryLogger {
    /// Logs that another gateway publishes below this one's base topic.
    func otherGateway(_ topic: String) {
        guard mayLog(.otherGateway) else { return }
        record(["state": .text("base_topic_in_use"), "topic": .text(topic)])
        log(
            .error,
            "another gateway has the same base topic; give each gateway a name or mqtt.base_topic of its own",
            [.init("mqtt.topic", topic)]
        )
    }

    func misnamedRequest(_ topic: String, _ advice: String) {
        guard mayLog(.misnamedRequest) else { return }
        log(.warning, "a request is refused for its topic", [.init("mqtt.topic", topic), .init("advice", advice)])
    }

    func retainedRequest(_ topic: String) {
        guard mayLog(.retainedRequest) else { return }
        log(.warning, "a retained request is ignored; publish it without retain", [.init("mqtt.topic", topic)])
    }

    func setNotAllowed(_ control: String, of device: String) {
        record(["state": .text("set_not_allowed"), "device": .text(device), "control": .text(control)])
    }

    func droppedResponse(_ topic: String, count: UInt64) {
        guard mayLog(.droppedResponses) else { return }
        record(["state": .text("answers_dropped"), "topic": .text(topic)])
        log(
            .error,
            "responses to requests are dropped: the broker refuses them, or too many wait to be published",
            [.init("mqtt.topic", topic), .init("answers.dropped", count)]
        )
    }

    /// Logs a message that could not be written; the next session repairs it unless it is refused for good.
    func unpublished(_ name: String, _ error: MQTTRefusal) {
        let isForGood = if case .refused = error.verdict { true } else { false }
        let level: LogLevel = isForGood && mayLog(.unpublished) ? .warning : .debug
        log(level, "a message could not be published", [.init("mqtt.message", name), .init("mqtt.error", error)])
    }
}
