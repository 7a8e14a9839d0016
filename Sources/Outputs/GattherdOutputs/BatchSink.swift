public import GattherdModel

/// The part of an output that writes batches to the receiver: a file, a database, a web service.
///
/// ``BatchOutput`` makes one call at a time. It bounds the time of each, repeats failed ones and keeps the cursor. So a
/// sink needs no retries and no timers.
public protocol BatchSink: Sendable {
    /// Returns when the receiver has all entries durably; after a failure the same entries may be written again.
    ///
    /// `entries` is never empty. The task is cancelled after ``BatchOptions/writeTimeout``. A sink that blocks must
    /// use a thread of its own.
    func write(_ entries: [JournalEntry]) async throws(OutputFault)

    /// Closes connections and files; the last call, after the end of ``write(_:)``.
    func close() async
}

/// The sink of a receiver that keeps the cursor itself.
///
/// The cursor moves in the same transaction as the entries, so the receiver gets each exactly once. The receiver's
/// cursor is authoritative: after each fault the output reads it and continues there, also backwards.
public protocol CursorKeepingSink: BatchSink {
    /// Returns the receiver's cursor for the journal with this epoch; 0 if the receiver has no entry of it.
    ///
    /// Called at the start and after each fault, before anything is written. A receiver that does not know the epoch
    /// but one of ``JournalEpoch/earlier`` returns its cursor there. If it has the ``JournalEpoch/origin``, it need not
    /// get the common entries again.
    func cursor(in epoch: JournalEpoch) async throws(OutputFault) -> Int64

    /// Writes consecutive entries in one transaction, and moves the receiver's cursor from `after` to `through`.
    ///
    /// There are no entries if the receiver has refused the only one up to `through`. If the cursor is not at `after`,
    /// throw a fault: the cursor is asked again.
    func write(_ entries: [JournalEntry], after: Int64, through: Int64) async throws(OutputFault)

    /// Records that the entries of the gap, which begins at the receiver's cursor, are permanently missing, and moves
    /// the cursor over them.
    func record(_ gap: JournalGap) async throws(OutputFault)
}

extension CursorKeepingSink {
    /// Never called: entries are written with a cursor.
    public func write(_ entries: [JournalEntry]) async throws(OutputFault) {
        throw OutputFault(.misconfigured, "entries of this output need a cursor")
    }
}

/// The reason why a receiver did not accept entries.
public struct OutputFault: Error, Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// The receiver does not answer, is busy or full; retried with growing pauses.
        case unavailable
        /// A person must change the configuration or the receiver; retried after long pauses.
        case misconfigured
        /// The receiver will never accept at least one of the entries; that entry is located and skipped.
        case refused
    }

    public let kind: Kind
    /// The cause and the remedy, for people; without secrets.
    public let detail: String
    /// The shortest pause that the receiver asks for, zero for a pause of any length; `nil` if it asks for none.
    public let retryAfter: Duration?
    /// The longest pause before the next attempt, for a fault that may end by itself.
    public let retryWithin: Duration?
    /// The number of refused entries, if the receiver has stored all others of the batch; 0 if that is not known.
    public let lost: Int

    public init(
        _ kind: Kind,
        _ detail: String,
        retryAfter: Duration? = nil,
        retryWithin: Duration? = nil,
        lost: Int = 0
    ) {
        (self.kind, self.detail, self.lost) = (kind, detail, lost)
        (self.retryAfter, self.retryWithin) = (retryAfter, retryWithin)
    }
}
