import GattherdMQTT
import GattherdMachines
import GattherdSync

/// The connection of the current MQTT session and its state.
final class BrokerLink {
    /// The purpose of a subscription; MQTT 3.1.1 makes no difference between them.
    enum Interest {
        /// Requests: messages keep the retain flag they were published with.
        case requests
        /// New messages only: the broker sends no retained ones.
        case news
        /// Retained messages of earlier runs; our own messages are excluded.
        case leftovers

        /// The subscription options.
        ///
        /// Leftovers use QoS 0. With QoS 1 a broker queues few messages and drops the rest.
        fileprivate var options: SubscriptionOptions {
            switch self {
            case .requests: SubscriptionOptions(excludesOwn: true, keepsRetainFlag: true)
            case .news: SubscriptionOptions(excludesRetained: true)
            case .leftovers: SubscriptionOptions(qos: 0, excludesOwn: true)
            }
        }
    }

    let session: Int
    let connection: MQTTConnection
    /// The number of QoS 1 messages that the broker accepts unacknowledged.
    var receiveMaximum = 1
    /// The readiness that the loop watches for; `nil` before it watches.
    var watched: DescriptorEvents?
    /// The timer that keeps the connection alive.
    var timer: LoopTimer?
    /// True while acknowledgements accumulate before they are read.
    var isGathering = false
    var canRetain = true
    var aliases = TopicAliases()
    /// The time at which CONNACK arrived.
    var connectedAt: Duration?
    var isConnected: Bool { connectedAt != nil }
    var isLeaving = false
    /// Readings without a PUBACK, by packet identifier.
    var readings: [UInt16: (seq: Int64, topic: String)] = [:]
    /// The highest sequence number among acknowledged readings.
    var newestAcknowledged: Int64 = 0
    /// Messages of QoS 0, in order: the reading's sequence number, or `nil` for another message.
    ///
    /// Readings count as delivered when they are sent.
    private var unacknowledged: [Int64?] = []
    /// All other packets without an answer.
    var others = PacketsInFlight()
    /// True while a timer bounds the age of ``others``.
    var isAnswerTimerArmed = false
    /// The packet identifier of the final `offline`.
    var farewell: UInt16?
    /// The last published availability of each device.
    var availabilities: [String: Bool] = [:]
    /// Devices that reuse a removed device's name; readings that the broker still retains belong to the old one.
    var successors: Set<String> = []

    init(session: Int, _ connection: MQTTConnection) {
        self.session = session
        self.connection = connection
    }

    /// The readiness that the socket is to be watched for now.
    var interest: DescriptorEvents {
        isGathering ? connection.interest.subtracting(.readable) : connection.interest
    }

    /// Subscribes to a filter, at the latest with the next ``flush(at:)``.
    ///
    /// - Returns: The packet identifier.
    func subscribe(to filter: String, _ interest: Interest, at now: Duration) throws(MQTTRefusal) -> UInt16 {
        let identifier = try connection.subscribe(to: filter, interest.options)
        others.add(identifier, .subscription(filter: filter), on: filter, at: now)
        return identifier
    }

    /// Ends the subscription to a filter.
    func unsubscribe(from filter: String, at now: Duration) throws(MQTTRefusal) {
        others.add(try connection.unsubscribe(from: filter), .other, on: nil, at: now)
    }

    /// Records that the last appended message has QoS 0: the reading `seq`, or another message.
    func recordUnacknowledged(_ seq: Int64?) {
        unacknowledged.append(seq)
    }

    /// Sends as much as possible and returns the readings delivered by it.
    func flush(at now: Duration) throws(MQTTConnectionError) -> [PublishOutcome] {
        try connection.flush(at: now)
        let count = connection.takeSentCount()
        guard count > 0 else { return [] }
        let done = unacknowledged.prefix(count)
        unacknowledged.removeFirst(done.count)
        return done.compactMap { $0 }.map { PublishOutcome(seq: $0, .accepted) }
    }
}
