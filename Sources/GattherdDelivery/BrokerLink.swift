import GattherdMachines
import GattherdSync

/// The client of the present session, and what is known about its connection.
final class BrokerLink {
    let session: Int
    let client: BrokerClient
    /// Publishes; `nil` on a secured connection, where the library does.
    let lane: PublishLane?
    /// The descriptor that the loop watches; -1 for none.
    var watched: Int32 = -1
    var interest: Readiness = []
    /// Never before the library last wrote, for it pings a keepalive after that and not earlier.
    var lastSent: Duration
    var lastReceived: Duration
    /// The timer that keeps the connection alive.
    var timer: LoopTimer?
    /// Zero turns pings off.
    var keepalive: Duration
    /// Acknowledgements may gather for a moment before they are read.
    var isGathering = false
    var canRetain = true
    var aliases = TopicAliases()
    /// When CONNACK came.
    var connectedAt: Duration?
    var isConnected: Bool { connectedAt != nil }
    var isLeaving = false
    /// Readings that wait for their PUBACK, by packet identifier.
    var readings: [Int32: Int64] = [:]
    /// The other messages that wait for theirs.
    var others: Set<Int32> = []
    /// Those of them that are state.
    var states: [Int32: Outbox.State] = [:]
    /// Subscriptions that wait for their SUBACK.
    var subscriptions: [Int32: String] = [:]
    /// The last `offline`.
    var farewell: Int32?
    /// What was last published of each device.
    var availabilities: [String: Bool] = [:]
    /// Devices that have the name of one that was removed: the readings that the broker still retains are not theirs.
    var successors: Set<String> = []

    init(session: Int, client: BrokerClient, _ settings: DeliverySettings, at now: Duration) {
        self.session = session
        self.client = client
        lane = client.handle.isSecured ? nil : PublishLane(client, settings.version)
        keepalive = .seconds(settings.keepaliveSeconds)
        lastSent = now
        lastReceived = now
    }

    /// Nothing of ours is half written: the library may write.
    var isClear: Bool { lane?.isClear ?? true }

    /// What the socket is to be watched for.
    var wanted: Readiness {
        var wanted: Readiness = lane?.isBlocked == true || isGathering ? [] : .readable
        if client.handle.wantsToWrite || !isClear { wanted.insert(.writable) }
        return wanted
    }

    /// Publishes, at the latest with the next ``flush()``.
    ///
    /// - Returns: What the acknowledgement will be called; with QoS 0 it comes from the library when it is written, and
    ///   on the lane there is none.
    func publish(_ packet: PublishPacket, qos: Int32 = 1) throws(MosquittoError) -> Int32 {
        guard let lane else { return try client.handle.publish(packet, qos: qos) }
        return Int32(try lane.append(packet, qos: qos))
    }

    /// Writes what can be written; gives the readings that are delivered by that.
    func flush(at now: Duration) -> [PublishOutcome] {
        guard let lane else { return [] }
        let (before, done) = (lane.written, lane.flush())
        if lane.written > before { lastSent = now }
        return done.map { PublishOutcome(seq: $0, .accepted) }
    }

    /// Takes what came; the acknowledgements on the lane are given, the rest is told by the library.
    func receive(
        at now: Duration,
        _ acknowledged: (_ identifier: UInt16, _ reason: UInt8) -> Void
    ) throws(MosquittoError) {
        let answered = client.handle.answeredCount
        defer { if client.handle.answeredCount > answered { lastSent = now } }
        guard isConnected, let lane else {
            lastReceived = now
            return try client.handle.read()
        }
        let before = lane.arrivals
        defer { if lane.arrivals > before { lastReceived = now } }
        try lane.receive(acknowledged)
    }

    /// When the library has something to do for the connection's life; it cannot ping while something of ours is half
    /// written, and a broker that takes that is alive.
    var tickDue: Duration? {
        keepalive > .zero ? (isClear ? min(lastSent, lastReceived) : lastSent) + keepalive : nil
    }
}
