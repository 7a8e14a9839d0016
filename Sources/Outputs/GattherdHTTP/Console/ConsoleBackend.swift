public import GattherdLog
public import GattherdModel

/// What the console shows, and what it can have done.
public protocol ConsoleBackend: Sendable {
    /// How everything is.
    func status() async -> DaemonStatus
    /// A person wants the device connected, from now on.
    func connect(_ device: String) async throws(ControlError)
    /// A person wants the device disconnected, also over a restart.
    func disconnect(_ device: String) async throws(ControlError)
    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError>
    /// Why something was not done, as a person is told it.
    func words(for error: ControlError) -> String
    /// Samples, or summaries of spans of time: `{"rows":[…],"next":…}`, where `next` is the time to go on with or null.
    func history(_ query: RecordQuery) async -> Result<[UInt8], ConsoleError>
    /// The newest events, oldest first: an array.
    func events(_ query: RecordQuery) async -> Result<[UInt8], ConsoleError>
    /// The newest payloads that did not decode, oldest first: an array.
    func rejects(_ query: RecordQuery) async -> Result<[UInt8], ConsoleError>
    /// What is counted besides what the status has.
    var counters: [DescribedCounter] { get }
    /// Samples are to be among the metrics.
    var showsSamples: Bool { get }
    /// The wall clock.
    var now: Timestamp { get }
}

/// A counter, and what it counts.
public struct DescribedCounter: Sendable {
    public let counter: Counter
    /// A sentence without its full stop.
    public let help: String

    public init(_ counter: Counter, _ help: String) {
        self.counter = counter
        self.help = help
    }
}

extension MetricFamily {
    init(_ described: DescribedCounter) {
        self.init("gattherd_" + described.counter.name, .counter, described.help, described.counter.value)
    }
}
