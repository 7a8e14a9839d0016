public import GattherdMQTT
public import GattherdMachines

/// The settings of Home Assistant's MQTT discovery.
public struct HomeAssistantSettings: Hashable, Sendable {
    /// True if devices publish their descriptions, so that Home Assistant adds them.
    public var isDiscoverable = true
    /// The first level of Home Assistant's topics.
    public var prefix = "homeassistant"
    /// The version of gattherd.
    public var version = ""

    public init() {}
}

/// The broker's address and credentials, and the rules of publishing.
public struct DeliverySettings: Sendable {
    /// The MQTT version of the connection.
    public enum Version: Hashable, Sendable {
        case v311
        case v5

        var ofPackets: MQTTVersion { self == .v5 ? .v5 : .v311 }
    }

    /// The gateway's name: a level of every topic, so without `/`, `+` and `#`.
    public var gateway: String
    /// The broker's host name or address.
    public var host: String
    public var port: UInt16
    public var version = Version.v5
    /// The client id.
    ///
    /// It must be unique at the broker: a second client with the same id ends the first one's session.
    public var clientID: String
    public var username: String?
    public var password: Secret?
    /// The TLS settings; `nil` for a connection without TLS.
    public var tls: TLSSettings?
    /// The longest silence on the connection, at least 5 s; a dead broker is detected after twice that time.
    public var keepalive = Duration.seconds(30)
    /// The publishing rules of all streams.
    public var publishing = PublishingRules()
    public var permissions = ControlPermissions()
    public var homeAssistant = HomeAssistantSettings()
    /// The durations and bounds of the delivery machine.
    public var options = DeliveryMachine.Options()

    /// The keepalive as CONNECT encodes it, in seconds.
    var keepaliveSeconds: Int32 { Int32(min(max(keepalive.components.seconds, 5), 65_535)) }

    /// Creates settings for a broker, with the client id `gattherd-<gateway>`.
    public init(gateway: String, host: String, port: UInt16 = 1883) {
        self.gateway = gateway
        self.host = host
        self.port = port
        clientID = "gattherd-\(gateway)"
    }
}
