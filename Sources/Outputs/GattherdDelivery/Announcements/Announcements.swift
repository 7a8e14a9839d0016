import GattherdMQTT
import GattherdMachines
import GattherdModel

/// The retained messages and subscriptions of the gateway: which are due, and their packets.
///
/// A change queues the states that it affects. The packets of a state are encoded when it is dequeued.
struct Announcements {
    /// A packet of a state.
    enum Packet {
        case retained(topic: String, payload: [UInt8], isJSON: Bool)
        case subscription(filter: String, SubscriptionOptions)
        case unsubscription(filter: String)

        /// The topic or filter, which the broker may refuse; `nil` if it cannot.
        var topic: String? {
            switch self {
            case .retained(let topic, _, _), .subscription(let topic, _): topic
            case .unsubscription: nil
            }
        }

        /// The filter of a subscription with wildcards.
        var wildcardFilter: String? {
            guard case .subscription(let filter, _) = self else { return nil }
            return filter.utf8.contains { "+#".utf8.contains($0) } ? filter : nil
        }
    }

    /// The limit for states that other clients cause again: a few at once, so that normal starts are answered
    /// immediately, and then so few that a loop of two clients costs little.
    private static let repetitionLimit = RequestLimit(burst: 3, interval: .seconds(10))

    private let topics: Topics
    private let home: HomeAssistant
    private let isDiscoverable: Bool
    /// True if the broker sends no availability back to its publisher.
    private let hearsOnlyOthers: Bool
    private let logger: DeliveryLogger
    private var info: [UInt8]?
    private var health: [UInt8]?
    private var alerts: [UInt8]?
    private var current: CurrentDevices
    private var former: FormerDevices
    private var formerBases: [FormerBase]
    /// True from the final `offline` of a session on.
    private(set) var isLeaving = false
    private var canRetain = true
    /// The limit for publishing `online` again after another client has overwritten it.
    private var repetitions = Self.repetitionLimit
    /// The limit for publishing discovery payloads again after Home Assistant starts.
    private var births = Self.repetitionLimit

    init(_ context: DeliveryContext) {
        topics = context.topics
        home = context.home
        isDiscoverable = context.settings.homeAssistant.isDiscoverable
        hearsOnlyOthers = context.settings.version == .v5
        logger = context.logger
        current = CurrentDevices(context)
        formerBases = context.settings.formerBases.map { FormerBase($0, context.home) }
        former = FormerDevices(
            topics,
            home,
            isDiscoverable: isDiscoverable,
            hasDescriptions: context.settings.publishesDescriptions,
            hasLeases: context.settings.hasLeases
        )
    }

    /// Applies changes and queues the states that they concern.
    ///
    /// - Returns: The removed devices.
    mutating func apply(_ changes: DeliveryChanges, _ queue: inout PublishQueue) -> [String] {
        if let json = changes.info {
            info = json
            queue.append(.info)
        }
        if let raised = changes.alerts {
            alerts = JSONWriter.bytes { $0.alerts(raised) }
            queue.append(.alerts)
        }
        if let json = changes.health {
            health = json
            queue.append(.health)
        }
        if let addresses = changes.enrolled { former.enrol(addresses, &queue) }
        for (device, change) in changes.devices {
            if change.isRemoved { remove(device, &queue) }
            if let status = change.status {
                former.recordStatus(of: device, &queue)
                current.update(status, &queue)
            }
        }
        for description in changes.descriptions.values { current.describe(description, &queue) }
        for lease in changes.leases.values { current.update(lease, &queue) }
        return changes.devices.filter(\.value.isRemoved).map(\.key)
    }

    /// Queues all retained states, then the subscriptions, then `online`.
    ///
    /// - Parameters:
    ///   - canRetain: False if the broker keeps no retained messages.
    ///   - queue: The queue.
    mutating func startSession(canRetain: Bool = true, _ queue: inout PublishQueue) {
        isLeaving = false
        self.canRetain = canRetain
        repetitions.fulfil()
        births.fulfil()
        queueStates(&queue)
        former.startSession(&queue)
        for index in formerBases.indices { formerBases[index].startSession(&queue) }
        if isDiscoverable { queue.append(.subscribeToBirth) }
        if isDiscoverable, home.defaultStatus != nil { queue.append(.subscribeToDefaultBirth) }
        queue.append(.subscribeToRequests)
        queue.append(.subscribeToState)
        queue.append(.online)
    }

    private mutating func queueStates(_ queue: inout PublishQueue) {
        queue.append(.info)
        queue.append(.health)
        queue.append(.alerts)
        current.startSession(&queue)
    }

    /// Queues the messages that Home Assistant needs after its start, including the states if they are not retained.
    private mutating func announceToHomeAssistant(_ queue: inout PublishQueue) {
        guard !canRetain else { return current.queueDiscovery(&queue) }
        queueStates(&queue)
        queue.append(.online)
    }

    /// Queues `offline` for all devices and for the gateway.
    mutating func goOffline(_ queue: inout PublishQueue) {
        isLeaving = true
        current.queueAvailabilities(&queue)
        queue.append(.unsubscribeFromState)
        queue.append(.offline)
    }

    func queueDescriptions(_ queue: inout PublishQueue) {
        current.queueDescriptions(&queue)
    }

    /// The time at which ``repeatStates(_:at:)`` must be called; `nil` while nothing is to be repeated.
    var repetitionTime: Duration? {
        isLeaving ? nil : [repetitions.deadline, births.deadline].compactMap(\.self).min()
    }

    /// Queues the states that are to be published again and may be now.
    mutating func repeatStates(_ queue: inout PublishQueue, at now: Duration) {
        guard !isLeaving else { return }
        if births.claim(at: now) { announceToHomeAssistant(&queue) }
        if repetitions.claim(at: now) { queue.append(.online) }
    }

    /// Handles a message other than a request: Home Assistant's birth, the gateway's own state, or a retained message.
    ///
    /// A broker that notices a lost connection late publishes its will late, after the `online` of the next session.
    ///
    /// - Returns: A device that was removed, because it is not enrolled.
    mutating func receive(_ message: BrokerMessage, _ queue: inout PublishQueue) -> String? {
        if message.topic == home.status || message.topic == home.defaultStatus {
            let isBirth = !message.isRetained && message.payload == Array("online".utf8)
            if isBirth, isDiscoverable { births.request() }
            return nil
        }
        if message.topic == topics.state {
            if !message.isRetained, message.payload != Array("online".utf8) { repetitions.request() }
            return nil
        }
        if hearsOnlyOthers, !message.isRetained, message.length > 0, topics.isAvailability(message.topic) {
            logger.otherGateway(message.topic)
        }
        if let index = formerBases.firstIndex(where: { $0.owns(message) }) {
            formerBases[index].receive(message, &queue)
            return nil
        }
        guard let device = former.receive(message, &queue) else { return nil }
        remove(device, &queue)
        return device
    }

    /// Records the broker's answer to a subscription.
    mutating func answered(_ state: PublishQueue.State, isRefused: Bool) {
        switch state {
        case .subscribeToRemoved(let device): former.answered(device)
        case .search(let filter):
            for index in formerBases.indices { formerBases[index].answered(filter, isRefused: isRefused) }
        default: break
        }
    }

    /// True while retained messages of removed devices or below a former base topic are searched.
    var isSearching: Bool { !formerBases.isEmpty || former.isSearching }

    /// Continues the removals; returns the former base topics that need no further attention.
    mutating func finishRemovals(_ queue: inout PublishQueue) -> [String] {
        former.finish(&queue)
        let done = formerBases.indices.filter { formerBases[$0].finish(&queue) }.map { formerBases[$0].base }
        formerBases.removeAll { done.contains($0.base) }
        return done
    }

    /// Records the facts that a device reports about itself in a reading.
    mutating func record(_ reading: JournalReading, _ queue: inout PublishQueue) {
        current.record(reading, &queue)
    }

    private mutating func remove(_ device: String, _ queue: inout PublishQueue) {
        current.remove(device, &queue)
        former.remove(device, &queue)
    }

    /// Queues a state again that the broker refused for now.
    mutating func repeatState(_ state: PublishQueue.State, _ queue: inout PublishQueue) {
        switch state {
        case .availability(let device): current.availabilityRefused(of: device)
        case .clear(let topic): if let device = topics.device(topic), current.contains(device) { return }
        default: break
        }
        queue.append(state)
    }
}

/// Encodes states as packets.
extension Announcements {
    /// The topics and filters of a state's packets.
    func topics(of state: PublishQueue.State) -> [String] {
        switch state {
        case .info: [topics.info]
        case .health: [topics.health]
        case .alerts: [topics.alerts]
        case .gatewayDiscovery: [home.gatewayTopic]
        case .connection(let device): [topics.connection(device)]
        case .availability(let device): [topics.availability(device)]
        case .lease(let device): [topics.lease(device)]
        case .description(let device): [topics.description(device)]
        case .discovery(let device): current.discoveryTopic(of: device).map { [$0] } ?? []
        case .subscribeToRequests: [topics.sets, topics.requests]
        case .subscribeToBirth: [home.status]
        case .subscribeToDefaultBirth: home.defaultStatus.map { [$0] } ?? []
        case .subscribeToState: [topics.stateFilter]
        case .subscribeToRetained: [topics.availabilities, topics.descriptions, topics.leases, home.all]
        case .subscribeToRemoved(let device): [topics.all(of: device)]
        case .search(let filter): [filter]
        case .unsubscribeFromRemoved, .unsubscribeFromState, .endSearch: []
        case .clear(let topic): [topic]
        case .online, .offline: [topics.state]
        }
    }

    /// Returns the packets of a state: its newest value, or none if it has no value any more.
    mutating func packets(of state: PublishQueue.State) -> [Packet] {
        switch state {
        case .info, .health, .alerts, .connection, .availability, .lease, .description, .gatewayDiscovery, .discovery,
            .online, .offline, .clear:
            return retained(state).map { [$0] } ?? []
        case .subscribeToRequests: return subscriptions(state, .requests)
        case .subscribeToBirth, .subscribeToDefaultBirth: return subscriptions(state, .newMessages)
        case .subscribeToState: return subscriptions(state, .ownState)
        case .subscribeToRetained, .subscribeToRemoved, .search: return subscriptions(state, .retainedMessages)
        case .unsubscribeFromState: return [.unsubscription(filter: topics.stateFilter)]
        case .endSearch(let filter): return [.unsubscription(filter: filter)]
        case .unsubscribeFromRemoved(let device): return [.unsubscription(filter: topics.all(of: device))]
        }
    }

    private mutating func retained(_ state: PublishQueue.State) -> Packet? {
        guard let topic = topics(of: state).first, let payload = payload(of: state) else { return nil }
        switch state {
        case .info, .health, .alerts, .connection, .lease, .description, .gatewayDiscovery, .discovery:
            return .retained(topic: topic, payload: payload, isJSON: true)
        default: return .retained(topic: topic, payload: payload, isJSON: false)
        }
    }

    private mutating func payload(of state: PublishQueue.State) -> [UInt8]? {
        switch state {
        case .info: info
        case .health: health
        case .alerts: alerts
        case .gatewayDiscovery: home.gatewayPayload()
        case .connection(let device): current.connection(of: device)
        case .availability(let device): current.availability(of: device, isLeaving: isLeaving)
        case .lease(let device): current.lease(of: device)
        case .description(let device): current.description(of: device)
        case .discovery(let device): current.discovery(of: device)
        case .online: Array("online".utf8)
        case .offline: Array("offline".utf8)
        case .clear(let topic): current.uses(topic) || former.isAwaited(topic) || isGateway(topic) ? nil : []
        default: nil
        }
    }

    /// True if the gateway's own discovery payload is on the topic.
    private func isGateway(_ topic: String) -> Bool { isDiscoverable && topic == home.gatewayTopic }

    private func subscriptions(_ state: PublishQueue.State, _ options: SubscriptionOptions) -> [Packet] {
        topics(of: state).map { .subscription(filter: $0, options) }
    }
}

extension JSONWriter {
    /// Writes the payload of `bridge/alerts`.
    fileprivate mutating func alerts(_ raised: [ActiveAlert]) {
        beginObject()
        key("alerts")
        list(raised) { writer, alert in
            writer.object([
                ("alert", .text(alert.alert)), ("device", .text(alert.device)),
                ("address", .text(alert.address)), ("since", .text(alert.since)), ("detail", .text(alert.detail)),
            ])
        }
        endObject()
    }
}

extension SubscriptionOptions {
    /// Requests: messages keep the retain flag they were published with.
    fileprivate static let requests = SubscriptionOptions(excludesOwn: true, keepsRetainFlag: true)
    /// New messages only: the broker sends no retained ones.
    fileprivate static let newMessages = SubscriptionOptions(excludesRetained: true)
    /// The gateway's own state: the retained one, and the last will of an earlier connection.
    ///
    /// The last will is the gateway's own message, because the client id is the same.
    fileprivate static let ownState = SubscriptionOptions()
    /// Retained messages of earlier runs, with QoS 0: with QoS 1 a broker queues few messages and drops the rest.
    fileprivate static let retainedMessages = SubscriptionOptions(qos: 0, excludesOwn: true)
}
