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

        /// The file with the certificate authorities; `nil` for the system's authorities.
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
        /// The import of statistics; `nil` without one.
        package var statistics: StatisticsSettings?

        package init() {}
    }

    package var broker: BrokerAddress
    package var version = Version.v5
    package var clientID: String
    /// The levels above all topics of the gateway.
    package var baseTopic: String
    package var username: String?
    /// The file with the password in its first line.
    package var passwordFile: Located<String>?
    package var tls = TLS()
    /// True if readings are retained.
    package var retains = true
    /// The publishing of readings, unless their device has settings of its own.
    package var publish = PublishSettings()
    /// The maximum number of readings per second while the backlog is published.
    package var backlogRate = 4000
    /// The maximum number of entries that wait for the broker; `nil` for no maximum.
    package var longestBacklog: Int64?
    /// True if MQTT may set controls.
    package var setsControls = true
    package var homeAssistant = HomeAssistant()
    /// True if each device publishes its streams and controls.
    package var publishesDescriptions = false

    /// Creates the settings of a gateway with all defaults.
    package init(broker: BrokerAddress, gateway: String) {
        self.broker = broker
        clientID = "gattherd-\(gateway)"
        baseTopic = "gattherd/\(gateway)"
    }

    /// The files with secrets, and the files for TLS if it is used.
    package var files: [NamedFile] {
        let password = passwordFile.map { NamedFile($0, .secret("password", isReadAgain: false)) }
        let tls = broker.usesTLS ? NamedFile.tls(ca: tls.ca, certificate: tls.certificate, key: tls.key) : []
        return [password].compactMap(\.self) + tls + (homeAssistant.statistics?.files ?? [])
    }
}

/// The publishing of readings: one section `publish`, or several combined.
package struct PublishSettings: Hashable, Sendable {
    package enum QoS: String, Hashable, Sendable, CaseIterable {
        case zero = "0"
        case one = "1"
    }

    /// True if only readings that differ from the last published one are published.
    package var isOnChange: Bool?
    /// The largest difference of numbers that count as equal.
    package var deadband: Double?
    /// Deadbands by metric.
    package var deadbands: [Located<String>: Double] = [:]
    package var minimumInterval: Duration?
    /// The time after which an unchanged reading is published again.
    package var heartbeat: Duration?
    package var qos: QoS?
    package var retains: Bool?
    /// True if each metric also has a topic of its own.
    package var hasScalars: Bool?
    /// The time for which the broker keeps a reading for an absent subscriber.
    package var expiry: Duration?
    /// The time in which readings of a stream are gathered into one message; zero: they are not gathered.
    package var batch: Duration?

    package init() {}

    /// Returns this section with the values of a wider one where it has none.
    package func refining(_ wider: PublishSettings) -> PublishSettings {
        var settings = self
        settings.isOnChange = isOnChange ?? wider.isOnChange
        settings.deadband = deadband ?? wider.deadband
        // A deadband for all metrics also replaces those that the wider section has for some.
        if deadband == nil { settings.deadbands.merge(wider.deadbands) { own, _ in own } }
        settings.minimumInterval = minimumInterval ?? wider.minimumInterval
        settings.heartbeat = heartbeat ?? wider.heartbeat
        settings.qos = qos ?? wider.qos
        settings.retains = retains ?? wider.retains
        settings.hasScalars = hasScalars ?? wider.hasScalars
        settings.expiry = expiry ?? wider.expiry
        settings.batch = batch ?? wider.batch
        return settings
    }
}

/// The section `publish` of a device.
package struct DevicePublishSettings: Hashable, Sendable {
    package var all = PublishSettings()
    /// The settings by stream.
    package var streams: [Located<String>: PublishSettings] = [:]

    package init() {}
}

/// The section `mqtt.home_assistant.statistics`.
package struct StatisticsSettings: Hashable, Sendable {
    package var url: Located<ServerURL>
    /// The file with the access token in its first line.
    package var tokenFile: Located<String>
    /// The files for TLS, in PEM form.
    package var ca: Located<String>?
    package var certificate: Located<String>?
    package var key: Located<String>?

    package init(url: Located<ServerURL>, tokenFile: Located<String>) {
        (self.url, self.tokenFile) = (url, tokenFile)
    }

    /// The token file, and the files for TLS if it is used.
    package var files: [NamedFile] {
        let tls = url.value.usesTLS ? NamedFile.tls(ca: ca, certificate: certificate, key: key) : []
        return [NamedFile(tokenFile, .secret("token", isReadAgain: true))] + tls
    }
}
