import GattherdModel

/// The state of the primary host, from its STATE messages (specification, sections 5.4 and 5.5).
struct HostWatch: Sendable {
    private enum State: Hashable {
        case unknown
        case online
        case offline
    }

    /// True if births wait for a host.
    let isConfigured: Bool
    private var state = State.unknown
    /// The newest timestamp of a STATE message, kept over connections; never far in the future.
    private var newest: Int64?
    /// The time by which a host's clock may be ahead, in milliseconds.
    private static let longestLead: Int64 = 60_000

    init(isConfigured: Bool) {
        self.isConfigured = isConfigured
    }

    /// True if births may be published.
    var isReady: Bool { !isConfigured || state == .online }

    /// Clears the state for a new connection, on which STATE arrives again.
    mutating func connect() {
        state = .unknown
    }

    /// Applies a STATE message; returns false if it is invalid or older than a message before.
    ///
    /// A timestamp that is more than a minute ahead is stored as one minute ahead. Otherwise one message with a wrong
    /// clock would make all later messages old.
    mutating func receive(_ payload: [UInt8], at now: Timestamp) -> Bool {
        guard let (isOnline, time) = Self.read(payload), time >= newest ?? time else { return false }
        newest = min(time, max(now.microseconds, 0) / 1000 + Self.longestLead)
        state = isOnline ? .online : .offline
        return true
    }

    /// True if the host reports that it is offline, so that the connection has to end.
    var isOffline: Bool { isConfigured && state == .offline }

    private static func read(_ payload: [UInt8]) -> (isOnline: Bool, time: Int64)? {
        guard case .object(let members)? = try? JSONReader.value(of: payload) else { return nil }
        guard case .boolean(let isOnline)? = members.first(where: { $0.name == "online" })?.value,
            case .integer(let time)? = members.first(where: { $0.name == "timestamp" })?.value, time >= 0
        else { return nil }
        return (isOnline, time)
    }
}
