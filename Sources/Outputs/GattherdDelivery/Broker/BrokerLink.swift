import GattherdMQTT
import GattherdMachines
import GattherdSync

/// The connection of the present session, and what is known about it.
final class BrokerLink {
    /// The purpose of a subscription; MQTT 3.1.1 does not tell them apart.
    enum Interest {
        /// Messages keep the retain flag that they were published with.
        case requests
        /// Messages that are retained already do not come.
        case news
        /// Messages that are retained come; ours do not.
        case leftovers

        /// Leftovers can be many: with QoS 1 a broker queues few of them and drops the rest.
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
    /// Messages of QoS 1 that the broker takes at once.
    var receiveMaximum = 1
    /// The readiness that the loop watches for; `nil` before it watches.
    var watched: DescriptorEvents?
    /// The timer that keeps the connection alive.
    var timer: LoopTimer?
    /// Acknowledgements may gather for a moment before they are read.
    var isGathering = false
    var canRetain = true
    var aliases = TopicAliases()
    /// When CONNACK came.
    var connectedAt: Duration?
    var isConnected: Bool { connectedAt != nil }
    var isLeaving = false
    /// Readings that wait for their PUBACK, by packet identifier.
    var readings: [UInt16: (seq: Int64, topic: String)] = [:]
    /// The highest number of a reading that the broker acknowledged.
    var newestAcknowledged: Int64 = 0
    /// Messages of QoS 0, in order: the number of a reading, or `nil`.
    ///
    /// Readings count as delivered when they are sent.
    private var unacknowledged: [Int64?] = []
    /// All other packets that wait for their answer.
    var others = PacketsInFlight()
    /// True while a timer bounds the age of ``others``.
    var isAnswerTimerArmed = false
    /// The last `offline`.
    var farewell: UInt16?
    /// The availability that was last published of each device.
    var availabilities: [String: Bool] = [:]
    /// Devices that have the name of one that was removed: the readings that the broker still retains are not theirs.
    var successors: Set<String> = []

    init(session: Int, _ connection: MQTTConnection) {
        self.session = session
        self.connection = connection
    }

    /// The readiness for which the socket is to be watched now.
    var interest: DescriptorEvents {
        isGathering ? connection.interest.subtracting(.readable) : connection.interest
    }

    /// Subscribes to a filter, at the latest with the next ``flush(at:)``.
    ///
    /// - Returns: The packet's identifier.
    func subscribe(to filter: String, _ interest: Interest, at now: Duration) throws(MQTTRefusal) -> UInt16 {
        let identifier = try connection.subscribe(to: filter, interest.options)
        others.add(identifier, .subscription(filter: filter), on: filter, at: now)
        return identifier
    }

    /// Ends the subscription to a filter.
    func unsubscribe(from filter: String, at now: Duration) throws(MQTTRefusal) {
        others.add(try connection.unsubscribe(from: filter), .other, on: nil, at: now)
    }

    /// Records that a message of QoS 0 was appended last: the reading `seq`, or another message.
    func recordUnacknowledged(_ seq: Int64?) {
        unacknowledged.append(seq)
    }

    /// Sends what can be sent and returns the readings that are delivered by that.
    func flush(at now: Duration) throws(MQTTConnectionError) -> [PublishOutcome] {
        try connection.flush(at: now)
        let count = connection.takeSentCount()
        guard count > 0 else { return [] }
        let done = unacknowledged.prefix(count)
        unacknowledged.removeFirst(done.count)
        return done.compactMap { $0 }.map { PublishOutcome(seq: $0, .accepted) }
    }
}
