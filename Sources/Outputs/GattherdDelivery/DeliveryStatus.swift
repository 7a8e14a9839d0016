public import GattherdLog
public import GattherdMachines
import GattherdSync

/// The state of delivery, for people.
public struct DeliveryStatus: Hashable, Sendable {
    public var session = DeliveryMachine.Session.idle
    /// The last broker error in words; `nil` during a session.
    public var lastError: String?
    /// The last `seq` that the broker has acknowledged together with all before it.
    public var cursor: Int64?
    /// An upper bound of committed readings that the broker has not acknowledged.
    public var backlog: Int64 = 0
    /// The reason why readings wait during a session, if they do.
    public var pause: DeliveryMachine.Pause?
    /// The refused topics that are set aside.
    public var refusals: [TopicRefusals.Refusal] = []
    /// Readings without a PUBACK.
    public var inFlight = 0
}

/// The newest state of a delivery, readable on any thread.
final class DeliveryBoard: Sendable {
    /// The state of the session, to be watched.
    let session = LatestValue(DeliveryMachine.Session.idle)
    private let current = Locked(DeliveryStatus())

    var status: DeliveryStatus { current.withLock { $0 } }

    /// Shows the machine's state and the last fault.
    func show(_ machine: borrowing DeliveryMachine, _ fault: BrokerFault?, at now: Duration) {
        var status = DeliveryStatus()
        status.session = machine.state
        status.lastError = fault?.detail
        status.cursor = machine.cursor
        status.backlog = machine.backlog
        status.inFlight = machine.inFlight
        status.pause = machine.pause(at: now)
        let isNew = current.withLock { [status] current in
            let (last, refusals) = (current.session, current.refusals)
            current = status
            current.refusals = refusals
            return last != status.session
        }
        if isNew { session.set(status.session) }
    }

    func show(_ refusals: [TopicRefusals.Refusal]) {
        current.withLock { $0.refusals = refusals }
    }
}

/// The counters of delivery.
public struct DeliveryCounters: Sendable {
    public let published = Counter("mqtt_readings_published_total", "Published readings, including republished ones")
    public let republished = Counter("mqtt_readings_republished_total", "Readings published again after a reconnect")
    public let suppressed = Counter("mqtt_readings_suppressed_total", "Readings suppressed by their stream's policy")
    public let refused = Counter("mqtt_readings_refused_total", "Readings that the broker refused for good")
    public let topicsSetAside = Counter(
        "mqtt_topics_set_aside_total",
        "Topics set aside because the broker refuses them"
    )
    public let messagesRefused = Counter(
        "mqtt_messages_refused_total",
        "Received messages that are too long or whose topics cannot be answered"
    )
    public let connects = Counter("mqtt_connects_total", "Sessions with the broker")
    public let eventsDropped = Counter("mqtt_events_dropped_total", "Events that were not published")
    public let answersDropped = Counter("mqtt_answers_dropped_total", "Answers that were not published")
    public let requests = Counter("mqtt_requests_total", "Answered MQTT requests")
    public let retainedRequestsIgnored = Counter(
        "mqtt_retained_requests_ignored_total",
        "Retained requests, which are always ignored"
    )
    public let misnamedRequests = Counter(
        "mqtt_misnamed_requests_total",
        "Requests with invalid names in their topics"
    )

    /// All counters, for the metrics.
    public var all: [Counter] {
        [
            published, republished, suppressed, refused, topicsSetAside, messagesRefused, connects, eventsDropped,
            answersDropped, requests, retainedRequestsIgnored, misnamedRequests,
        ]
    }
}
