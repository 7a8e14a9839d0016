import GattherdSync

/// The client of the present session, and what is known about its connection.
final class BrokerLink {
    let session: Int
    let client: BrokerClient
    /// The descriptor that the loop watches; -1 for none.
    var watched: Int32 = -1
    var interest: Readiness = []
    var lastSent: Duration
    var lastReceived: Duration
    /// The timer that keeps the connection alive.
    var timer: LoopTimer?
    /// Zero turns pings off.
    var keepalive: Duration
    var canRetain = true
    var aliases = TopicAliases()
    /// True from CONNACK on.
    var isConnected = false
    var isLeaving = false
    /// Readings that wait for their PUBACK, by packet identifier.
    var readings: [Int32: Int64] = [:]
    /// The other messages that wait for theirs.
    var others: Set<Int32> = []
    /// Subscriptions that wait for their SUBACK.
    var subscriptions: [Int32: String] = [:]
    /// The last `offline`.
    var farewell: Int32?
    /// What was last published of each device.
    var availabilities: [String: Bool] = [:]

    init(session: Int, client: BrokerClient, keepalive: Duration, at now: Duration) {
        self.session = session
        self.client = client
        self.keepalive = keepalive
        lastSent = now
        lastReceived = now
    }

    /// When the library has something to do for the connection's life.
    var tickDue: Duration? {
        keepalive > .zero ? min(lastSent, lastReceived) + keepalive : nil
    }
}
