/// The status of the daemon: the JSON of `gattherd status --json` and the control socket, a stable format.
public struct DaemonStatus: Codable, Hashable, Sendable {
    public struct Adapter: Codable, Hashable, Sendable {
        public var address: String
        public var name: String
        public var powered: Bool
        public var discovering: Bool
        /// The number of links, including those of other programs.
        public var links: Int
        /// The learned link limit; `nil` while unknown.
        public var slots: Int?
        /// The number of connection attempts in progress.
        public var connecting: Int
        /// The number of devices that wait for a free slot.
        public var waiting: Int?
        /// The last recovery action.
        public var lastRecovery: String?

        enum CodingKeys: String, CodingKey {
            case address, name, powered, discovering, links, slots, connecting, waiting
            case lastRecovery = "last_recovery"
        }
    }

    public struct Device: Codable, Hashable, Sendable {
        public var device: String
        /// The name for people.
        public var title: String?
        /// The room or the place.
        public var area: String?
        /// A remark of the configuration.
        public var note: String?
        public var address: String
        public var state: String
        /// The time of the last change of `state`, in RFC 3339.
        public var since: String
        public var reason: String?
        public var detail: String?
        public var attempt: Int
        /// The time of the next attempt, in RFC 3339.
        public var nextRetry: String?
        public var adapter: String?
        /// The signal strength in dBm.
        public var rssi: Int?
        public var profiles: [String]
        /// The count since the daemon's start.
        public var readings: UInt64
        /// The count since the daemon's start.
        public var rejects: UInt64
        /// The streams whose payloads are all rejected, with the reason: `heart_rate: truncated …`.
        public var undecodable: [String]?
        /// The time of the newest reading, in RFC 3339.
        public var lastReading: String?
        /// The last advertisement since the daemon's start, RFC 3339.
        public var lastHeard: String?
        /// The lease of the device; `nil` without leases.
        public var lease: Lease?
        /// The downloads of stored records; `nil` if the device has none.
        public var records: [Download]?
        /// Brand and model, if its advertisements are known.
        public var model: String?
        /// A profile that decodes this model and that the configuration does not name.
        public var suggestedProfile: String?
        /// True for a device that is never connected, because its profiles decode advertisements; otherwise `nil`.
        public var onlyAdvertises: Bool?

        enum CodingKeys: String, CodingKey {
            case device, title, area, note, address, state, since, reason, detail, attempt, adapter, rssi, profiles
            case readings, rejects, undecodable, lease, model, records
            case suggestedProfile = "suggested_profile"
            case onlyAdvertises = "only_advertises"
            case nextRetry = "next_retry"
            case lastReading = "last_reading"
            case lastHeard = "last_heard"
        }
    }

    /// An output: MQTT or another.
    public struct Output: Codable, Hashable, Sendable {
        /// The output's name, which is also that of its cursor.
        public var name: String
        /// The key of its section in the configuration.
        public var kind: String
        /// `idle`, `connecting`, `connected`, `waiting` (after a failed attempt), `stopping` or `stopped`.
        public var state: String
        /// The receiver, for example a URL; without secrets.
        public var target: String
        /// The entries of the journal that the receiver has not acknowledged: readings, and events if it takes them.
        public var backlog: Int64
        /// The age in seconds of the oldest entry of the backlog; `nil` while unknown.
        public var lag: Double?
        /// The entries delivered since the daemon's start.
        public var delivered: UInt64
        /// Entries skipped since the daemon's start; they are never delivered.
        public var skipped: UInt64
        /// Failed attempts since the daemon's start.
        public var errors: UInt64
        /// The current error and its remedy.
        public var error: String?
        /// The time of the next attempt, in RFC 3339.
        public var nextTry: String?

        enum CodingKeys: String, CodingKey {
            case name, kind, state, target, backlog, lag, delivered, skipped, errors, error
            case nextTry = "next_try"
        }
    }

    public struct History: Codable, Hashable, Sendable {
        public var path: String
        /// The `seq` of the newest entry: a reading, event, reject or clock correction.
        public var seq: Int64
        /// The database's size in bytes, without the WAL.
        public var size: Int64
        /// Readings that were discarded before delivery, since the daemon's start.
        public var undelivered: Int
        /// Readings that were delivered without being stored, since the daemon's start.
        public var unstored: Int
        /// The current write error.
        public var error: String?
        /// The reason why deletion by age is suspended or slow.
        public var clock: String?
        /// True if the daemon created a new file in place of a missing or empty one.
        public var lost: Bool?
    }

    /// Differences between the running configuration and its files.
    public struct Configuration: Codable, Hashable, Sendable {
        /// The sections whose changes need a restart.
        public var restartNeeded: [String]
        /// The error of the last reload; the previous configuration stays in use.
        public var error: String?
        /// True if the last reload could not read the files in time, so that no mistake in them is known.
        public var unread: Bool?

        public init(restartNeeded: [String], error: String? = nil, unread: Bool? = nil) {
            self.restartNeeded = restartNeeded
            self.error = error
            self.unread = unread
        }

        enum CodingKeys: String, CodingKey {
            case error, unread
            case restartNeeded = "restart_needed"
        }
    }

    public var version: String
    public var gateway: String
    /// The pending configuration changes; `nil` if there are none.
    public var configuration: Configuration?
    /// The start of the daemon, in RFC 3339.
    public var started: String
    public var adapters: [Adapter]
    public var devices: [Device]
    /// The outputs, in the order of the configuration.
    public var outputs: [Output]
    /// The raised alerts; `nil` if there are none.
    public var alerts: [ActiveAlert]?
    /// The leases; `nil` without `fleet.leases`.
    public var fleet: Fleet?
    public var history: History
    /// Values dropped because the daemon was too slow.
    public var dropped: UInt64

    public init(version: String, gateway: String, started: Timestamp, history: History) {
        self.version = version
        self.gateway = gateway
        self.started = started.rfc3339
        self.history = history
        adapters = []
        devices = []
        outputs = []
        dropped = 0
    }
}

extension DaemonStatus.Adapter {
    /// True while a device waits for a free slot.
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
    /// True while the device is online.
    public var isOnline: Bool { state == LinkState.ready.rawValue && !isStalled }

    /// True while the link is up but silent.
    public var isStalled: Bool { state == LinkState.ready.rawValue && reason == LinkReason.silent.rawValue }

    /// - Parameters:
    ///   - status: The state of the link.
    ///   - address: The peripheral's address.
    ///   - profiles: The profiles of the last link.
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

extension DaemonStatus.History {
    public init(at path: String, seq: Int64) {
        self.init(path: path, seq: seq, size: 0, undelivered: 0, unstored: 0)
    }
}

/// One entry of `gattherd bond list --json`; a stable format.
public struct BondStatus: Codable, Hashable, Sendable {
    public var address: String
    /// The device's name; `nil` for a peripheral that is not configured.
    public var device: String?
    /// The peripheral's own name.
    public var name: String?
    /// The adapter's address.
    public var adapter: String
    /// True if keys are stored.
    public var bonded: Bool
    /// True if it may use services of this host without authorisation.
    public var trusted: Bool
    public var connected: Bool

    public init(address: String, adapter: String) {
        self.address = address
        self.adapter = adapter
        bonded = false
        trusted = false
        connected = false
    }
}
