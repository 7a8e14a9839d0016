package import GattherdGATT
package import GattherdModel

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
    package var alerts: [AlertRule] = []
    /// The metrics that the rules of alerts name.
    package var alertMetrics: [Located<String>] = []
    package var history: HistorySettings
    /// The section `mqtt`; `nil` without MQTT.
    package var mqtt: MQTTSettings?
    /// The sections of the other outputs, in the order of their registration.
    package var outputs: [OutputSection] = []
    /// The section `http`; `nil` without HTTP.
    package var http: HTTPSettings?
    package var fleet = FleetSettings()
    package var log = LogSettings()
    /// The keys with old names in the files.
    package var oldKeys: [OldKey] = []

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

/// The section `fleet`: the cooperation with other gateways at the same PostgreSQL database.
package struct FleetSettings: Hashable, Sendable {
    /// The gateway that publishes the readings of advertising devices by MQTT.
    package enum Publisher: String, CaseIterable, Hashable, Sendable {
        /// The gateway that owns the device.
        case owner
        /// Every gateway that hears the device.
        case all
    }

    /// True if each device has a lease, which decides which gateway connects it.
    package var hasLeases = false
    package var publisher = Publisher.owner

    package init() {}
}

/// The part of the environment that a configuration depends on.
package struct ConfigEnvironment: Hashable, Sendable {
    /// The environment variables.
    package var variables: [String: String]
    package var hostName: String
    /// The folder to which relative paths of files belong.
    package var currentFolder: String

    package init(variables: [String: String], hostName: String, currentFolder: String = ".") {
        self.variables = variables
        self.hostName = hostName
        self.currentFolder = currentFolder
    }
}

/// A value of the configuration and its place in the file.
///
/// Equality compares the values only: a value that moved within its file has not changed.
package struct Located<Value: Hashable & Sendable>: Sendable {
    package let value: Value
    /// The place in the file; `nil` for a default.
    package let place: ConfigPlace?

    package init(_ value: Value, at place: ConfigPlace? = nil) {
        self.value = value
        self.place = place
    }
}

extension Located: Hashable {
    package static func == (left: Self, right: Self) -> Bool { left.value == right.value }

    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

/// The section `log`.
package struct LogSettings: Hashable, Sendable {
    package enum Level: String, Hashable, Sendable, CaseIterable {
        case trace
        case debug
        case info
        case notice
        case warning
        case error
    }

    package enum Format: String, Hashable, Sendable, CaseIterable {
        /// Journald under systemd, text on a terminal, else JSON lines.
        case auto
        case text
        case json
        case journald
    }

    package var level = Level.info
    package var format = Format.auto

    package init() {}
}

/// The bus of bluetoothd.
package enum BusChoice: Hashable, Sendable {
    case system
    case session
    /// A D-Bus address, for example `unix:path=/run/test-bus`.
    case address(String)
}

/// The adapters that gattherd uses.
package enum AdapterChoice: Hashable, Sendable {
    case auto
    case only([BluetoothAddress])
}

/// The section `bluetooth`.
package struct BluetoothSettings: Hashable, Sendable {
    package var bus = BusChoice.system
    package var adapters = AdapterChoice.auto
    package var connectTimeout = Duration.seconds(20)
    package var keepsLinksOnStop = false
    /// The shortest time that a link of a full adapter lasts before a waiting device replaces it; `nil`: never.
    package var rotate: Duration?
    /// True if an adapter without links that hears or connects nothing may be powered off and on.
    package var mayPowerCycle = true

    package init() {}
}

/// The section `profiles`.
package struct ProfileSettings: Hashable, Sendable {
    /// Folders with `*.so` and `*.yaml` files, or such files; `nil`: the installed folders.
    package var paths: [Located<String>]?

    package init() {}
}

/// A period for which rows are kept.
package enum RetentionPeriod: Hashable, Sendable {
    case forever
    case atLeast(Duration)
}

/// The section `history`.
package struct HistorySettings: Hashable, Sendable {
    /// The section `history.keep`.
    package struct Keep: Hashable, Sendable {
        package var samples = RetentionPeriod.atLeast(.seconds(30 * 86_400))
        package var minutes = RetentionPeriod.atLeast(.seconds(365 * 86_400))
        package var hours = RetentionPeriod.forever

        package init() {}
    }

    /// The policy for readings while the disk is full.
    package enum WhenFull: String, CaseIterable, Hashable, Sendable {
        /// Readings are delivered without being stored.
        case deliver
        /// Readings wait in memory.
        case hold
    }

    /// The section `history.backlog`: bounds of the readings that wait for delivery.
    package struct Backlog: Hashable, Sendable {
        package var keep = RetentionPeriod.forever
        /// The maximum number of bytes of payloads; by default half of `max_size`.
        package var maxSize: UInt64 = 1 << 30

        package init() {}
    }

    /// The path of the SQLite file.
    package var path: Located<String>
    /// The longest time that a reading waits for a commit.
    package var commitInterval = Duration.milliseconds(100)
    package var keep = Keep()
    /// The largest size of the file, in bytes.
    package var maxSize: UInt64 = 2 << 30
    package var backlog = Backlog()
    package var whenFull = WhenFull.deliver

    package init(path: Located<String>) {
        self.path = path
    }
}

/// A TCP address to listen on.
package struct ListenAddress: Hashable, Sendable {
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// True if only this host can reach the address.
    package var isLoopback: Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        let isIPv4 = parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
        return host == "localhost" || host == "::1" || isIPv4
    }
}

/// The section `http`.
package struct HTTPSettings: Hashable, Sendable {
    package var listen: ListenAddress
    /// The file with the token in its first line; required off loopback.
    package var tokenFile: Located<String>?
    /// Further names of the server, in addition to its addresses and the host's own name.
    package var hosts: [String] = []
    /// True if Prometheus also gets the newest sample of each metric of each device.
    package var hasSampleMetrics = false

    package init(listen: ListenAddress) {
        self.listen = listen
    }
}
