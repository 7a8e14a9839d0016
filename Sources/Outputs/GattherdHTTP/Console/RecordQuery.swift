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

    /// - Parameter request: With arguments that its route has: ``Route/misuse(in:)``.
    /// - Throws: ``ConsoleError`` when the limit is none.
    init(_ request: HTTPRequest) throws(ConsoleError) {
        device = request.query["device"]
        metric = request.query["metric"]
        since = request.query["since"]
        until = request.query["until"]
        every = request.query["every"]
        guard let text = request.query["limit"] else { return }
        guard let number = Int(text), (1...Self.maximum).contains(number) else {
            throw ConsoleError(.invalid, "'limit' must be a number from 1 to \(Self.maximum)")
        }
        limit = number
    }
}

/// Why something that is stored cannot be told.
public struct ConsoleError: Error, Hashable, Sendable {
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
