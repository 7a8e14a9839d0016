/// An event of an MQTT session.
public enum MQTTEvent: Hashable, Sendable {
    /// CONNACK, with the broker's reason string if it sent one.
    case connected(MQTTReason, text: String?, BrokerLimits)
    /// PUBACK.
    case acknowledged(identifier: UInt16, MQTTReason)
    /// SUBACK.
    case subscribed(identifier: UInt16, MQTTReason)
    /// The broker sent UNSUBACK.
    case unsubscribed(identifier: UInt16)
    case message(BrokerMessage)
    /// The broker sent DISCONNECT.
    case disconnected(MQTTReason, text: String?)
}

/// The client's side of one MQTT session, without any I/O: bytes in, events and bytes out.
///
/// The session starts with CONNECT in ``outbound``. Complete messages of QoS 1 are acknowledged.
public struct MQTTSession: Sendable {
    /// The maximum packet length of MQTT (section 2.1.4).
    private static let longestPacket = 5 + 0xFFF_FFFF
    /// The maximum bytes of acknowledgements that the broker has not read; beyond it, reading from the broker pauses.
    private static let owedLimit = 262_144
    /// The number of sent messages after which ``waiting`` is shortened, so that moving the others costs little.
    private static let sentWaitingLimit = 256

    private enum Phase {
        case awaitingAnswer
        case connected
        case ended
    }

    private let version: MQTTVersion
    private var phase = Phase.awaitingAnswer
    private var decoder: PacketDecoder
    private var identifiers = PacketIdentifiers()
    private var limits = BrokerLimits()
    /// Messages beyond the broker's receive maximum, and the messages of QoS 0 queued after them.
    private var waiting: [(octets: [UInt8], identifier: UInt16)] = []
    /// The index of the first message in ``waiting`` that is not sent.
    private var firstWaiting = 0
    /// The identifiers in ``waiting``.
    private var waitingIdentifiers: Set<UInt16> = []
    /// The ends of the unsent messages of QoS 0 in ``outbound``, in order.
    private var unacknowledgedEnds: [Int] = []
    /// The number of messages of QoS 0 that were sent since the last ``drainSentCount()``.
    private var sentCount = 0
    /// The buffer for a packet's properties.
    private var properties: [UInt8] = []
    /// The bytes that are not sent yet.
    public internal(set) var outbound = OutboundBytes()
    /// The bytes of acknowledgements since ``outbound`` was last empty.
    private var owed = 0
    /// The numbers of PINGREQ packets written and of PINGRESP packets received.
    private(set) var pings = 0
    private(set) var pongs = 0

    /// Creates a session.
    ///
    /// - Throws: ``MQTTRefusal`` if CONNECT cannot be written.
    public init(_ options: MQTTOptions) throws(MQTTRefusal) {
        version = options.version
        decoder = PacketDecoder(options.version)
        outbound.append(try MQTTWriter.connect(options))
    }

    public var isConnected: Bool { phase == .connected }
    /// True while the broker leaves too many acknowledgements unread.
    var isCongested: Bool { owed > Self.owedLimit && !outbound.isEmpty }

    // MARK: - In

    /// Processes the next bytes of the broker.
    ///
    /// - Parameters:
    ///   - octets: Any part of the broker's stream, in order.
    ///   - events: Receives the events; those before a violation are valid.
    /// - Throws: ``MQTTViolation``; in MQTT 5, DISCONNECT with its reason is then the last packet in ``outbound``.
    public mutating func receive(_ octets: ArraySlice<UInt8>, _ events: inout [MQTTEvent]) throws(MQTTViolation) {
        guard phase != .ended else { return }
        if outbound.isEmpty { owed = 0 }
        var decoder = decoder
        self.decoder = PacketDecoder(version)
        do throws(MQTTViolation) {
            try decoder.decode(octets) { packet throws(MQTTViolation) in try process(packet, &events) }
            self.decoder = decoder
        } catch {
            disconnect(error.reason)
            throw error
        }
    }

    private mutating func process(_ packet: InboundPacket, _ events: inout [MQTTEvent]) throws(MQTTViolation) {
        switch (phase, packet) {
        case (.ended, _): break
        case (.awaitingAnswer, .connectAnswer(let reason, let text, let limits)):
            phase = reason == .success ? .connected : .ended
            self.limits = limits
            events.append(.connected(reason, text: text, limits))
        case (.awaitingAnswer, _): throw .protocolError("a packet before CONNACK")
        case (.connected, .connectAnswer): throw .protocolError("a second CONNACK")
        case (.connected, .acknowledgement(let identifier, let reason)):
            guard !waitingIdentifiers.contains(identifier) else {
                throw .protocolError("an acknowledgement of packet \(identifier), which was not sent")
            }
            guard try identifiers.release(identifier, of: .publish) else { return }
            events.append(.acknowledged(identifier: identifier, reason))
            admit()
        case (.connected, .subscribed(let identifier, let reason)):
            guard try identifiers.release(identifier, of: .subscribe) else { return }
            events.append(.subscribed(identifier: identifier, reason))
        case (.connected, .unsubscribed(let identifier)):
            guard try identifiers.release(identifier, of: .unsubscribe) else { return }
            events.append(.unsubscribed(identifier: identifier))
        case (.connected, .message(let message, let identifier)):
            if identifier != 0 { acknowledge(identifier) }
            events.append(.message(message))
        case (.connected, .pong): pongs = min(pongs + 1, pings)
        case (.connected, .disconnect(let reason, let text)):
            phase = .ended
            events.append(.disconnected(reason, text: text))
        }
    }

    private mutating func acknowledge(_ identifier: UInt16) {
        outbound.append([0x40, 2, UInt8(truncatingIfNeeded: identifier >> 8), UInt8(truncatingIfNeeded: identifier)])
        owed += 4
    }

    // MARK: - Out

    /// Appends a message, which is sent when the broker has room for it.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - qos: 0 or 1.
    /// - Returns: The packet identifier to be acknowledged; 0 with QoS 0.
    /// - Throws: ``MQTTRefusal``; nothing was appended then.
    public mutating func publish(_ message: PublishPacket, qos: Int) throws(MQTTRefusal) -> UInt16 {
        guard isConnected else { throw .notConnected }
        try message.check()
        let identifier = qos == 0 ? 0 : try reserve(.publish)
        let start = outbound.bytes.count
        message.append(to: &outbound.bytes, by: &properties, identifier: identifier, version)
        let length = outbound.bytes.count - start
        let limit = min(limits.maximumPacket, Self.longestPacket)
        guard length <= limit else {
            outbound.bytes.removeSubrange(start...)
            if identifier != 0 { _ = try? identifiers.release(identifier, of: .publish) }
            throw .tooLarge(length, limit: limit)
        }
        if hasWaiting || identifier != 0 && identifiers.publishCount > limits.receiveMaximum {
            waiting.append((Array(outbound.bytes[start...]), identifier))
            if identifier != 0 { waitingIdentifiers.insert(identifier) }
            outbound.bytes.removeSubrange(start...)
        } else {
            outbound.count(length)
            if identifier == 0 { unacknowledgedEnds.append(outbound.appended) }
        }
        return identifier
    }

    private var hasWaiting: Bool { firstWaiting < waiting.count }

    /// Removes the first `count` bytes of ``outbound``, which are sent.
    mutating func didSend(_ count: Int) {
        outbound.remove(count)
        guard let first = unacknowledgedEnds.first, first <= outbound.sent else { return }
        let messages = unacknowledgedEnds.prefix { $0 <= outbound.sent }.count
        unacknowledgedEnds.removeFirst(messages)
        sentCount += messages
    }

    /// Returns the number of messages of QoS 0 that were sent since the last call.
    public mutating func drainSentCount() -> Int {
        defer { sentCount = 0 }
        return sentCount
    }

    /// The number of messages of QoS 0 in ``outbound``.
    var unsentCount: Int { unacknowledgedEnds.count }

    /// The number of messages in flight without an acknowledgement.
    private var unacknowledged: Int { identifiers.publishCount - waitingIdentifiers.count }

    /// Sends waiting messages when the broker has room again (MQTT 5, section 4.9).
    private mutating func admit() {
        while hasWaiting, case let (octets, identifier) = waiting[firstWaiting],
            identifier == 0 || unacknowledged < limits.receiveMaximum
        {
            outbound.append(octets)
            waitingIdentifiers.remove(identifier)
            if identifier == 0 { unacknowledgedEnds.append(outbound.appended) }
            waiting[firstWaiting].octets = []
            firstWaiting += 1
        }
        guard firstWaiting > 0, firstWaiting >= Self.sentWaitingLimit || !hasWaiting else { return }
        waiting.removeFirst(firstWaiting)
        firstWaiting = 0
    }

    /// The number of places for waiting messages in memory, also for those that are sent.
    var waitingPlaces: Int { waiting.count }

    /// Subscribes to one filter.
    ///
    /// - Returns: The identifier of the later event ``MQTTEvent/subscribed(identifier:_:)``.
    /// - Throws: ``MQTTRefusal`` if SUBSCRIBE cannot be written.
    public mutating func subscribe(
        to filter: String,
        _ options: SubscriptionOptions
    ) throws(MQTTRefusal) -> UInt16 {
        guard isConnected else { throw .notConnected }
        guard filter.utf8.count <= 65_535 else { throw .tooLong("topic filter") }
        let identifier = try reserve(.subscribe)
        try append(MQTTWriter.subscribe(to: filter, options, identifier: identifier, version), identifier, .subscribe)
        return identifier
    }

    /// Unsubscribes from one filter.
    ///
    /// - Returns: The identifier of the later event ``MQTTEvent/unsubscribed(identifier:)``.
    /// - Throws: ``MQTTRefusal`` if UNSUBSCRIBE cannot be written.
    public mutating func unsubscribe(from filter: String) throws(MQTTRefusal) -> UInt16 {
        guard isConnected else { throw .notConnected }
        guard filter.utf8.count <= 65_535 else { throw .tooLong("topic filter") }
        let identifier = try reserve(.unsubscribe)
        try append(MQTTWriter.unsubscribe(from: filter, identifier: identifier, version), identifier, .unsubscribe)
        return identifier
    }

    /// Appends a packet with a filter, unless the broker would end the session for its size.
    private mutating func append(
        _ octets: [UInt8],
        _ identifier: UInt16,
        _ owner: PacketIdentifiers.Owner
    ) throws(MQTTRefusal) {
        guard octets.count <= limits.maximumPacket else {
            _ = try? identifiers.release(identifier, of: owner)
            throw .tooLarge(octets.count, limit: limits.maximumPacket)
        }
        outbound.append(octets)
    }

    /// Appends PINGREQ.
    mutating func ping() {
        guard isConnected else { return }
        outbound.append([0xC0, 0])
        pings += 1
    }

    /// Appends DISCONNECT; nothing is sent or received after it.
    ///
    /// In MQTT 3.1.1, DISCONNECT has no reason and discards the will. So a failure ends the connection without it.
    public mutating func disconnect(_ reason: MQTTReason = .success) {
        if phase == .connected, version == .v5 || !reason.isFailure {
            outbound.append(MQTTWriter.disconnect(reason, version))
        }
        phase = .ended
        waiting.removeAll()
        waitingIdentifiers.removeAll()
        firstWaiting = 0
    }

    private mutating func reserve(_ owner: PacketIdentifiers.Owner) throws(MQTTRefusal) -> UInt16 {
        guard let identifier = identifiers.reserve(owner) else { throw .noIdentifier }
        return identifier
    }
}
