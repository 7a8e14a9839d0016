import GattherdMachines

/// The readings of one session on their way to the broker.
struct ReadingsInFlight {
    /// Readings of QoS 1 without a PUBACK, by packet identifier.
    private var unacknowledged: [UInt16: (seqs: [Int64], topic: String)] = [:]
    /// The unsent messages of QoS 0 in order, each by the numbers of its readings; empty for other messages.
    private var unsent: [[Int64]] = []
    /// The highest sequence number among acknowledged readings.
    private(set) var newestAcknowledged: Int64 = 0
    /// The largest number of readings in an answered message.
    private var largestAnswered = 1

    /// The number of messages without a PUBACK.
    var count: Int { unacknowledged.count }

    mutating func add(_ identifier: UInt16, _ seqs: [Int64], on topic: String) {
        unacknowledged[identifier] = (seqs, topic)
    }

    /// Records a message of QoS 0 and the numbers of its readings, which may be none.
    mutating func addUnacknowledged(_ seqs: [Int64]) {
        unsent.append(seqs)
    }

    /// Removes the readings that a PUBACK answers; `nil` if the packet was another message.
    mutating func remove(_ identifier: UInt16) -> (seqs: [Int64], topic: String)? {
        guard let message = unacknowledged.removeValue(forKey: identifier) else { return nil }
        newestAcknowledged = max(newestAcknowledged, message.seqs.last ?? 0)
        largestAnswered = max(largestAnswered, message.seqs.count)
        return message
    }

    /// The number of readings in the oldest unanswered message, if it is larger than all answered ones.
    var unansweredArray: Int? {
        let oldest = unacknowledged.values.min { ($0.seqs.first ?? 0) < ($1.seqs.first ?? 0) }
        return oldest.flatMap { $0.seqs.count > largestAnswered ? $0.seqs.count : nil }
    }

    /// Returns the readings among the first `count` messages of QoS 0, which count as delivered when they are sent.
    mutating func sent(_ count: Int) -> [PublishOutcome] {
        guard count > 0 else { return [] }
        let sent = unsent.prefix(count)
        unsent.removeFirst(sent.count)
        return sent.joined().map { PublishOutcome(seq: $0, .accepted, isConfirmed: false) }
    }
}

/// The packets of one session without an answer from the broker, except readings.
struct PacketsInFlight {
    /// The content of a packet.
    enum Content {
        case state(PublishQueue.State)
        case response(MQTTResponse)
        /// A reading that is published again; the cursor does not wait for it.
        case repeated(RepeatedReading)
        case subscription(PublishQueue.State, filter: String)
        /// An event, a bare value or an UNSUBSCRIBE.
        case other
    }

    struct Packet {
        let content: Content
        /// The topic or the filter; `nil` for UNSUBSCRIBE.
        let topic: String?
        let since: Duration
        fileprivate let number: Int
    }

    private var packets: [UInt16: Packet] = [:]
    /// All packets in the order of sending; answered packets are removed from its front.
    private var order: [(identifier: UInt16, number: Int)] = []
    private var firstOrder = 0
    private var sentCount = 0
    private var newestAnswered = -1

    var count: Int { packets.count }

    mutating func add(_ identifier: UInt16, _ content: Content, on topic: String?, at now: Duration) {
        packets[identifier] = Packet(content: content, topic: topic, since: now, number: sentCount)
        order.append((identifier, sentCount))
        sentCount += 1
    }

    /// Removes an answered packet.
    mutating func remove(_ identifier: UInt16) -> Packet? {
        guard let packet = packets.removeValue(forKey: identifier) else { return nil }
        newestAnswered = max(newestAnswered, packet.number)
        while firstOrder < order.count, !isPending(order[firstOrder]) { firstOrder += 1 }
        if firstOrder == order.count || firstOrder > 256 {
            order.removeFirst(firstOrder)
            firstOrder = 0
        }
        return packet
    }

    /// True if the identifier still belongs to this packet; a later packet may have reused it.
    private func isPending(_ entry: (identifier: UInt16, number: Int)) -> Bool {
        packets[entry.identifier]?.number == entry.number
    }

    func contains(_ identifier: UInt16) -> Bool { packets[identifier] != nil }

    /// The packet that has waited longest.
    var oldest: Packet? { firstOrder < order.count ? packets[order[firstOrder].identifier] : nil }

    /// True if the broker has answered a later packet.
    func isOvertaken(_ packet: Packet) -> Bool { newestAnswered > packet.number }

    /// The repeated readings without an answer.
    var repeatedReadings: [RepeatedReading] {
        packets.values.compactMap { if case .repeated(let item) = $0.content { item } else { nil } }
    }

    /// The responses without an answer, in the order of sending.
    var responses: [MQTTResponse] {
        packets.values.sorted { $0.number < $1.number }.compactMap {
            if case .response(let response) = $0.content { response } else { nil }
        }
    }
}
