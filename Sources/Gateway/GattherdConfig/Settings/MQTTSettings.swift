/// Where a broker listens.
public struct BrokerAddress: Hashable, Sendable {
    public var host: String
    public var port: UInt16
    public var usesTLS: Bool

    public init(host: String, port: UInt16, usesTLS: Bool = false) {
        self.host = host
        self.port = port
        self.usesTLS = usesTLS
    }
}

extension BrokerAddress: CustomStringConvertible {
    /// The URL.
    public var description: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(usesTLS ? "mqtts" : "mqtt")://\(name):\(port)"
    }
}

/// The section `mqtt`.
public struct MQTTSettings: Hashable, Sendable {
    public enum Version: String, Hashable, Sendable, CaseIterable {
        case v5 = "5"
        case v311 = "3.1.1"
    }

    /// The section `mqtt.tls`; the files are in PEM form.
    public struct TLS: Hashable, Sendable {
        public enum Version: String, Hashable, Sendable, CaseIterable {
            case v12 = "1.2"
            case v13 = "1.3"
        }

        /// `nil`: the system's authorities.
        public var ca: Located<String>?
        /// Ours, with ``key``.
        public var certificate: Located<String>?
        public var key: Located<String>?
        /// What the broker's certificate must be for; `nil`: the host of the URL.
        public var serverName: String?
        public var minimumVersion = Version.v12

        public init() {}
    }

    /// The section `mqtt.home_assistant`.
    public struct HomeAssistant: Hashable, Sendable {
        public var isDiscoverable = true
        public var prefix = "homeassistant"

        public init() {}
    }

    public var broker: BrokerAddress
    public var version = Version.v5
    public var clientID: String
    public var username: String?
    /// The password is the first line of this file.
    public var passwordFile: Located<String>?
    public var tls = TLS()
    /// Readings are retained.
    public var retains = true
    /// How readings are published, if their device says nothing else.
    public var publish = PublishSettings()
    /// Readings per second, while they are published that waited for the broker.
    public var backlogRate = 4000
    /// Controls may be set.
    public var setsControls = true
    public var homeAssistant = HomeAssistant()

    public init(broker: BrokerAddress, clientID: String) {
        self.broker = broker
        self.clientID = clientID
    }
}
