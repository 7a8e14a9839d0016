/// The limits that a broker stated in CONNACK; MQTT 3.1.1 states none.
public struct BrokerLimits: Hashable, Sendable {
    /// The maximum number of unacknowledged messages of QoS 1.
    public var receiveMaximum = 65_535
    /// The broker's keepalive in seconds, if it differs from ours.
    public var keepalive: UInt16?
    public var canRetain = true
    /// True if the broker accepts filters with wildcards.
    public var takesWildcards = true
    /// True if the broker accepts QoS 1.
    public var takesQoS1 = true
    /// The highest topic alias that the broker accepts.
    public var topicAliases = 0
    /// The maximum packet size, in octets.
    public var maximumPacket = Int.max

    public init() {}

    init(_ properties: InboundProperties) {
        receiveMaximum = properties.receiveMaximum.map { Int($0) } ?? receiveMaximum
        keepalive = properties.serverKeepalive
        canRetain = properties.canRetain != 0
        takesWildcards = properties.takesWildcards != 0
        takesQoS1 = properties.maximumQoS != 0
        topicAliases = properties.topicAliasMaximum.map { Int($0) } ?? 0
        maximumPacket = properties.maximumPacket.map { Int($0) } ?? maximumPacket
    }
}

/// A received message.
public struct BrokerMessage: Hashable, Sendable {
    /// The topic; empty if it is not UTF-8, has a wildcard or a NUL, or if the properties are too long.
    public var topic: String
    /// The first ``maximum`` + 1 octets of the payload.
    public var payload: [UInt8]
    /// The payload's full length, also if ``payload`` is cut off.
    public var length: Int
    public var isRetained: Bool
    /// The topic that the publisher wants the response on: any text, also an empty one or one with wildcards.
    public var responseTopic: String?
    public var correlation: [UInt8]?

    /// The maximum payload length that is kept.
    public static let maximum = 4096

    public init(
        topic: String,
        payload: [UInt8],
        length: Int,
        isRetained: Bool,
        responseTopic: String? = nil,
        correlation: [UInt8]? = nil
    ) {
        self.topic = topic
        self.payload = payload
        self.length = length
        self.isRetained = isRetained
        self.responseTopic = responseTopic
        self.correlation = correlation
    }
}

/// A complete and well-formed packet from a broker.
enum InboundPacket: Hashable {
    case connectAnswer(MQTTReason, text: String?, BrokerLimits)
    /// PUBACK.
    case acknowledgement(identifier: UInt16, MQTTReason)
    /// SUBACK for one filter.
    case subscribed(identifier: UInt16, MQTTReason)
    /// The broker sent UNSUBACK.
    case unsubscribed(identifier: UInt16)
    /// PUBLISH; the identifier is 0 with QoS 0.
    case message(BrokerMessage, identifier: UInt16)
    /// PINGRESP.
    case pong
    case disconnect(MQTTReason, text: String?)
}

extension InboundPacket {
    /// The packet's name by its first byte; throws if a broker may not send it with these flags.
    static func name(_ first: UInt8, _ version: MQTTVersion) throws(MQTTViolation) -> StaticString {
        let name: StaticString
        switch first >> 4 {
        case 2: name = "CONNACK"
        case 3: return try checkedMessage(first)
        case 4: name = "PUBACK"
        case 9: name = "SUBACK"
        case 11: name = "UNSUBACK"
        case 13: name = "PINGRESP"
        case 14 where version == .v5: name = "DISCONNECT"
        case 0: throw .malformed("a packet of type 0")
        case let type: throw .protocolError("a packet of type \(type), which a broker never sends us")
        }
        guard first & 0x0F == 0 else { throw .malformed("\(name) with reserved flags") }
        return name
    }

    /// Checks the flags of PUBLISH.
    ///
    /// Some brokers forward the publisher's mark of a message that is sent again, also with QoS 0.
    private static func checkedMessage(_ first: UInt8) throws(MQTTViolation) -> StaticString {
        switch first & 0x0E {
        case 0x00, 0x02, 0x08, 0x0A: return "PUBLISH"
        case 0x04, 0x0C: throw .protocolError("PUBLISH of QoS 2, although we subscribe with QoS 0 or 1")
        default: throw .malformed("PUBLISH of QoS 3")
        }
    }

    /// Reads the complete body of a packet other than PUBLISH.
    init(_ first: UInt8, _ reader: consuming PacketReader, _ version: MQTTVersion) throws(MQTTViolation) {
        switch first >> 4 {
        case 2: self = try Self.connectAnswer(&reader, version)
        case 4: self = try Self.acknowledgement(&reader, version)
        case 9: self = try Self.subscribed(&reader, version)
        case 11: self = try Self.unsubscribed(&reader, version)
        case 14: self = try Self.disconnect(&reader)
        default: self = .pong
        }
        try reader.end()
    }

    /// Reads CONNACK.
    ///
    /// A broker without MQTT 5 answers in the format of MQTT 3.1.1, without properties.
    private static func connectAnswer(
        _ reader: inout PacketReader,
        _ version: MQTTVersion
    ) throws(MQTTViolation) -> InboundPacket {
        let flags = try reader.byte()
        guard flags <= 1 else { throw .malformed("CONNACK with reserved flags") }
        guard flags == 0 else { throw .protocolError("CONNACK names a session that we did not ask for") }
        let code = try reader.byte()
        guard version == .v5, code == 0 || !reader.isAtEnd else {
            return .connectAnswer(MQTTReason(returnCode: code), text: nil, BrokerLimits())
        }
        let properties = try InboundProperties(&reader, in: .connectAnswer)
        let text = properties.reasonText ?? properties.serverReference
        return .connectAnswer(MQTTReason(returnCode: code), text: text, BrokerLimits(properties))
    }

    private static func acknowledgement(
        _ reader: inout PacketReader,
        _ version: MQTTVersion
    ) throws(MQTTViolation) -> InboundPacket {
        let identifier = try reader.identifier()
        guard version == .v5, !reader.isAtEnd else { return .acknowledgement(identifier: identifier, .success) }
        let reason = MQTTReason(rawValue: try reader.byte())
        if !reader.isAtEnd { _ = try InboundProperties(&reader, in: .acknowledgement) }
        return .acknowledgement(identifier: identifier, reason)
    }

    /// Reads SUBACK; each of our SUBSCRIBE packets has one filter.
    private static func subscribed(
        _ reader: inout PacketReader,
        _ version: MQTTVersion
    ) throws(MQTTViolation) -> InboundPacket {
        let identifier = try reader.identifier()
        if version == .v5 { _ = try InboundProperties(&reader, in: .acknowledgement) }
        let code = try reader.byte()
        guard code <= 1 || code >= 0x80 else { throw .protocolError("SUBACK grants what we did not ask for") }
        return .subscribed(identifier: identifier, MQTTReason(rawValue: code))
    }

    private static func unsubscribed(
        _ reader: inout PacketReader,
        _ version: MQTTVersion
    ) throws(MQTTViolation) -> InboundPacket {
        let identifier = try reader.identifier()
        if version == .v5 {
            _ = try InboundProperties(&reader, in: .acknowledgement)
            _ = try reader.byte()
        }
        return .unsubscribed(identifier: identifier)
    }

    private static func disconnect(_ reader: inout PacketReader) throws(MQTTViolation) -> InboundPacket {
        guard !reader.isAtEnd else { return .disconnect(.success, text: nil) }
        let reason = MQTTReason(rawValue: try reader.byte())
        guard !reader.isAtEnd else { return .disconnect(reason, text: nil) }
        let properties = try InboundProperties(&reader, in: .disconnect)
        return .disconnect(reason, text: properties.reasonText ?? properties.serverReference)
    }
}
