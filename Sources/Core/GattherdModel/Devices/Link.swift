/// The state of a device's link.
public enum LinkState: String, Hashable, Sendable, CaseIterable {
    /// Not seen yet.
    case waiting
    case connecting
    /// Connected; the GATT table is being resolved.
    case discovering
    /// Subscriptions and connection tasks are in progress.
    case preparing
    /// Subscribed and prepared; the only state that counts as online.
    case ready
    case disconnecting
    case disconnected
    /// Waiting for the next connection attempt at a known time.
    case backingOff
    /// Disconnected by request, until a request to connect.
    case held
    /// A permanent fault; retried slowly.
    case failed
}

/// The reason why a link ended or could not be established.
public enum LinkReason: String, Hashable, Sendable, CaseIterable {
    /// A request, the configuration or a stop of the daemon.
    case requested
    /// An operation's deadline passed.
    case timedOut
    /// The peripheral ended the link, or it was lost.
    case remote
    /// This host ended the link.
    case local
    case authentication
    /// bluetoothd left the bus.
    case daemonLost
    /// The adapter was removed.
    case adapterLost
    case adapterPoweredOff
    /// BlueZ removed the peripheral.
    case vanished
    /// The connect attempt failed on the radio.
    case connectFailed
    /// A characteristic that the profile requires is missing.
    case profileMismatch
    /// A GATT operation failed.
    case gattError
    /// A stream was silent for too long and the probe failed.
    case silent
    /// BlueZ reported that it is busy.
    case busy
    /// The adapter reached its link limit.
    case adapterFull
    /// The link was closed for a waiting device.
    case rotated
    /// Another gateway owns the device.
    case ownedElsewhere
    case unknown
}

/// A failure of a link.
///
/// `detail` is a human-readable text; code uses the other members.
public struct LinkFault: Error, Hashable, Sendable {
    public let reason: LinkReason
    public let detail: String
    /// True if a quick retry is pointless.
    public let isPermanent: Bool

    public init(_ reason: LinkReason, _ detail: String, isPermanent: Bool = false) {
        self.reason = reason
        self.detail = detail
        self.isPermanent = isPermanent
    }
}

/// The status of a device's link, as it is published.
public struct LinkStatus: Hashable, Sendable {
    public var device: String
    public var state: LinkState
    /// The time of the last change of state.
    public var since: Timestamp
    /// The reason of the current or last interruption.
    public var reason: LinkReason?
    public var detail: String?
    /// Failed attempts since the link was last ready.
    public var attempt: Int
    public var nextRetry: Timestamp?
    /// The adapter's address.
    public var adapter: String?
    /// The signal strength in dBm, as last advertised.
    public var rssi: Int?

    public init(device: String, state: LinkState, since: Timestamp) {
        self.device = device
        self.state = state
        self.since = since
        attempt = 0
    }

    /// True while the link is ``LinkState/ready`` and not silent.
    public var isOnline: Bool { state == .ready && reason != .silent }
}

extension LinkStatus {
    /// Writes the payload of the `connection` topic.
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
