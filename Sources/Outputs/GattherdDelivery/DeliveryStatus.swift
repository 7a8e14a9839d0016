public import GattherdLog
public import GattherdMachines

/// Where delivery stands, for people.
public struct DeliveryStatus: Hashable, Sendable {
    public var session = DeliveryMachine.Session.idle
    /// What was last wrong with the broker, in words; `nil` while there is a session.
    public var lastError: String?
    /// The last `seq` that the broker has acknowledged with all before it.
    public var cursor: Int64?
    /// Committed readings that the broker has not acknowledged, at most.
    public var backlog: Int64 = 0
    /// The reason why readings wait although there is a session, if they do.
    public var pause: DeliveryMachine.Pause?
    /// The topics that the broker refuses, and that are set aside.
    public var refusals: [TopicRefusals.Refusal] = []
    /// Readings that wait for their PUBACK.
    public var inFlight = 0
}

/// What delivery counts.
public struct DeliveryCounters: Sendable {
    /// Readings that were handed to the broker, each time that they were.
    public let published = Counter("mqtt_readings_published_total")
    /// Those of them that had been handed over before.
    public let republished = Counter("mqtt_readings_republished_total")
    /// Readings that were not published because their stream's policy wants fewer.
    public let suppressed = Counter("mqtt_readings_suppressed_total")
    /// Readings that the broker refused for good.
    public let refused = Counter("mqtt_readings_refused_total")
    /// Topics that were set aside because the broker refuses them.
    public let topicsSetAside = Counter("mqtt_topics_set_aside_total")
    /// Messages to us that are too long, or on topics that cannot be answered.
    public let messagesRefused = Counter("mqtt_messages_refused_total")
    public let connects = Counter("mqtt_connects_total")
    public let eventsDropped = Counter("mqtt_events_dropped_total")
    public let answersDropped = Counter("mqtt_answers_dropped_total")
    /// Requests that were answered.
    public let requests = Counter("mqtt_requests_total")
    /// Retained requests, which are never honoured.
    public let retainedRequestsIgnored = Counter("mqtt_retained_requests_ignored_total")
    /// Requests whose topics name nothing that can exist.
    public let misnamedRequests = Counter("mqtt_misnamed_requests_total")
}
