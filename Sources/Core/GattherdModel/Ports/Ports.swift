/// A failure of the history database.
public struct StoreFault: Error, Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// A lock or memory is temporarily unavailable.
        case busy
        /// The disk is full.
        case full
        /// An I/O error, or a read-only file system.
        case disk
        /// The file is corrupt.
        case damaged
        /// Another daemon holds the file's lock.
        case inUse
        /// The request is invalid; a retry does not help.
        case refused
    }

    public let kind: Kind
    /// The message: cause, place and remedy.
    public let detail: String

    public init(_ detail: String, _ kind: Kind = .refused) {
        self.detail = detail
        self.kind = kind
    }

    /// True if a later retry may succeed, for example after a full disk or a busy file.
    public var isTransient: Bool {
        switch kind {
        case .busy, .full, .disk: true
        case .damaged, .inUse, .refused: false
        }
    }
}

/// A device's row in history.
public struct DeviceRecord: Hashable, Sendable {
    public var device: String
    public var address: String
    /// The peripheral's own name.
    public var name: String?
    public var profiles: [String]

    public init(device: String, address: String, name: String? = nil, profiles: [String] = []) {
        self.device = device
        self.address = address
        self.name = name
        self.profiles = profiles
    }
}

/// A device's record in history, with the times of the first and the last sighting.
public struct SeenDevice: Hashable, Sendable {
    public let record: DeviceRecord
    public let first: Timestamp
    public let last: Timestamp

    public init(_ record: DeviceRecord, first: Timestamp, last: Timestamp) {
        (self.record, self.first, self.last) = (record, first, last)
    }
}

/// The durable store of readings, events and device records.
///
/// The daemon writes to it; `GattherdHistory` implements it.
public protocol ReadingStore: Sendable {
    /// Commits the batch in one transaction. If it throws, nothing of the batch is stored.
    ///
    /// - Returns: False if the readings are only delivered, because the store cannot be written.
    @discardableResult
    func append(_ batch: ReadingBatch) async throws(StoreFault) -> Bool
    /// Returns the replay counters of all senders.
    func replayMarks() async throws(StoreFault) -> [String: UInt32]
    /// Returns the cursors of all streams of stored records.
    func recordCursors() async throws(StoreFault) -> [RecordCursor]
    /// Appends lifecycle events.
    func record(_ events: [LifecycleEvent]) async throws(StoreFault)
    /// Inserts or updates a device's record, with the time of the last sighting.
    func record(_ device: DeviceRecord, seenAt: Timestamp) async throws(StoreFault)
    /// Persists that a device is held, which means disconnected by request.
    func setHeld(_ device: String, _ isHeld: Bool) async throws(StoreFault)
    /// Returns the names of all held devices.
    func heldDevices() async throws(StoreFault) -> Set<String>
}

/// A request to write a control, for example from MQTT.
public struct ControlRequest: Hashable, Sendable {
    public let device: String
    public let control: String
    public let value: ControlValue
    /// The JSON value that the response repeats.
    public let transaction: String?
    /// The epoch of the lease under which the requester expects the device; `nil` for any.
    public var epoch: Int64?
    /// True for a request of a person at the gateway itself.
    public var isLocal = false

    public init(device: String, control: String, value: ControlValue, transaction: String? = nil) {
        self.device = device
        self.control = control
        self.value = value
        self.transaction = transaction
    }
}

/// A publisher of the state of devices, such as MQTT or the dashboard.
///
/// Methods return without blocking.
public protocol Announcer: Sendable {
    /// Publishes a change of the link state.
    func update(_ status: LinkStatus)
    /// Publishes the streams and controls of a device after its GATT discovery.
    func describe(_ device: DeviceDescription)
    /// Clears the retained topics of a device that was removed.
    func remove(device: String)
    /// Publishes a lifecycle event.
    func announce(_ event: LifecycleEvent)
    /// Publishes a change of a device's lease.
    func update(_ lease: DeviceLease)
    /// Publishes which controls may be set, after a change of the configuration.
    func updatePermissions()
}

extension Announcer {
    public func update(_ lease: DeviceLease) {}
    public func updatePermissions() {}
}
