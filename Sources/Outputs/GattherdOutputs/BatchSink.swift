public import GattherdModel

/// The receiver of an output that delivers entries in batches: a file, a database, a web service.
///
/// ``BatchOutput`` makes one call at a time. It bounds the time of each, repeats failed ones and keeps the cursor. So a
/// sink needs no retries and no timers.
public protocol BatchSink: Sendable {
    /// Returns when the receiver has all entries durably; they may be written again after a failure.
    ///
    /// The task is cancelled after ``BatchOptions/writeTimeout``. A sink that blocks must use a thread of its own.
    func write(_ entries: [JournalEntry]) async throws(OutputFault)

    /// Closes connections and files; the last call.
    func close() async
}

/// The reason why a receiver did not take entries.
public struct OutputFault: Error, Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// The receiver does not answer, is busy or full; retried with growing pauses.
        case unavailable
        /// The configuration or the receiver must be changed by somebody; retried with long pauses.
        case misconfigured
        /// The receiver will never take at least one of the entries, which is searched and skipped.
        case refused
    }

    public let kind: Kind
    /// The cause and the remedy, for people; without secrets.
    public let detail: String
    /// The shortest pause that the receiver asks for.
    public let retryAfter: Duration?

    public init(_ kind: Kind, _ detail: String, retryAfter: Duration? = nil) {
        (self.kind, self.detail, self.retryAfter) = (kind, detail, retryAfter)
    }
}
