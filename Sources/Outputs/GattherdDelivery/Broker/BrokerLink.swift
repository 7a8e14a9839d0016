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
            case .requests: SubscriptionOptions(keepsRetainFlag: true)
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
    var readings: [UInt16: Int64] = [:]
    /// Readings of QoS 0 and where they end: they count as delivered when they are sent.
    private var unacknowledged: [(end: Int, seq: Int64)] = []
    /// The other messages that wait for their PUBACK.
    var others: Set<UInt16> = []
    /// Those of them that are state.
    var states: [UInt16: PublishQueue.State] = [:]
    /// Subscriptions that wait for their SUBACK.
    var subscriptions: [UInt16: String] = [:]
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
    func subscribe(to filter: String, _ interest: Interest) throws(MQTTRefusal) -> UInt16 {
        let identifier = try connection.subscribe(to: filter, interest.options)
        subscriptions[identifier] = filter
        return identifier
    }

    /// Notes that the reading `seq` was appended last, with QoS 0.
    func noteUnacknowledged(_ seq: Int64) {
        unacknowledged.append((connection.appended, seq))
    }

    /// Sends what can be sent and returns the readings that are delivered by that.
    func flush(at now: Duration) throws(MQTTConnectionError) -> [PublishOutcome] {
        try connection.flush(at: now)
        guard let first = unacknowledged.first, first.end <= connection.sent else { return [] }
        let done = unacknowledged.prefix { $0.end <= connection.sent }
        unacknowledged.removeFirst(done.count)
        return done.map { PublishOutcome(seq: $0.seq, .accepted) }
    }
}
