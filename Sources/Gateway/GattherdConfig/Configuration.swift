/// The configuration of a gateway, with defaults filled in.
///
/// Relative paths are resolved from the folder of the main file.
package struct Configuration: Hashable, Sendable {
    /// The gateway's name in topics; by default the host's.
    package var gateway: String
    package var bluetooth = BluetoothSettings()
    package var profiles = ProfileSettings()
    package var devices: [DeviceSettings] = []
    package var enrol: [EnrolRule] = []
    package var history: HistorySettings
    /// The section `mqtt`; `nil` without MQTT.
    package var mqtt: MQTTSettings?
    /// The section `http`; `nil` without HTTP.
    package var http: HTTPSettings?
    package var log = LogSettings()

    /// Creates a configuration of defaults.
    ///
    /// - Parameters:
    ///   - gateway: The gateway's name, a slug.
    ///   - database: The path of the history file.
    package init(gateway: String, database: String) {
        self.gateway = gateway
        history = HistorySettings(path: Located(database))
    }
}

/// The environment that a configuration depends on besides its text.
package struct ConfigEnvironment: Hashable, Sendable {
    /// The environment variables.
    package var variables: [String: String]
    package var hostName: String

    package init(variables: [String: String], hostName: String) {
        self.variables = variables
        self.hostName = hostName
    }
}
