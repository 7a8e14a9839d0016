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

    /// Forgets the state for a new connection, on which STATE arrives anew.
    mutating func connect() {
        state = .unknown
    }

    /// Applies a STATE message; returns false if it is invalid or older than a message before.
    ///
    /// A timestamp that is more than a minute ahead is remembered as one that is a minute ahead. Otherwise one message
    /// of a host with a wrong clock, or of somebody else, would make all later ones old.
    mutating func receive(_ payload: [UInt8], at now: Timestamp) -> Bool {
        guard let (isOnline, time) = Self.read(payload), time >= newest ?? time else { return false }
        newest = min(time, max(now.microseconds, 0) / 1000 + Self.longestLead)
        state = isOnline ? .online : .offline
        return true
    }

    /// True if the host says that it is offline, so that the connection has to end.
    var isOffline: Bool { isConfigured && state == .offline }

    private static func read(_ payload: [UInt8]) -> (isOnline: Bool, time: Int64)? {
        guard case .object(let members)? = try? JSONReader.value(of: payload) else { return nil }
        guard case .boolean(let isOnline)? = members.first(where: { $0.name == "online" })?.value,
            case .integer(let time)? = members.first(where: { $0.name == "timestamp" })?.value, time >= 0
        else { return nil }
        return (isOnline, time)
    }
}

/// A limit on births that hosts ask for; anybody who may publish commands can ask.
///
/// A few requests are fulfilled at once. Further ones are gathered into one birth when the limit allows it.
struct RebirthLimit: Hashable, Sendable {
    private let burst: Int
    private let interval: Duration
    private var tokens: Int
    private var refilledAt: Duration = .zero
    /// True while a birth is due.
    private(set) var isPending = false

    init(burst: Int, interval: Duration) {
        self.burst = burst
        self.interval = interval
        tokens = burst
    }

    mutating func request() {
        isPending = true
    }

    /// Cancels a request, as births are published for another reason.
    mutating func fulfil() {
        isPending = false
    }

    /// Returns true if a birth is due and allowed now.
    mutating func claim(at now: Duration) -> Bool {
        refill(at: now)
        guard isPending, tokens > 0 else { return false }
        tokens -= 1
        isPending = false
        return true
    }

    /// The time at which a pending request is allowed.
    var deadline: Duration? { isPending ? (tokens > 0 ? .zero : refilledAt + interval) : nil }

    private mutating func refill(at now: Duration) {
        guard tokens < burst else {
            refilledAt = now
            return
        }
        while tokens < burst, now >= refilledAt + interval {
            tokens += 1
            refilledAt += interval
        }
    }
}
