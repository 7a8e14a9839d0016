/// Everything that a gateway is told, with defaults filled in.
///
/// Paths are as they were written, made relative to the folder of the main file.
public struct Configuration: Hashable, Sendable {
    /// The gateway's name in topics; by default the host's.
    public var gateway: String
    public var bluetooth = BluetoothSettings()
    public var profiles = ProfileSettings()
    public var devices: [DeviceSettings] = []
    public var enrol: [EnrolRule] = []
    public var history: HistorySettings
    /// `nil`: no MQTT.
    public var mqtt: MQTTSettings?
    /// `nil`: no HTTP.
    public var http: HTTPSettings?
    public var log = LogSettings()

    /// The defaults.
    ///
    /// - Parameters:
    ///   - gateway: A slug.
    ///   - database: The path of the history file.
    public init(gateway: String, database: String) {
        self.gateway = gateway
        history = HistorySettings(path: Located(database))
    }
}

/// What a configuration depends on besides its text.
public struct ConfigEnvironment: Hashable, Sendable {
    /// The environment.
    public var variables: [String: String]
    public var hostName: String

    public init(variables: [String: String], hostName: String) {
        self.variables = variables
        self.hostName = hostName
    }
}
