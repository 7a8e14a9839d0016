/// What `gattherd status` says: the JSON of the control socket, stable for programs.
public struct DaemonStatus: Codable, Hashable, Sendable {
    public struct Adapter: Codable, Hashable, Sendable {
        public var address: String
        public var name: String
        public var powered: Bool
        public var discovering: Bool
        /// Links that are up, other programs' included.
        public var links: Int
        /// The most links that it holds, as far as it was found out.
        public var slots: Int?
        /// Attempts to connect under way.
        public var connecting: Int
        /// Devices for which there is no place.
        public var waiting: Int?
        /// What was last done to make it work again.
        public var lastRecovery: String?

        enum CodingKeys: String, CodingKey {
            case address, name, powered, discovering, links, slots, connecting, waiting
            case lastRecovery = "last_recovery"
        }
    }

    public struct Device: Codable, Hashable, Sendable {
        public var device: String
        public var address: String
        public var state: String
        /// RFC 3339.
        public var since: String
        public var reason: String?
        public var detail: String?
        public var attempt: Int
        /// RFC 3339.
        public var nextRetry: String?
        public var adapter: String?
        /// In dBm.
        public var rssi: Int?
        public var profiles: [String]
        /// Since the daemon's start.
        public var readings: UInt64
        /// Since the daemon's start.
        public var rejects: UInt64
        /// The streams of which nothing decodes, with the reason: `heart_rate: truncated …`.
        public var undecodable: [String]?
        /// RFC 3339.
        public var lastReading: String?
        /// The last advertisement since the daemon's start, RFC 3339.
        public var lastHeard: String?

        enum CodingKeys: String, CodingKey {
            case device, address, state, since, reason, detail, attempt, adapter, rssi, profiles, readings, rejects
            case undecodable
            case nextRetry = "next_retry"
            case lastReading = "last_reading"
            case lastHeard = "last_heard"
        }
    }

    public struct Delivery: Codable, Hashable, Sendable {
        public var state: String
        public var broker: String
        /// Readings that the broker has not acknowledged.
        public var backlog: Int64
        public var published: UInt64
        public var error: String?
    }

    public struct History: Codable, Hashable, Sendable {
        public var path: String
        /// The newest reading's.
        public var seq: Int64
        /// The database's size in octets, without the write-ahead log.
        public var size: Int64
        /// Readings that were given up before the broker had them, since the daemon's start.
        public var undelivered: Int
        /// Readings that were delivered without being stored, since the daemon's start.
        public var unstored: Int
        /// Why it cannot be written now.
        public var error: String?
        /// Why old rows are not deleted by the wall clock, or only slowly.
        public var clock: String?
        /// True if the daemon began a new file in the place of one that is missing or empty.
        public var lost: Bool?
    }

    /// The configuration, where the daemon does not do all that its files say.
    public struct Configuration: Codable, Hashable, Sendable {
        /// The sections whose changes take effect at a restart.
        public var restartNeeded: [String]
        /// The reason why the last reload failed; the configuration from before it goes on.
        public var error: String?

        public init(restartNeeded: [String], error: String? = nil) {
            self.restartNeeded = restartNeeded
            self.error = error
        }

        enum CodingKeys: String, CodingKey {
            case error
            case restartNeeded = "restart_needed"
        }
    }

    public var version: String
    public var gateway: String
    /// `nil` while the daemon does all that its files said at the last reload.
    public var configuration: Configuration?
    /// RFC 3339.
    public var started: String
    public var adapters: [Adapter]
    public var devices: [Device]
    /// `nil` without MQTT.
    public var delivery: Delivery?
    public var history: History
    /// Values that were dropped because the daemon could not keep up.
    public var dropped: UInt64

    public init(version: String, gateway: String, started: Timestamp, history: History) {
        self.version = version
        self.gateway = gateway
        self.started = started.rfc3339
        self.history = history
        adapters = []
        devices = []
        dropped = 0
    }
}

extension DaemonStatus.Adapter {
    /// True while a device waits for a place.
    public var isCrowded: Bool { waiting.map { $0 > 0 } ?? false }

    public init(address: String, name: String, isPowered: Bool, isDiscovering: Bool) {
        self.init(
            address: address,
            name: name,
            powered: isPowered,
            discovering: isDiscovering,
            links: 0,
            connecting: 0
        )
    }
}

extension DaemonStatus.Device {
    /// True while its readings are expected.
    public var isOnline: Bool { state == LinkState.ready.rawValue && !isStalled }

    /// True while nothing comes although its link counts as up.
    public var isStalled: Bool { state == LinkState.ready.rawValue && reason == LinkReason.silent.rawValue }

    /// - Parameters:
    ///   - status: Where the link stands.
    ///   - address: The peripheral's address.
    ///   - profiles: Those that served the last link.
    public init(_ status: LinkStatus, address: String, profiles: [String]) {
        device = status.device
        self.address = address
        state = status.state.rawValue
        since = status.since.rfc3339
        reason = status.reason?.rawValue
        detail = status.detail
        attempt = status.attempt
        nextRetry = status.nextRetry?.rfc3339
        adapter = status.adapter
        rssi = status.rssi
        self.profiles = profiles
        readings = 0
        rejects = 0
    }
}

extension DaemonStatus.Delivery {
    /// There is a session with the broker.
    public var isConnected: Bool { state == "connected" }

    public init(state: String, at broker: String, backlog: Int64, published: UInt64, error: String?) {
        self.init(state: state, broker: broker, backlog: backlog, published: published, error: error)
    }
}

extension DaemonStatus.History {
    public init(at path: String, seq: Int64) {
        self.init(path: path, seq: seq, size: 0, undelivered: 0, unstored: 0)
    }
}
