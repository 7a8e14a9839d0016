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

    /// The last packet identifier that the library gave.
    var foreignIdentifier: UInt16 = 0
    /// The longest packet that the broker takes.
    var maximumPacket = Int.max
    private let client: BrokerClient
    private let version: DeliverySettings.Version
    private var identifiers = PacketIdentifiers()
    /// What the kernel has not taken.
    private var outbound: [UInt8] = []
    private var inbound = [UInt8](repeating: 0, count: inboundLimit)
    /// The library is in the midst of a message.
    private var isLibraryReading = false
    /// How many octets make the socket readable.
    private var awaited = 1
    /// Octets of all packets so far, and those of them that the kernel has taken.
    private var appended = 0
    private(set) var written = 0
    /// Where readings of QoS 0 end: they count as delivered when they are written.
    private var unacknowledged: [(end: Int, seq: Int64)] = []

    init(_ client: BrokerClient, _ version: DeliverySettings.Version) {
        self.client = client
        self.version = version
    }

    /// True when the library may write.
    var isClear: Bool { outbound.isEmpty }
    /// There is something to read, but not before all is written.
    private(set) var isBlocked = false

    // MARK: - Out

    /// Appends a packet, which goes with the next ``flush()``.
    ///
    /// - Parameters:
    ///   - message: What to publish.
    ///   - qos: 0 or 1.
    ///   - isTaken: Whether an identifier is under way.
    /// - Returns: The packet's identifier; 0 for QoS 0.
    /// - Throws: ``MosquittoError`` when the packet is longer than the broker takes.
    func append(
        _ message: PublishPacket,
        qos: Int32,
        unless isTaken: (UInt16) -> Bool
    ) throws(MosquittoError) -> UInt16 {
        let identifier = qos == 0 ? 0 : identifiers.next(awayFrom: foreignIdentifier, unless: isTaken)
        let start = outbound.count
        message.append(to: &outbound, identifier: identifier, version)
        guard outbound.count - start <= maximumPacket else {
            outbound.removeSubrange(start...)
            throw MosquittoError(MOSQ_ERR_OVERSIZE_PACKET)
        }
        appended += outbound.count - start
        return identifier
    }

    /// What was appended last is the reading `seq`, with QoS 0.
    func noteUnacknowledged(_ seq: Int64) {
        unacknowledged.append((appended, seq))
    }

    /// Writes what the kernel takes, unless the library has to write first; gives the readings of QoS 0 that are written.
    ///
    /// On a connection that has ended everything is let go of.
    func flush() -> [Int64] {
        guard !isClear, !client.handle.wantsToWrite else { return [] }
        guard let count = client.handle.transmit(outbound) else {
            abandon()
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

    /// The connection has ended: nothing can be written any more, but something may be left to read.
    func abandon() {
        outbound.removeAll()
        unacknowledged.removeAll()
    }

    // MARK: - In

    /// Takes what the broker sent: acknowledgements here, each other packet by the library.
    func receive(_ acknowledged: (_ identifier: UInt16, _ reason: UInt8) -> Void) throws(MosquittoError) {
        isBlocked = false
        while client.handle.socket >= 0 {
            switch isLibraryReading ? .message : try takeAcknowledgements(acknowledged) {
            case .nothing: return
            case .more: continue
            case .end: return try client.handle.read()
            case .packet where !isClear, .message where !isClear:
                // The library may have to answer.
                isBlocked = true
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
        var position = 0
        defer { if position > 0 { client.handle.discard(position, using: &inbound) } }
        while position < count {
            let head = PacketHead(inbound.span.extracting(position..<count))
            let available = count - position
            switch head {
            case .acknowledgement(let identifier, let reason, let length):
                acknowledged(identifier, reason)
                position += length
            case .message: return gathered(.message)
            case .other(let length) where length <= available || available == inbound.count: return gathered(.packet)
            case .other(let length): return gather(length)
            case .incomplete:
                guard available < inbound.count else { throw MosquittoError(MOSQ_ERR_PROTOCOL) }
                return gather(available + 1)
            }
        }
        return gathered(count < inbound.count ? .nothing : .more)
    }

    /// The library has read all of it when it tells of the message.
    private func readMessage() throws(MosquittoError) {
        let before = client.handle.messageCount
        try client.handle.read()
        isLibraryReading = client.handle.messageCount == before
    }

    /// Waits for so many octets.
    private func gather(_ count: Int) -> Next {
        if count != awaited { client.handle.awaitOctets(count) }
        awaited = count
        return .nothing
    }

    private func gathered(_ next: Next) -> Next {
        if awaited != 1 { _ = gather(1) }
        return next
    }
}
