/// Where a device's link stands; connected is not ready.
public enum LinkState: String, Hashable, Sendable, CaseIterable {
    /// Not seen yet.
    case waiting
    case connecting
    /// Connected; the GATT table is being resolved.
    case discovering
    /// Connection tasks and subscriptions are under way.
    case preparing
    /// Streaming; the only state that is online to the world.
    case ready
    case disconnecting
    case disconnected
    /// Will try again at a known time.
    case backingOff
    /// Disconnected by a person, and stays so.
    case held
    /// What retrying cannot mend; tried again slowly.
    case failed
}

/// Why a link ended or could not be made.
public enum LinkReason: String, Hashable, Sendable, CaseIterable {
    /// A person or a clean stop asked for it.
    case requested
    /// An operation's deadline passed.
    case timedOut
    /// The peripheral ended the link, or the radio lost it.
    case remote
    /// Our side ended the link.
    case local
    case authentication
    /// bluetoothd left the bus.
    case daemonLost
    /// The adapter is gone.
    case adapterLost
    case adapterPoweredOff
    /// BlueZ forgot the peripheral.
    case vanished
    /// The connect attempt failed on the radio.
    case connectFailed
    /// A characteristic that the profile requires is missing.
    case profileMismatch
    /// A GATT operation failed.
    case gattError
    /// Nothing came for too long, and nobody answered.
    case silent
    /// BlueZ says that it is busy.
    case busy
    /// The adapter holds as many links as it can.
    case adapterFull
    /// The link made room for a device that waited.
    case rotated
    case unknown
}

/// A link failed; `detail` is for people, code looks at the rest.
public struct LinkFault: Error, Hashable, Sendable {
    public let reason: LinkReason
    public let detail: String
    /// Retrying soon cannot mend it.
    public let isPermanent: Bool

    public init(_ reason: LinkReason, _ detail: String, isPermanent: Bool = false) {
        self.reason = reason
        self.detail = detail
        self.isPermanent = isPermanent
    }
}

/// What the world may know about a device's link.
public struct LinkStatus: Hashable, Sendable {
    public var device: String
    public var state: LinkState
    /// When the link came into this state.
    public var since: Timestamp
    /// Why it is not ready, or why it last was not.
    public var reason: LinkReason?
    public var detail: String?
    /// Failed attempts since the link was last ready.
    public var attempt: Int
    public var nextRetry: Timestamp?
    /// The adapter's address.
    public var adapter: String?
    /// In dBm, as last advertised.
    public var rssi: Int?

    public init(device: String, state: LinkState, since: Timestamp) {
        self.device = device
        self.state = state
        self.since = since
        attempt = 0
    }

    /// True while the link is ``LinkState/ready`` and nothing speaks against it.
    public var isOnline: Bool { state == .ready && reason != .silent }
}

extension LinkStatus {
    /// Writes the object of the `connection` topic.
    public func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("state")
        writer.string(state.rawValue)
        writer.key("since")
        writer.timestamp(since)
        writer.key("reason")
        writer.optional(reason?.rawValue) { $0.string($1) }
        writer.key("detail")
        writer.optional(detail) { $0.string($1) }
        writer.key("attempt")
        writer.integer(attempt)
        writer.key("next_retry")
        writer.optional(nextRetry) { $0.timestamp($1) }
        writer.key("adapter")
        writer.optional(adapter) { $0.string($1) }
        writer.key("rssi")
        writer.optional(rssi) { $0.integer($1) }
        writer.endObject()
    }
}

extension JSONWriter {
    /// Writes `value` with `write`, or `null`.
    public mutating func optional<Value>(_ value: Value?, _ write: (inout JSONWriter, Value) -> Void) {
        guard let value else { return null() }
        write(&self, value)
    }
}
