import GattherdModel

/// A request to the gateway on `bridge/request/<verb>`.
public enum BridgeRequest: Hashable, Sendable {
    /// Connects a device that was disconnected by hand.
    case connect(device: String)
    /// Disconnects a device until it is connected by hand.
    case disconnect(device: String)
    /// Returns a part of the history, in pieces.
    case history(HistoryRequest)
    case health
}

/// A part of the history; times have the format of the command line.
public struct HistoryRequest: Hashable, Sendable {
    public var device: String?
    public var stream: String?
    public var metric: String?
    public var since: String?
    public var until: String?
    /// The length of the summarised spans; without it, samples are returned.
    public var every: String?
    /// The maximum number of rows.
    public var limit = 1000

    /// The maximum number of rows of any request.
    public static let maximum = 10_000

    public init() {}
}

/// The gateway's reply to a request.
public struct BridgeReply: Hashable, Sendable {
    /// The JSON texts, one message each; at least one.
    public let parts: [[UInt8]]

    public init(_ json: [UInt8]) {
        parts = [json]
    }

    public init(_ answer: consuming HistoryResponse) {
        parts = answer.finish()
    }
}

/// The reason why the gateway refused a request, for people.
public struct BridgeFailure: Error, Hashable, Sendable {
    public let detail: String

    public init(_ detail: String) {
        self.detail = detail
    }
}

extension BridgeRequest {
    /// Reads `{"device": …, "transaction": …}`, or the device's bare name.
    init(verb: String, _ payload: RequestPayload) throws(RequestError) {
        switch verb {
        case "connect": self = .connect(device: try Self.device(payload))
        case "disconnect": self = .disconnect(device: try Self.device(payload))
        case "link": self = try Self.link(payload)
        case "health": self = .health
        case "history": self = .history(try HistoryRequest(payload))
        default:
            let known = "connect, disconnect, link, history or health"
            throw RequestError(description: "unknown request '\(verb)'; use \(known)")
        }
    }

    /// Reads `{"device": …, "link": true}`: one request for both directions, as a switch needs it.
    private static func link(_ payload: RequestPayload) throws(RequestError) -> Self {
        let members = try payload.members(["device", "link"])
        guard case .string(let device)? = members.first(where: { $0.name == "device" })?.value,
            case .boolean(let isWanted)? = members.first(where: { $0.name == "link" })?.value
        else {
            throw RequestError(description: "write the device and the wanted link: {\"device\": \"…\", \"link\": true}")
        }
        return isWanted ? .connect(device: device) : .disconnect(device: device)
    }

    private static func device(_ payload: RequestPayload) throws(RequestError) -> String {
        guard case .string(let device) = try payload.value("device") else {
            throw RequestError(description: "name the device: {\"device\": \"…\"}")
        }
        return device
    }
}

extension HistoryRequest {
    /// Reads an object with the properties' names; an empty payload requests the oldest rows of everything.
    init(_ payload: RequestPayload) throws(RequestError) {
        let names = ["device", "stream", "metric", "since", "until", "every", "limit"]
        for member in try payload.members(names) {
            switch member.name {
            case "device": device = try member.text
            case "stream": stream = try member.text
            case "metric": metric = try member.text
            case "since": since = try member.text
            case "until": until = try member.text
            case "every": every = try member.text
            default: limit = try member.count(through: Self.maximum)
            }
        }
    }
}

extension JSONMember {
    fileprivate var text: String {
        get throws(RequestError) {
            guard case .string(let text) = value else {
                throw RequestError(description: "'\(name)' must be text")
            }
            return text
        }
    }

    fileprivate func count(through maximum: Int) throws(RequestError) -> Int {
        guard case .integer(let number) = value, number > 0, number <= maximum else {
            throw RequestError(description: "'\(name)' must be a number from 1 to \(maximum)")
        }
        return Int(number)
    }
}
