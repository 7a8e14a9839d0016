/// The state of an output, for status, metrics and people.
public struct OutputStatus: Hashable, Sendable {
    public enum State: String, Hashable, Sendable {
        case idle
        case connecting
        case connected
        /// An attempt has failed; ``OutputStatus/nextTry`` has the time of the next.
        case waiting
        case stopping
        case stopped
    }

    public var state = State.idle
    /// The receiver, for example a URL; without secrets.
    public var target: String
    /// The last number that the receiver has acknowledged together with all before it; `nil` until known.
    public var cursor: Int64?
    /// An upper bound of the entries that the receiver has not acknowledged.
    public var backlog: Int64 = 0
    /// The time since which the oldest of them waits; `nil` without a backlog.
    public var waitingSince: Timestamp?
    /// The entries that the receiver has acknowledged, since the start.
    public var delivered: UInt64 = 0
    /// The entries that were skipped: by the limit of the backlog, or because the receiver refuses them.
    public var skipped: UInt64 = 0
    /// The attempts that failed, since the start.
    public var errors: UInt64 = 0
    /// The current problem: the cause and the remedy.
    public var problem: String?
    /// The time of the next attempt.
    public var nextTry: Timestamp?

    public init(target: String) {
        self.target = target
    }
}

/// An output, as the daemon controls it.
///
/// An output that also shows the state of devices is an ``Announcer`` as well.
public protocol Output: Sendable {
    /// The name in the configuration, and of its cursor.
    var name: String { get }
    /// The key of the section, for example `lines`; several outputs may have the same.
    var kind: String { get }
    /// The current status; callable from any thread.
    var status: OutputStatus { get }
    /// Delivers the journal until ``stop(within:)`` is called or the task is cancelled.
    func run() async
    /// Returns once the output's loop has processed an event; the watchdog calls it to detect a stall.
    func roundTrip() async
    /// Delivers what remains for at most `limit`, closes connections and ends ``run()``.
    func stop(within limit: Duration) async
}

extension Output {
    public var kind: String { name }
}
