public import GattherdLog
public import GattherdMachines
public import GattherdModel
import GattherdSync

/// The state of delivery, for people.
public struct DeliveryStatus: Hashable, Sendable {
    public var session = DeliveryMachine.SessionState.idle
    /// The last broker error in words; `nil` during a session.
    public var lastError: String?
    /// The last `seq` that the broker has acknowledged together with all before it.
    public var cursor: Int64?
    /// An upper bound of committed readings that the broker has not acknowledged.
    public var backlog: Int64 = 0
    /// The time at which the oldest of them began to wait; `nil` without a backlog.
    public var waitingSince: Timestamp?
    /// The time of the next attempt to connect, since the delivery's creation.
    public var nextTry: Duration?
    /// The reason why readings wait during a session, if they do.
    public var pause: DeliveryMachine.Pause?
    /// The refused topics that are set aside.
    public var refusals: [TopicRefusals.Refusal] = []
    /// A refused subscription that disables a feature.
    var refusedSubscription: RefusedSubscriptions.Problem?
    /// Readings without a PUBACK.
    public var inFlight = 0
}

extension OutputStatus {
    /// - Parameters:
    ///   - delivery: The state of delivery.
    ///   - target: The broker's URL.
    ///   - elapsed: The time since the delivery's creation.
    init(_ delivery: DeliveryStatus, target: String, elapsed: Duration) {
        self.init(target: target)
        state = State(delivery.session)
        cursor = delivery.cursor
        backlog = delivery.backlog
        waitingSince = delivery.waitingSince
        problem = delivery.session == .connected ? delivery.obstacle : delivery.lastError
        nextTry = delivery.nextTry.map {
            Timestamp(microseconds: WallClock.microseconds).advanced(by: max(.zero, $0 - elapsed))
        }
    }
}

extension OutputStatus.State {
    fileprivate init(_ session: DeliveryMachine.SessionState) {
        self =
            switch session {
            case .idle: .idle
            case .connecting: .connecting
            case .connected: .connected
            case .backingOff: .waiting
            case .stopping: .stopping
            case .stopped: .stopped
            }
    }
}

extension DeliveryStatus {
    /// The reason why readings wait although there is a session.
    fileprivate var obstacle: String? {
        switch pause {
        case .reconnected: "waiting a moment for subscribers to return"
        case .awaitingSubscribers: "waiting for subscribers to return, some seconds at most"
        case .busy: "waiting for a busy broker"
        case .refused: "the broker refuses readings and accepts no others; check its access list and its limits"
        case nil: refusedTopics ?? deafness
        }
    }

    /// The topics that are set aside, as a message.
    private var refusedTopics: String? {
        guard let first = refusals.first else { return nil }
        let others = refusals.count > 1 ? " and \(refusals.count - 1) more" : ""
        return "refuses '\(first.topic)'\(others) (\(first.reason)); allow our user to use the gateway's topics"
    }
}

extension DeliveryStatus {
    /// The refused subscription, as a message.
    private var deafness: String? {
        refusedSubscription.map {
            "refuses the subscription '\($0.filter)' (\($0.reason)), so requests are lost; \($0.remedy)"
        }
    }
}

/// The newest state of a delivery, readable on any thread.
final class DeliveryBoard: Sendable {
    /// The state of the MQTT session, for code that waits for a change.
    let session = LatestValue(DeliveryMachine.SessionState.idle)
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
        let time = Timestamp(microseconds: WallClock.microseconds)
        // A stored record of a device is older than its arrival.
        let complete = machine.completeUntil.map { time.advanced(by: $0 - now) }
        status.waitingSince = machine.waitingSince.map { max($0, complete ?? $0) }
        status.nextTry = machine.nextTry
        let isNew = current.withLock { [status] current in
            let (last, refusals, subscription) = (current.session, current.refusals, current.refusedSubscription)
            current = status
            (current.refusals, current.refusedSubscription) = (refusals, subscription)
            return last != status.session
        }
        if isNew { session.set(status.session) }
    }

    func show(_ refusals: [TopicRefusals.Refusal]) {
        current.withLock { $0.refusals = refusals }
    }

    func show(_ subscriptions: RefusedSubscriptions) {
        current.withLock { $0.refusedSubscription = subscriptions.problem }
    }
}

/// The counters of delivery.
public struct DeliveryCounters: Sendable {
    public let published = Counter("mqtt_readings_published_total", "Published readings, including republished ones")
    /// Readings that the broker has acknowledged.
    public let acknowledged = Counter("mqtt_readings_acknowledged_total", "Readings that the broker has acknowledged")
    public let republished = Counter("mqtt_readings_republished_total", "Readings published again after a reconnect")
    public let suppressed = Counter("mqtt_readings_suppressed_total", "Readings suppressed by their stream's policy")
    public let delayed = Counter(
        "mqtt_readings_delayed_total",
        "Suppressed readings that were published at the end of their interval"
    )
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
    public let failures = Counter("mqtt_failures_total", "Sessions that ended or could not be established")
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
            published, acknowledged, republished, suppressed, delayed, refused, topicsSetAside, messagesRefused,
            connects, failures, eventsDropped,
            answersDropped, requests, retainedRequestsIgnored, misnamedRequests,
        ]
    }
}
