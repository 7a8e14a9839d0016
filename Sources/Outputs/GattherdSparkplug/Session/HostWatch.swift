import GattherdMQTT
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
    /// The newest timestamp of a STATE message and the time of its arrival, in milliseconds; kept over connections.
    private var newest: (time: Int64, arrival: Int64)?
    /// The timestamp of the last STATE message of a host that is online; kept over connections.
    private var onlineSince: Int64?
    /// True if the last STATE message began another session of the host.
    private var hasReturned = false
    /// The time by which the clocks of hosts and the gateway may differ, in milliseconds.
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
    mutating func receive(_ payload: [UInt8], at now: Timestamp) -> Bool {
        let arrival = max(now.microseconds, 0) / 1000
        guard let (isOnline, time) = Self.read(payload), isNext(time, at: arrival) else { return false }
        newest = (time, arrival)
        state = isOnline ? .online : .offline
        hasReturned = isOnline && onlineSince.map { $0 != time } ?? false
        if isOnline { onlineSince = time }
        return true
    }

    /// True if a timestamp is not older than the newest one.
    ///
    /// After one that is more than a minute ahead, an earlier one counts too, if it is right by the gateway's clock.
    /// Otherwise one message with a wrong clock would make all later messages old.
    private func isNext(_ time: Int64, at arrival: Int64) -> Bool {
        guard let newest, time < newest.time else { return true }
        guard newest.time - newest.arrival > Self.longestLead else { return false }
        return time >= newest.arrival - Self.longestLead && time <= arrival + Self.longestLead
    }

    /// True if the host reports that it is offline.
    var isOffline: Bool { isConfigured && state == .offline }

    /// True if the host is offline, or was until its last STATE message, so that the connection has to end.
    ///
    /// A host keeps its timestamp as long as it is connected.
    var wasOffline: Bool { isOffline || isConfigured && hasReturned }

    private static func read(_ payload: [UInt8]) -> (isOnline: Bool, time: Int64)? {
        guard case .object(let members)? = try? JSONReader.value(of: payload) else { return nil }
        guard case .boolean(let isOnline)? = members.first(where: { $0.name == "online" })?.value,
            case .integer(let time)? = members.first(where: { $0.name == "timestamp" })?.value, time >= 0
        else { return nil }
        return (isOnline, time)
    }
}

/// The meaning of a message that a host sent, by its topic and its payload.
enum HostMessage: Hashable, Sendable {
    /// The topic is none of a host's.
    case unrelated
    /// A message that is not carried out, with the reason.
    case invalid(String)
    /// A STATE message, which may be retained.
    case state([UInt8])
    case rebirth
    case command(SparkplugPayload, device: String)

    init(_ message: BrokerMessage, _ topics: SparkplugTopics) {
        guard let command = topics.command(message.topic) else {
            self = .unrelated
            return
        }
        guard message.length == message.payload.count else {
            self = .invalid("it has \(message.length) bytes; at most \(BrokerMessage.maximum) are read")
            return
        }
        switch command {
        case .state: self = .state(message.payload)
        case .node, .device: self = message.isRetained ? .invalid("it is retained") : Self(message.payload, of: command)
        }
    }

    private init(_ octets: [UInt8], of command: SparkplugTopics.Command) {
        do throws(ProtobufError) {
            let payload = try SparkplugPayload(decoding: octets[...])
            switch command {
            case .device(let device): self = .command(payload, device: device)
            case .node where EdgeNode.isRebirth(payload): self = .rebirth
            case .node, .state: self = .invalid("it asks for no rebirth")
            }
        } catch {
            self = .invalid(error.description)
        }
    }
}
