import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel

/// Limits repeated log messages and remembers the last fault.
struct DeliveryLogger {
    enum Subject: Hashable {
        case log
        case skipped
        case busy
        case retainedRequest
        case misnamedRequest
        case refusedState
        case unpublished
        case answers
        case faultyBroker
        case refusedSubscription(String)
    }

    private static let pause = Duration.seconds(60)

    /// The current fault of the broker connection.
    private(set) var lastFault: BrokerFault?
    private var loggedAt: [Subject: Duration] = [:]

    /// True at most once a minute for each subject.
    mutating func mayLog(of subject: Subject, at now: Duration) -> Bool {
        loggedAt = loggedAt.filter { now < $0.value + Self.pause }
        guard loggedAt[subject] == nil else { return false }
        loggedAt[subject] = now
        return true
    }

    /// True if the fault differs from the last one.
    mutating func isNew(_ fault: BrokerFault) -> Bool {
        defer { lastFault = fault }
        return lastFault != fault
    }

    mutating func connected() {
        lastFault = nil
    }
}

extension MQTTDelivery {
    func logReport(_ report: DeliveryMachine.Report) {
        switch report {
        case .connected:
            deliveryLogger.connected()
            record(["state": .text("connected"), "at": .text("\(settings.host):\(settings.port)")])
            log(
                .notice,
                "connected to the broker",
                [.init("mqtt.host", settings.host), .init("mqtt.port", settings.port)]
            )
        case .disconnected(let fault, let delay): logReport(fault, retryAfter: delay)
        case .skipped(let reading, let detail):
            counters.refused.add()
            let topic = topics.reading(reading.device, reading.stream)
            guard refusals[topic] == nil, deliveryLogger.mayLog(of: .skipped, at: now) else { return }
            record(["state": .text("refused"), "topic": .text(topic), "error": .text(detail)])
            log(
                .error,
                "the broker refuses readings, which are skipped",
                [.init("mqtt.topic", topic), .init("mqtt.reason", detail)]
            )
        case .unacknowledged(let reading): omitted(reading)
        case .busy(let detail):
            guard deliveryLogger.mayLog(of: .busy, at: now) else { return }
            record(["state": .text("busy"), "error": .text(detail)])
            log(.warning, "the broker does not accept readings for now", [.init("mqtt.reason", detail)])
        case .awaitingSubscribers(let reading):
            let topic = topics.reading(reading.device, reading.stream)
            record(["state": .text("awaiting_subscribers"), "topic": .text(topic)])
            log(.notice, "waiting for subscribers to return", [.init("mqtt.topic", topic)])
        case .goingOnWithoutSubscribers:
            record(["state": .text("going_on_without_subscribers")])
            log(.notice, "continuing without the missing subscribers")
        }
    }

    /// Logs that the broker refused a state, a response or an event.
    func narrateRefusal(_ reason: MQTTReason) {
        guard deliveryLogger.mayLog(of: .refusedState, at: now) else { return }
        log(
            .error,
            "the broker refuses messages other than readings; allow the MQTT user all of the gateway's topics",
            [.init("mqtt.topic", "\(topics.base)/#"), .init("mqtt.reason", reason.words)]
        )
    }

    /// Logs that the broker refused a subscription.
    func logRefusedSubscription(_ filter: String) {
        guard deliveryLogger.mayLog(of: .refusedSubscription(filter), at: now) else { return }
        if filter == topics.sets || filter == topics.requests {
            log(
                .error,
                "the broker refuses a subscription; requests cannot be received",
                [.init("mqtt.topic", filter)]
            )
        } else {
            log(
                .warning,
                "the broker refuses a subscription; retained messages of earlier runs are not cleared",
                [.init("mqtt.topic", filter)]
            )
        }
    }

    private func logReport(_ fault: BrokerFault, retryAfter delay: Duration) {
        let isNew = deliveryLogger.isNew(fault)
        if isNew { record(["state": .text(fault.kind.rawValue), "error": .text(fault.detail)]) }
        let level: LogLevel = !isNew ? .debug : fault.needsSomebody ? .error : .warning
        log(level, "no session with the broker", [.init("mqtt.error", fault.detail), .init("retry.after", delay)])
    }
}
