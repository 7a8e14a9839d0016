public import GattherdMQTT
public import GattherdMachines

/// What Home Assistant is told.
public struct HomeAssistantSettings: Hashable, Sendable {
    /// Devices describe themselves, so that they appear there.
    public var isDiscoverable = true
    /// What its topics begin with.
    public var prefix = "homeassistant"
    /// Of gattherd.
    public var version = ""

    public init() {}
}

/// Where and how delivery publishes.
public struct DeliverySettings: Sendable {
    /// The version of MQTT that is spoken.
    public enum Version: Hashable, Sendable {
        case v311
        case v5

        var ofPackets: MQTTVersion { self == .v5 ? .v5 : .v311 }
    }

    /// The gateway's name: a part of every topic, so without `/`, `+` and `#`.
    public var gateway: String
    /// A host's name or address.
    public var host: String
    public var port: UInt16
    public var version = Version.v5
    /// Must be the only client of that name at its broker: two of one name throw each other out.
    public var clientID: String
    public var username: String?
    public var password: Secret?
    /// `nil`: the connection is not secured.
    public var tls: TLSSettings?
    /// The longest silence on the connection, 5 s at least; a dead broker is noticed after twice as long.
    public var keepalive = Duration.seconds(30)
    /// How readings are published.
    public var publishing = PublishingRules()
    public var permissions = ControlPermissions()
    public var homeAssistant = HomeAssistantSettings()
    /// Durations and bounds.
    public var options = DeliveryMachine.Options()

    /// As CONNECT has it.
    var keepaliveSeconds: Int32 { Int32(min(max(keepalive.components.seconds, 5), 65_535)) }

    /// Settings for a broker, with the client id `gattherd-<gateway>`.
    public init(gateway: String, host: String, port: UInt16 = 1883) {
        self.gateway = gateway
        self.host = host
        self.port = port
        clientID = "gattherd-\(gateway)"
    }
}
