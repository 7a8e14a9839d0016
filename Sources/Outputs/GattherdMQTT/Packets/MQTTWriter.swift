/// The MQTT version of the connection.
public enum MQTTVersion: Hashable, Sendable {
    case v311
    case v5
}

/// The message that the broker publishes with QoS 1 when the connection is lost.
public struct BrokerWill: Hashable, Sendable {
    public var topic: String
    public var payload: [UInt8]
    public var isRetained: Bool
    /// The correlation data; MQTT 5 only.
    public var correlation: [UInt8]?

    public init(topic: String, payload: some Sequence<UInt8>, isRetained: Bool, correlation: [UInt8]? = nil) {
        self.topic = topic
        self.payload = Array(payload)
        self.isRetained = isRetained
        self.correlation = correlation
    }
}

/// The contents of CONNECT; the session is always a new one.
public struct MQTTOptions: Sendable {
    public var version: MQTTVersion
    public var clientID: String
    public var username: String?
    public var password: String?
    public var will: BrokerWill?
    /// The longest silence of the client, 1 s to 65,535 s.
    public var keepalive = Duration.seconds(30)
    /// The shortest wait for PINGRESP, and for a broker that reads nothing.
    public var answerTimeout = Duration.seconds(10)

    public init(_ version: MQTTVersion, clientID: String) {
        self.version = version
        self.clientID = clientID
    }

    var keepaliveSeconds: UInt16 { UInt16(clamping: max(1, keepalive.components.seconds)) }
}

/// The options of a subscription; MQTT 3.1.1 has the QoS only.
public struct SubscriptionOptions: Hashable, Sendable {
    /// The maximum QoS of received messages: 0 or 1.
    public var qos: UInt8
    /// True if the client's own messages are excluded (No Local).
    public var excludesOwn: Bool
    /// True if messages keep the retain flag they were published with (Retain As Published).
    public var keepsRetainFlag: Bool
    /// True if existing retained messages are excluded (Retain Handling).
    public var excludesRetained: Bool

    public init(
        qos: UInt8 = 1,
        excludesOwn: Bool = false,
        keepsRetainFlag: Bool = false,
        excludesRetained: Bool = false
    ) {
        self.qos = min(qos, 1)
        self.excludesOwn = excludesOwn
        self.keepsRetainFlag = keepsRetainFlag
        self.excludesRetained = excludesRetained
    }

    fileprivate func octet(_ version: MQTTVersion) -> UInt8 {
        guard version == .v5 else { return qos }
        return qos | (excludesOwn ? 0x04 : 0) | (keepsRetainFlag ? 0x08 : 0) | (excludesRetained ? 0x20 : 0)
    }
}

/// The types of MQTT (MQTT 5, section 1.5), and the packets that a client sends other than PUBLISH.
enum MQTTWriter {
    /// The maximum number of unacknowledged messages of QoS 1 from the broker.
    static let receiveMaximum: UInt16 = 100
    /// The maximum packet size for a broker of MQTT 5, in octets.
    ///
    /// The size is far above the kept part, so that senders of long messages receive a refusal.
    static let maximumPacket: UInt32 = 8 << 20

    static func connect(_ options: MQTTOptions) throws(MQTTRefusal) -> [UInt8] {
        for (name, length) in [
            ("client id", options.clientID.utf8.count), ("user name", options.username?.utf8.count),
            ("password", options.password?.utf8.count), ("will's topic", options.will?.topic.utf8.count),
            ("will", options.will?.payload.count), ("correlation data", options.will?.correlation?.count),
        ] {
            guard length ?? 0 <= 65_535 else { throw .tooLong(name) }
        }
        var body: [UInt8] = []
        append("MQTT", to: &body)
        body.append(options.version == .v5 ? 5 : 4)
        body.append(flags(options))
        append(options.keepaliveSeconds, to: &body)
        if options.version == .v5 { appendConnectProperties(to: &body) }
        append(options.clientID, to: &body)
        if let will = options.will {
            if options.version == .v5 { appendProperties(of: will, to: &body) }
            append(will.topic, to: &body)
            append(binary: will.payload, to: &body)
        }
        if let username = options.username { append(username, to: &body) }
        if let password = options.password { append(password, to: &body) }
        return packet(0x10, body)
    }

    private static func flags(_ options: MQTTOptions) -> UInt8 {
        var flags: UInt8 = 0x02
        if let will = options.will { flags |= 0x0C | (will.isRetained ? 0x20 : 0) }
        if options.username != nil { flags |= 0x80 }
        if options.password != nil { flags |= 0x40 }
        return flags
    }

    /// Appends the limits of this client; the default of no topic aliases is left out.
    private static func appendConnectProperties(to body: inout [UInt8]) {
        body += [8, 0x21]
        append(receiveMaximum, to: &body)
        body.append(0x27)
        append(long: maximumPacket, to: &body)
    }

    private static func appendProperties(of will: BrokerWill, to body: inout [UInt8]) {
        guard let correlation = will.correlation else { return body.append(0) }
        append(integer: 3 + correlation.count, to: &body)
        body.append(0x09)
        append(binary: correlation, to: &body)
    }

    static func subscribe(
        to filter: String,
        _ options: SubscriptionOptions,
        identifier: UInt16,
        _ version: MQTTVersion
    ) -> [UInt8] {
        var body: [UInt8] = []
        append(identifier, to: &body)
        if version == .v5 { body.append(0) }
        append(filter, to: &body)
        body.append(options.octet(version))
        return packet(0x82, body)
    }

    static func unsubscribe(from filter: String, identifier: UInt16, _ version: MQTTVersion) -> [UInt8] {
        var body: [UInt8] = []
        append(identifier, to: &body)
        if version == .v5 { body.append(0) }
        append(filter, to: &body)
        return packet(0xA2, body)
    }

    /// Encodes DISCONNECT; MQTT 3.1.1 has no reasons.
    static func disconnect(_ reason: MQTTReason, _ version: MQTTVersion) -> [UInt8] {
        version == .v5 && reason != .success ? [0xE0, 1, reason.rawValue] : [0xE0, 0]
    }

    private static func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] {
        var octets = [first]
        append(integer: body.count, to: &octets)
        return octets + body
    }

    static func append(_ word: UInt16, to octets: inout [UInt8]) {
        octets.append(UInt8(truncatingIfNeeded: word >> 8))
        octets.append(UInt8(truncatingIfNeeded: word))
    }

    static func append(long: UInt32, to octets: inout [UInt8]) {
        append(UInt16(truncatingIfNeeded: long >> 16), to: &octets)
        append(UInt16(truncatingIfNeeded: long), to: &octets)
    }

    /// Appends a text, which has been checked to have at most 65,535 octets.
    static func append(_ text: String, to octets: inout [UInt8]) {
        append(UInt16(truncatingIfNeeded: text.utf8.count), to: &octets)
        octets.append(contentsOf: text.utf8)
    }

    /// Appends binary data, checked as for ``append(_:to:)``.
    static func append(binary: [UInt8], to octets: inout [UInt8]) {
        append(UInt16(truncatingIfNeeded: binary.count), to: &octets)
        octets.append(contentsOf: binary)
    }

    static func append(integer: Int, to octets: inout [UInt8]) {
        var rest = integer
        repeat {
            octets.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
    }

    static func lengthOfInteger(_ integer: Int) -> Int {
        switch integer {
        case ..<0x80: 1
        case ..<0x4000: 2
        case ..<0x20_0000: 3
        default: 4
        }
    }
}
