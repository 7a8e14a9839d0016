/// Which part of what is stored somebody wants to have; times are as on the command line.
public struct RecordQuery: Hashable, Sendable {
    public var device: String?
    public var metric: String?
    public var since: String?
    public var until: String?
    /// Summaries of spans of this length, not samples.
    public var every: String?
    /// Rows at most.
    public var limit = 1000

    /// The most rows that one answer has.
    static let maximum = 10_000

    init(_ request: HTTPRequest) throws(ConsoleFault) {
        for (name, value) in request.query {
            switch name {
            case "device": device = value
            case "metric": metric = value
            case "since": since = value
            case "until": until = value
            case "every": every = value
            case "limit":
                guard let number = Int(value), (1...Self.maximum).contains(number) else {
                    throw ConsoleFault(.invalid, "'limit' must be a number from 1 to \(Self.maximum)")
                }
                limit = number
            default: throw ConsoleFault(.invalid, "unknown argument '\(name)'; there are \(Self.names)")
            }
        }
    }

    private static let names = "device, metric, since, until, every and limit"
}

/// Why something that is stored cannot be told.
public struct ConsoleFault: Error, Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        /// It was asked for in a way that is not understood.
        case invalid
        /// Others are being answered.
        case busy
        case unreadable
    }

    public let kind: Kind
    /// What is wrong and what to do, for people.
    public let detail: String

    public init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    var status: Int {
        switch kind {
        case .invalid: 400
        case .busy: 503
        case .unreadable: 500
        }
    }
}
