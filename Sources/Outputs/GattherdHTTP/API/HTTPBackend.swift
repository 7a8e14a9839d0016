package import GattherdLog
package import GattherdModel

/// The gateway as the HTTP API sees it: status, stored records, commands.
package protocol HTTPBackend: Sendable {
    /// Returns the current status.
    func status() async -> DaemonStatus
    /// Connects the device on request.
    func connect(_ device: String) async throws(ControlError)
    /// Disconnects the device on request; it stays disconnected after a restart.
    func disconnect(_ device: String) async throws(ControlError)
    /// Sets a control and waits for the result.
    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError>
    /// Returns the error as text for users.
    func words(for error: ControlError) -> String
    /// Returns samples or summaries: `{"rows":[…],"next":…}`, where `next` is the start of the next page or null.
    func history(_ query: RecordQuery) async -> Result<[UInt8], BackendError>
    /// Returns the newest events as an array, oldest first.
    func events(_ query: RecordQuery) async -> Result<[UInt8], BackendError>
    /// Returns the newest rejects as an array, oldest first.
    func rejects(_ query: RecordQuery) async -> Result<[UInt8], BackendError>
    /// Changes of the configuration, and checks.
    var administration: any AdministrationBackend { get }
    /// Counters that are not part of the status.
    var counters: [Counter] { get }
    /// The counters that each output of a kind has, with the output's name.
    var outputCounters: [(output: String, counters: [Counter])] { get }
    /// True if the metrics include the newest samples.
    var showsSamples: Bool { get }
    /// The wall clock.
    var now: Timestamp { get }
}

/// A query for stored samples, events or rejects.
///
/// Times have the syntax of the command line.
package struct RecordQuery: Hashable, Sendable {
    package var device: String?
    package var stream: String?
    package var metric: String?
    package var since: String?
    package var until: String?
    /// The interval of summaries; `nil` for samples.
    package var every: String?
    /// The maximum number of rows.
    package var limit = 1000

    /// The largest limit that a request may set.
    static let maximum = 10_000

    /// - Parameter request: A request with valid arguments: see ``Route/misuse(in:)``.
    /// - Throws: ``BackendError`` for an invalid limit.
    init(_ request: HTTPRequest) throws(BackendError) {
        device = request.query["device"]
        stream = request.query["stream"]
        metric = request.query["metric"]
        since = request.query["since"]
        until = request.query["until"]
        every = request.query["every"]
        guard let text = request.query["limit"] else { return }
        guard let number = Int(text), (1...Self.maximum).contains(number) else {
            throw BackendError(.invalid, "'limit' must be a number from 1 to \(Self.maximum)")
        }
        limit = number
    }
}

/// A failed request: a query, a change or a check.
package struct BackendError: Error, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case invalid
        case notFound
        /// The name is in use, or the content was changed meanwhile.
        case conflict
        /// The configuration would be wrong.
        case refused
        /// The daemon may not write there.
        case forbidden
        /// Other queries or another change are running, or a program cannot be run.
        case unavailable
        /// The history cannot be read.
        case unreadable
    }

    package let kind: Kind
    /// The problem and its remedy, as text for users.
    package let detail: String

    package init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    var status: Int {
        switch kind {
        case .invalid: 400
        case .forbidden: 403
        case .notFound: 404
        case .conflict: 409
        case .refused: 422
        case .unreadable: 500
        case .unavailable: 503
        }
    }
}
