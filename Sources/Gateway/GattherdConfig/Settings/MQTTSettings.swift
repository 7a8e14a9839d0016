/// The address of a broker.
package struct BrokerAddress: Hashable, Sendable {
    package var host: String
    package var port: UInt16
    package var usesTLS: Bool

    package init(host: String, port: UInt16, usesTLS: Bool = false) {
        self.host = host
        self.port = port
        self.usesTLS = usesTLS
    }
}

extension BrokerAddress: CustomStringConvertible {
    /// The URL.
    package var description: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(usesTLS ? "mqtts" : "mqtt")://\(name):\(port)"
    }
}

/// The section `mqtt`.
package struct MQTTSettings: Hashable, Sendable {
    package enum Version: String, Hashable, Sendable, CaseIterable {
        case v5 = "5"
        case v311 = "3.1.1"
    }

    /// The section `mqtt.tls`; the files are in PEM form.
    package struct TLS: Hashable, Sendable {
        package enum Version: String, Hashable, Sendable, CaseIterable {
            case v12 = "1.2"
            case v13 = "1.3"
        }

        /// The file with the certificate authorities; `nil`: those of the system.
        package var ca: Located<String>?
        /// The client certificate, which needs ``key``.
        package var certificate: Located<String>?
        package var key: Located<String>?
        /// The name that the broker's certificate must have; `nil`: the host of the URL.
        package var serverName: String?
        package var minimumVersion = Version.v12

        package init() {}
    }

    /// The section `mqtt.home_assistant`.
    package struct HomeAssistant: Hashable, Sendable {
        package var isDiscoverable = true
        package var prefix = "homeassistant"

        package init() {}
    }

    package var broker: BrokerAddress
    package var version = Version.v5
    package var clientID: String
    package var username: String?
    /// The file with the password in its first line.
    package var passwordFile: Located<String>?
    package var tls = TLS()
    /// True if readings are retained.
    package var retains = true
    /// The publishing of readings, unless their device has settings of its own.
    package var publish = PublishSettings()
    /// The most readings per second while the backlog is published.
    package var backlogRate = 4000
    /// True if MQTT may set controls.
    package var setsControls = true
    package var homeAssistant = HomeAssistant()

    package init(broker: BrokerAddress, clientID: String) {
        self.broker = broker
        self.clientID = clientID
    }
}
