public import GattherdMQTT
public import GattherdMachines
public import GattherdModel

/// The settings of Home Assistant's MQTT discovery.
public struct HomeAssistantSettings: Hashable, Sendable {
    /// True if devices publish their descriptions, so that Home Assistant adds them.
    public var isDiscoverable = true
    /// The first level of Home Assistant's topics.
    public var prefix = "homeassistant"
    /// The version of gattherd.
    public var version = ""
    /// The dashboard's address; `nil` if no other host can open it.
    public var configurationURL: String?

    public init() {}
}

/// The names of a device for people.
public struct DeviceLabel: Hashable, Sendable {
    /// The name; `nil` for the device's own.
    public var title: String?
    /// The room or place of the device; `nil` if unknown.
    public var area: String?

    public init(title: String? = nil, area: String? = nil) {
        (self.title, self.area) = (title, area)
    }
}

/// The parts of descriptions that only people need.
public struct Presentation: Hashable, Sendable {
    /// The names of devices.
    public var labels: [String: DeviceLabel] = [:]
    public var alerts: [AlertRule] = []

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

    /// The gateway's name, which also identifies its devices in Home Assistant.
    public var gateway: String
    /// The levels above all topics, without wildcards; `gattherd/<gateway>` by default.
    public var baseTopic: String
    /// The base topics that the gateway had before at this broker; retained messages below them are removed.
    public var formerBases: [String] = []
    /// Called when all messages below a former base topic are cleared; never blocks.
    public var forgetBase: @Sendable (String) -> Void = { _ in }
    /// The time in which a broker sends retained messages after a subscription.
    package var formerBasePause = Duration.seconds(5)
    /// The time in which a broker sends the retained state after the subscription to it.
    package var repairPause = Duration.seconds(5)
    /// The broker's host name or address.
    public var host: String
    public var port: UInt16
    public var version = Version.v5
    /// The client id.
    ///
    /// Each client of a broker needs its own: a second client with the same id ends the first one's session.
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
    public var presentation = Presentation()
    /// Returns true if this gateway publishes the readings of an advertising device at a time; `nil` for always.
    ///
    /// Never blocks.
    package var isPublisher: (@Sendable (_ device: String, Timestamp) -> Bool)?
    /// True if devices have leases, which are published.
    package var hasLeases = false
    public var homeAssistant = HomeAssistantSettings()
    /// True if each device publishes its streams and controls.
    public var publishesDescriptions = false
    /// True if any published message contains texts of the Device Information Service.
    var publishesFacts: Bool { publishesDescriptions || homeAssistant.isDiscoverable }
    /// The durations and bounds of the delivery machine.
    public var options = DeliveryMachine.Options()

    /// The broker as a URL.
    package var target: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(tls == nil ? "mqtt" : "mqtts")://\(name):\(port)"
    }

    /// Creates settings for a broker, with the client id `gattherd-<gateway>`.
    public init(gateway: String, host: String, port: UInt16 = 1883) {
        self.gateway = gateway
        baseTopic = "gattherd/\(gateway)"
        self.host = host
        self.port = port
        clientID = "gattherd-\(gateway)"
    }
}

/// The publishing rules of a stream.
public struct StreamPublishing: Hashable, Sendable {
    /// The policy that selects readings.
    public var policy = DeliveryPolicy()
    /// True for QoS 1.
    ///
    /// With QoS 0 the cursor passes a reading once it is written; a broker that stops then loses it.
    public var isAcknowledged = true
    /// True if the broker keeps the newest reading for later subscribers.
    public var isRetained = true
    /// True if each metric also has a topic of its own, as a bare value with QoS 0.
    public var hasScalars = false
    /// MQTT 5: the time for which a broker keeps a reading for an absent subscriber.
    public var expiry: Duration?
    /// The time for which readings wait for others of their stream, to be published as one array; `nil`: no arrays.
    public var batch: Duration?

    public init() {}

    fileprivate var isEverything: Bool { policy.isEverything && batch == nil }
    /// The expiry in whole seconds, as MQTT encodes it.
    var expirySeconds: UInt32? { expiry.map { UInt32(clamping: max(1, $0.components.seconds)) } }
}

/// The publishing rules of all streams.
public struct PublishingRules: Hashable, Sendable {
    /// The rules for a device.
    public struct Device: Hashable, Sendable {
        public var all: StreamPublishing
        public var streams: [String: StreamPublishing]

        public init(all: StreamPublishing, streams: [String: StreamPublishing] = [:]) {
            self.all = all
            self.streams = streams
        }
    }

    /// The rules for devices without their own rules.
    public var all = StreamPublishing()
    public var devices: [String: Device] = [:]

    public init() {}

    subscript(device: String, stream: String) -> StreamPublishing {
        guard !devices.isEmpty, let rules = devices[device] else { return all }
        return rules.streams[stream] ?? rules.all
    }

    /// True if every reading of every stream is published at once, in a message of its own.
    var isEverything: Bool {
        all.isEverything
            && devices.values.allSatisfy { device in
                device.all.isEverything && device.streams.values.allSatisfy(\.isEverything)
            }
    }
}
