/// Why history could not do what was asked.
public struct StoreFault: Error, Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// Somebody else has what is needed: a lock, memory.
        case busy
        /// There is no room on the disk.
        case full
        /// The disk does not do what it should, or cannot be written.
        case disk
        /// The file holds something else than what was written to it.
        case damaged
        /// Another daemon has the file.
        case inUse
        /// It cannot be done like this, however often it is tried.
        case refused
    }

    public let kind: Kind
    /// What, where and what to do.
    public let detail: String

    public init(_ detail: String, _ kind: Kind = .refused) {
        self.detail = detail
        self.kind = kind
    }

    /// True when trying again later may help: a full disk, a busy file.
    public var isTransient: Bool {
        switch kind {
        case .busy, .full, .disk: true
        case .damaged, .inUse, .refused: false
        }
    }
}

/// A device as history knows it.
public struct DeviceRecord: Hashable, Sendable {
    public var device: String
    public var address: String
    /// What the peripheral calls itself.
    public var name: String?
    public var profiles: [String]

    public init(device: String, address: String, name: String? = nil, profiles: [String] = []) {
        self.device = device
        self.address = address
        self.name = name
        self.profiles = profiles
    }
}

/// Where readings become durable; implemented by history.
public protocol ReadingStore: Sendable {
    /// Commits the whole batch in one transaction; on a throw nothing of it is stored.
    func append(_ batch: ReadingBatch) async throws(StoreFault)
    /// The counters of all batches, by who counts.
    func replayMarks() async throws(StoreFault) -> [String: UInt32]
    func record(_ events: [LifecycleEvent]) async throws(StoreFault)
    /// Adds a device, or changes what is known about it.
    func note(_ device: DeviceRecord, seenAt: Timestamp) async throws(StoreFault)
    /// Remembers over a restart which devices a person disconnected.
    func setHeld(_ device: String, _ isHeld: Bool) async throws(StoreFault)
    func heldDevices() async throws(StoreFault) -> Set<String>
}

/// One reading of the log, ready to be published.
public struct JournalReading: Hashable, Sendable {
    public let seq: Int64
    public let device: String
    public let stream: String
    /// The JSON object of ``Reading/writeJSON(seq:samples:isStored:to:)``; those of a commit share their memory.
    public let payload: ArraySlice<UInt8>

    public init(seq: Int64, device: String, stream: String, payload: [UInt8]) {
        self.init(seq: seq, device: device, stream: stream, payload: payload[...])
    }

    public init(seq: Int64, device: String, stream: String, payload: ArraySlice<UInt8>) {
        self.seq = seq
        self.device = device
        self.stream = stream
        self.payload = payload
    }
}

/// The log as delivery sees it; implemented by history.
public protocol ReadingJournal: Sendable {
    /// The `seq` of the newest committed reading, now and after each commit; negative while it is not known.
    func heads() -> AsyncStream<Int64>
    /// The readings after `seq`, in order, at most `limit`.
    func readings(after seq: Int64, limit: Int) async throws(StoreFault) -> [JournalReading]
    /// The same at once, from memory; `nil` when only ``readings(after:limit:)`` can say.
    func recent(after seq: Int64, limit: Int) -> [JournalReading]?
    /// The last `seq` that the broker has acknowledged, with all before it.
    func acknowledged() async throws(StoreFault) -> Int64
    /// Moves the cursor; readings up to `seq` need not be kept for delivery any more.
    func acknowledge(through seq: Int64) async throws(StoreFault)
}

extension ReadingJournal {
    public func recent(after seq: Int64, limit: Int) -> [JournalReading]? { nil }
}

/// Somebody asks for something, over MQTT for example.
public struct ControlRequest: Hashable, Sendable {
    public let device: String
    public let control: String
    public let value: ControlValue
    /// What the asker wants to find in the answer: a JSON value.
    public let transaction: String?

    public init(device: String, control: String, value: ControlValue, transaction: String? = nil) {
        self.device = device
        self.control = control
        self.value = value
        self.transaction = transaction
    }
}

/// Where the state of the herd is told to the world; never blocks.
public protocol Announcer: Sendable {
    /// The device's link is in another state.
    func update(_ status: LinkStatus)
    /// The device has been looked into.
    func describe(_ device: DeviceDescription)
    /// The device is not ours any more: what was retained of it is cleared.
    func remove(device: String)
    func announce(_ event: LifecycleEvent)
}

/// Delivery as the daemon runs it.
public protocol Deliverer: Announcer {
    /// Publishes what the log has until ``stop(within:)``.
    func run() async
    /// Returns when the broker's answers are being attended to.
    func pulse() async
    /// Publishes what is left for at most `limit`, says goodbye and makes ``run()`` end.
    func stop(within limit: Duration) async
}
