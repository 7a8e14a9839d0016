/// A reason code of MQTT 5 (section 2.4); the return codes of MQTT 3.1.1 are translated to these.
public struct MQTTReason: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Translates a CONNACK return code of MQTT 3.1.1 (table 3.1); other codes stay as they are.
    public init(returnCode: UInt8) {
        switch returnCode {
        case 1: self = .unsupportedProtocolVersion
        case 2: self = .clientIdentifierNotValid
        case 3: self = .serverUnavailable
        case 4: self = .badUserNameOrPassword
        case 5: self = .notAuthorized
        default: self.init(rawValue: returnCode)
        }
    }

    public static let success = Self(rawValue: 0x00)
    public static let disconnectWithWill = Self(rawValue: 0x04)
    public static let noMatchingSubscribers = Self(rawValue: 0x10)
    public static let unspecified = Self(rawValue: 0x80)
    public static let malformedPacket = Self(rawValue: 0x81)
    public static let protocolError = Self(rawValue: 0x82)
    public static let implementationSpecific = Self(rawValue: 0x83)
    public static let unsupportedProtocolVersion = Self(rawValue: 0x84)
    public static let clientIdentifierNotValid = Self(rawValue: 0x85)
    public static let badUserNameOrPassword = Self(rawValue: 0x86)
    public static let notAuthorized = Self(rawValue: 0x87)
    public static let serverUnavailable = Self(rawValue: 0x88)
    public static let serverBusy = Self(rawValue: 0x89)
    public static let banned = Self(rawValue: 0x8A)
    public static let serverShuttingDown = Self(rawValue: 0x8B)
    public static let badAuthenticationMethod = Self(rawValue: 0x8C)
    public static let sessionTakenOver = Self(rawValue: 0x8E)
    public static let topicFilterInvalid = Self(rawValue: 0x8F)
    public static let topicNameInvalid = Self(rawValue: 0x90)
    public static let packetIdentifierInUse = Self(rawValue: 0x91)
    public static let topicAliasInvalid = Self(rawValue: 0x94)
    public static let packetTooLarge = Self(rawValue: 0x95)
    public static let messageRateTooHigh = Self(rawValue: 0x96)
    public static let quotaExceeded = Self(rawValue: 0x97)
    public static let payloadFormatInvalid = Self(rawValue: 0x99)
    public static let retainNotSupported = Self(rawValue: 0x9A)
    public static let qosNotSupported = Self(rawValue: 0x9B)
    public static let useAnotherServer = Self(rawValue: 0x9C)
    public static let serverMoved = Self(rawValue: 0x9D)
    public static let sharedSubscriptionsNotSupported = Self(rawValue: 0x9E)
    public static let subscriptionIdentifiersNotSupported = Self(rawValue: 0xA1)
    public static let wildcardSubscriptionsNotSupported = Self(rawValue: 0xA2)

    /// True for 0x80 and above.
    public var isFailure: Bool { rawValue >= 0x80 }

    /// The specification's name of the reason in lower case, or its number.
    public var words: String { Self.names[rawValue] ?? "reason 0x" + Self.hexadecimal(rawValue) }

    /// The name of the reason and the broker's reason string, which may contain any text.
    package func words(_ text: String?) -> String {
        guard let text, !text.isEmpty else { return words }
        let printable = text.unicodeScalars.prefix(200).map { $0.properties.generalCategory == .control ? " " : $0 }
        return "\(words): " + String(String.UnicodeScalarView(printable))
    }

    static func hexadecimal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.count < 2 ? "0" + digits : digits
    }

    private static let names: [UInt8: String] = [
        0x00: "success", 0x04: "disconnect with will message", 0x10: "no matching subscribers",
        0x11: "no subscription existed", 0x80: "unspecified error", 0x81: "malformed packet", 0x82: "protocol error",
        0x83: "implementation specific error", 0x84: "unsupported protocol version",
        0x85: "client identifier not valid", 0x86: "bad user name or password", 0x87: "not authorized",
        0x88: "server unavailable", 0x89: "server busy", 0x8A: "banned", 0x8B: "server shutting down",
        0x8C: "bad authentication method", 0x8D: "keep alive timeout", 0x8E: "session taken over",
        0x8F: "topic filter invalid", 0x90: "topic name invalid", 0x91: "packet identifier in use",
        0x92: "packet identifier not found", 0x93: "receive maximum exceeded", 0x94: "topic alias invalid",
        0x95: "packet too large", 0x96: "message rate too high", 0x97: "quota exceeded",
        0x98: "administrative action", 0x99: "payload format invalid", 0x9A: "retain not supported",
        0x9B: "qos not supported", 0x9C: "use another server", 0x9D: "server moved",
        0x9E: "shared subscriptions not supported", 0x9F: "connection rate exceeded",
        0xA0: "maximum connect time", 0xA1: "subscription identifiers not supported",
        0xA2: "wildcard subscriptions not supported",
    ]
}

/// A protocol violation by the broker, which ends the connection.
public struct MQTTViolation: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason that MQTT 5 has for the defect; sent with DISCONNECT.
    public let reason: MQTTReason
    /// The packet and its defect.
    public let detail: String

    init(_ reason: MQTTReason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    static func malformed(_ detail: String) -> MQTTViolation { MQTTViolation(.malformedPacket, detail) }
    static func protocolError(_ detail: String) -> MQTTViolation { MQTTViolation(.protocolError, detail) }

    public var description: String { "\(detail) (\(reason.words))" }
}

/// A message or subscription that cannot be sent; nothing of it was written.
public enum MQTTRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The packet's size in bytes, and the broker's maximum.
    case tooLarge(Int, limit: Int)
    /// The topic is empty, too long, or has a wildcard or a NUL.
    case invalidTopic
    /// A text or binary field of more than 65,535 bytes.
    case tooLong(String)
    /// All 65,535 packet identifiers are in use.
    case noIdentifier
    /// No session exists.
    case notConnected

    public var description: String {
        switch self {
        case .tooLarge(let size, let limit): "a packet of \(size) bytes; the broker accepts at most \(limit)"
        case .invalidTopic: "the topic is empty, longer than 65535 bytes, or has a wildcard or a NUL"
        case .tooLong(let field): "the \(field) is longer than 65535 bytes"
        case .noIdentifier: "all packet identifiers wait for the broker"
        case .notConnected: "there is no session with the broker"
        }
    }
}
