package import GattherdMQTT
import GattherdMachines
package import GattherdModel

/// The broker, the names of the edge node, and the rules of publishing.
package struct SparkplugOptions: Sendable {
    /// The output's name.
    package var name = "sparkplug"
    package var host: String
    package var port: UInt16
    /// The MQTT version of the connection.
    package var version = MQTTVersion.v311
    package var clientID: String
    package var username: String?
    package var password: Secret?
    /// The TLS settings; `nil` for a connection without TLS.
    package var tls: TLSSettings?
    /// The longest silence on the connection; a dead broker is detected after twice that time.
    package var keepalive = Duration.seconds(30)
    package var group: String
    package var node: String
    /// The host application that births wait for.
    package var primaryHost: String?
    /// True to leave out values that equal the previous ones.
    package var isByException = false
    package var permissions = ControlPermissions()
    /// The version of gattherd.
    package var softwareVersion = ""
    /// The file that keeps bdSeq over restarts; `nil` starts with 0 in each run.
    package var sequenceFile: String?
    var options = SparkplugMachine.Options()

    package init(host: String, port: UInt16, clientID: String, group: String, node: String) {
        self.host = host
        self.port = port
        self.clientID = clientID
        self.group = group
        self.node = node
    }

    var topics: SparkplugTopics { SparkplugTopics(group: group, node: node, primaryHost: primaryHost) }

    /// The machine of an edge node with these options.
    var machine: SparkplugMachine {
        let node = EdgeNode(
            topics: topics,
            version: softwareVersion,
            isByException: isByException,
            permissions: permissions
        )
        return SparkplugMachine(
            node,
            waitsForHost: primaryHost != nil,
            options: options,
            seed: .random(in: .min ... .max)
        )
    }

    var endpoint: BrokerEndpoint {
        BrokerEndpoint(host: host, port: port, tls: tls, connectTimeout: options.connectTimeout)
    }

    /// The contents of CONNECT, with NDEATH as the will.
    func mqttOptions(will: SparkplugMessage) -> MQTTOptions {
        var mqtt = MQTTOptions(version, clientID: clientID)
        mqtt.username = username
        mqtt.password = password?.text
        mqtt.keepalive = keepalive
        mqtt.will = BrokerWill(topic: will.topic, payload: will.payload.encoded, isRetained: false)
        return mqtt
    }
}

extension BrokerFault {
    static func unreachable(_ options: SparkplugOptions, _ detail: String) -> BrokerFault {
        BrokerFault(.unreachable, "cannot reach the broker at \(options.host):\(options.port): \(detail)")
    }

    /// The fault for a broker that reads too slowly: the next session replaces the waiting states by new births.
    static let slowBroker = BrokerFault(
        .lost,
        "the broker reads too slowly, and too much waits to be sent; check the network and the load of the broker"
    )

    /// The fault for a failed attempt to dial.
    init(_ error: DialError, _ options: SparkplugOptions) {
        if case .tls(let error) = error {
            self.init(.security, "\(error)")
        } else {
            self = .unreachable(options, "\(error)")
        }
    }

    /// The fault for a connection that ended.
    ///
    /// - Parameters:
    ///   - error: The connection's error.
    ///   - explanation: The problem that TLS found.
    ///   - isConnected: True after CONNACK.
    ///   - options: The options of the output.
    init(_ error: MQTTConnectionError, _ explanation: String?, isConnected: Bool, _ options: SparkplugOptions) {
        if let explanation {
            self.init(.security, explanation)
        } else if isConnected {
            let advice = "if this repeats, look for another client with the same sparkplug.client_id"
            self.init(.lost, "the connection was lost: \(error); \(advice)")
        } else {
            let scheme = options.tls == nil ? "mqtts://" : "mqtt://"
            let advice = "check the port, and whether sparkplug.url must start with \(scheme)"
            self = .unreachable(options, "it ended the connection without an answer: \(error); \(advice)")
        }
    }

    /// The fault for a CONNACK that refuses the session, or a DISCONNECT; `text` is the broker's reason string.
    init(_ reason: MQTTReason, _ text: String?, isConnected: Bool) {
        let words = reason.words(text)
        switch reason {
        case _ where isConnected: self.init(.lost, "the broker ended the session (\(words))")
        case .badUserNameOrPassword, .notAuthorized, .banned, .badAuthenticationMethod:
            self.init(.credentials, "the broker refuses the user name or password (\(words)); check sparkplug.username")
        case .unsupportedProtocolVersion:
            self.init(.session, "the broker does not support this version of MQTT; change sparkplug.version")
        case .clientIdentifierNotValid:
            self.init(.session, "the broker does not accept the client id; set sparkplug.client_id")
        case .useAnotherServer, .serverMoved:
            self.init(.session, "the broker redirects to another server (\(words)); set sparkplug.url")
        default: self.init(.busy, "the broker refuses the session for now (\(words))")
        }
    }
}
