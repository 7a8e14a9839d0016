import CMosquitto

/// What is published without libmosquitto, which makes five system calls for each message: packets are written, many at
/// once, to the library's own socket, and their acknowledgements are read from it, many at once.
///
/// The library has the rest: session, subscriptions, pings and what comes in. Packets of the two never mix: each side
/// writes only when nothing of the other is left unwritten, and the library reads whole packets, one at a time. It
/// would read more, and swallow what is ours, if it waited for acknowledgements itself.
final class PublishLane {
    /// How much is looked at together.
    private static let inboundLimit = 16_384
    /// How much memory is kept for what is written.
    private static let keptLimit = 1 << 18
    /// The other side may send without end.
    private static let readsPerTurn = 64
    /// MQTT knows no longer ones: section 2.1.4.
    private static let longestPacket = 5 + 0xFFF_FFFF

    /// The last packet identifier that the library gave.
    var foreignIdentifier: UInt16 = 0
    private let client: BrokerClient
    private let version: DeliverySettings.Version
    private var limits = BrokerLimits()
    private var identifiers = PacketIdentifiers()
    /// Messages of QoS 1 beyond those that the broker takes at once.
    private var waiting: [[UInt8]] = []
    /// A packet's properties, while it is made.
    private var properties: [UInt8] = []
    /// What the kernel has not taken.
    private var outbound: [UInt8] = []
    /// Octets of all packets so far, and those of them that the kernel has taken.
    private var appended = 0
    private(set) var written = 0
    /// Where readings of QoS 0 end: they count as delivered when they are written.
    private var unacknowledged: [(end: Int, seq: Int64)] = []
    private var hasEnded = false

    private var inbound = [UInt8](repeating: 0, count: inboundLimit)
    /// How often something was read.
    private(set) var arrivals = 0
    /// How many octets make the socket readable.
    private var awaited = 1
    /// The library is in the midst of a message.
    private var isLibraryReading = false
    /// The library is to read, which it cannot before all is written.
    private var isLibraryDue = false

    init(_ client: BrokerClient, _ version: DeliverySettings.Version) {
        self.client = client
        self.version = version
    }

    /// Goes on by what the broker said in CONNACK.
    func adopt(_ limits: BrokerLimits) {
        self.limits = limits
    }

    /// True when the library may write.
    var isClear: Bool { outbound.isEmpty }
    /// What there is to read cannot be read yet.
    var isBlocked: Bool { isLibraryDue && !isClear }

    // MARK: - Out

    /// Appends a packet, which goes with the next ``flush()`` for which the broker has room.
    ///
    /// - Parameters:
    ///   - message: What to publish.
    ///   - qos: 0 or 1.
    /// - Returns: The packet's identifier; 0 for QoS 0.
    /// - Throws: ``MosquittoError`` when the packet is longer than the broker takes.
    func append(_ message: PublishPacket, qos: Int32) throws(MosquittoError) -> UInt16 {
        let identifier = qos == 0 ? 0 : identifiers.take(awayFrom: foreignIdentifier)
        let start = outbound.count
        message.append(to: &outbound, by: &properties, identifier: identifier, version)
        let length = outbound.count - start
        guard length <= min(limits.maximumPacket, Self.longestPacket) else {
            outbound.removeSubrange(start...)
            _ = identifiers.release(identifier)
            throw MosquittoError(MOSQ_ERR_OVERSIZE_PACKET)
        }
        if identifier != 0, !waiting.isEmpty || identifiers.count > limits.receiveMaximum {
            waiting.append(Array(outbound[start...]))
            outbound.removeSubrange(start...)
        } else {
            appended += length
        }
        return identifier
    }

    /// What was appended last is the reading `seq`, with QoS 0.
    func noteUnacknowledged(_ seq: Int64) {
        unacknowledged.append((appended, seq))
    }

    /// Writes what the kernel takes, unless the library has to write first; gives the readings of QoS 0 that are written.
    func flush() -> [Int64] {
        admit()
        guard !isClear, !client.handle.wantsToWrite else { return [] }
        guard !hasEnded, let count = client.handle.transmit(outbound) else {
            end()
            return []
        }
        written += count
        if count == outbound.count {
            outbound.removeAll(keepingCapacity: outbound.capacity <= Self.keptLimit)
        } else {
            outbound.removeSubrange(..<count)
        }
        let done = unacknowledged.prefix { $0.end <= written }
        unacknowledged.removeFirst(done.count)
        return done.map(\.seq)
    }

    /// The broker has room again: section 4.9 of MQTT 5.0.
    private func admit() {
        while let packet = waiting.first, identifiers.count - waiting.count < limits.receiveMaximum {
            outbound += packet
            appended += packet.count
            waiting.removeFirst()
        }
    }

    /// The connection has ended: nothing is written any more, but something may be left to read.
    func end() {
        hasEnded = true
        outbound.removeAll()
        waiting.removeAll()
        unacknowledged.removeAll()
    }

    // MARK: - In

    /// Takes what the broker sent: acknowledgements here, each other packet by the library.
    ///
    /// - Throws: ``MosquittoError`` when the connection has ended, or has to.
    func receive(_ acknowledged: (_ identifier: UInt16, _ reason: UInt8) -> Void) throws(MosquittoError) {
        isLibraryDue = false
        for _ in 0..<Self.readsPerTurn {
            guard client.handle.socket >= 0 else { return }
            switch isLibraryReading ? .message : try takeAcknowledgements(acknowledged) {
            case .nothing:
                // What is incomplete then will remain so.
                if hasEnded { throw MosquittoError(MOSQ_ERR_CONN_LOST) }
                return
            case .more: continue
            case .end:
                try client.handle.read()
                throw MosquittoError(MOSQ_ERR_CONN_LOST)
            case .packet where !isClear, .message where !isClear:
                // It may have to answer.
                isLibraryDue = true
                return
            case .packet: try client.handle.read()
            case .message:
                try readMessage()
                if isLibraryReading { return }
            }
        }
    }

    private enum Next {
        /// Nothing is to be done before more comes.
        case nothing
        case more
        /// The connection has ended; the library finds out why.
        case end
        /// The library should read one.
        case packet
        /// The library should read one that need not be here as a whole.
        case message
    }

    private func takeAcknowledgements(_ acknowledged: (UInt16, UInt8) -> Void) throws(MosquittoError) -> Next {
        guard let count = client.handle.peek(into: &inbound) else { return .nothing }
        guard count > 0 else { return .end }
        arrivals += 1
        var position = 0
        defer { if position > 0 { client.handle.discard(position, using: &inbound) } }
        while position < count {
            switch PacketHead(inbound.span.extracting(position..<count)) {
            case .acknowledgement(let identifier, let reason, let length):
                position += length
                if identifiers.release(identifier) { acknowledged(identifier, reason) }
            case .message: return awaiting(1, then: .message)
            case .other: return awaiting(1, then: .packet)
            case .incomplete(let needed) where needed <= inbound.count: return awaiting(needed, then: .nothing)
            case .incomplete: throw MosquittoError(MOSQ_ERR_PAYLOAD_SIZE)
            case .malformed: throw MosquittoError(MOSQ_ERR_MALFORMED_PACKET)
            }
        }
        return awaiting(1, then: count < inbound.count ? .nothing : .more)
    }

    /// The library has read all of it when it tells of the message.
    private func readMessage() throws(MosquittoError) {
        let before = client.handle.messageCount
        arrivals += 1
        try client.handle.read()
        isLibraryReading = client.handle.messageCount == before
    }

    /// From now on so many octets make the socket readable.
    private func awaiting(_ count: Int, then next: Next) -> Next {
        if count != awaited { client.handle.awaitOctets(count) }
        awaited = count
        return next
    }
}
