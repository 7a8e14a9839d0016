/// What libmosquitto's callbacks told, copied.
enum BrokerEvent: Sendable {
    /// CONNACK; `reason` is MQTT 5's, or 3.1.1's return code.
    case connected(reason: Int32, BrokerLimits)
    /// `reason` is MQTT 5's from DISCONNECT (0x80 and above), or libmosquitto's code.
    case disconnected(reason: Int32)
    /// PUBACK.
    case acknowledged(mid: Int32, reason: Int32)
    /// SUBACK; `isGranted` is false when the broker refused.
    case subscribed(mid: Int32, isGranted: Bool)
    case message(BrokerMessage)
}

/// What the broker said in CONNACK; MQTT 3.1.1 says nothing.
struct BrokerLimits: Hashable, Sendable {
    /// QoS 1 messages that may be unacknowledged.
    var receiveMaximum = 65_535
    /// In seconds, when the broker wants another one than we asked for.
    var keepalive: UInt16?
    var canRetain = true
    /// Acknowledges publishes.
    var takesQoS1 = true
    /// Topics that it knows by a number.
    var topicAliases = 0
    /// In octets.
    var maximumPacket = Int.max
}

/// What the broker publishes for us with QoS 1 when we vanish.
struct BrokerWill: Hashable, Sendable {
    var topic: String
    var payload: String
    var isRetained: Bool
}

/// A message on one of our subscriptions.
struct BrokerMessage: Hashable, Sendable {
    var topic: String
    /// The first ``maximum`` + 1 octets.
    var payload: [UInt8]
    /// How many octets there were.
    var length: Int
    var isRetained: Bool
    var responseTopic: String?
    var correlation: [UInt8]?

    /// The longest payload that is looked at.
    static let maximum = 4096
}
