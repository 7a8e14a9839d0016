public import GattherdModel

extension BatchMachine {
    public enum Event: Hashable, Sendable {
        case start
        /// Delivers the remaining entries for at most this time, then ends.
        case stop(drain: Duration)
        /// ``BatchMachine/deadline`` has been reached.
        case tick
        /// The newest committed number.
        case headMoved(Int64)
        case cursorLoaded(Int64)
        case fetched(JournalBatch)
        /// The journal has corrected the times of readings, which may be fetched already.
        case timesCorrected
        case saved(Int64)
        case journalFailed(JournalOperation)
        /// The journal is at the cursor of ``Effect/rewind(_:)``.
        case rewound
        /// The call of the sink with this ticket has ended; `nil` is success.
        case written(ticket: Int, OutputFault?)
        /// The call with this ticket has returned the receiver's cursor.
        case receiverCursorLoaded(ticket: Int, Int64)
        /// The sink is closed.
        case closed
    }

    public enum JournalOperation: String, Hashable, Sendable {
        case load
        case fetch
        case save
        case rewind
    }

    public enum Effect: Hashable, Sendable {
        /// Loads the cursor.
        case load
        case fetch(after: Int64, limit: Int)
        /// Writes these entries; ``Event/written(ticket:_:)`` follows.
        ///
        /// A receiver that keeps the cursor moves it from `after` to `through`.
        case write([JournalEntry], after: Int64, through: Int64, ticket: Int)
        /// Asks for the receiver's cursor; ``Event/receiverCursorLoaded(ticket:_:)`` or the fault follows.
        case loadReceiverCursor(ticket: Int)
        /// Makes the receiver record the gap; ``Event/written(ticket:_:)`` follows.
        case record(JournalGap, ticket: Int)
        /// Cancels the call; its end is still reported.
        case cancelWrite(ticket: Int)
        /// Saves the cursor.
        case save(Int64)
        /// Moves the journal to this cursor.
        case rewind(Int64)
        /// Closes the sink.
        case close
        case report(Report)
        case finish
    }

    /// A change to report to people.
    public enum Report: Hashable, Sendable {
        /// The receiver accepts entries, for the first time or again.
        case connected
        /// The receiver accepts no entries; reported again only for a fault of another kind.
        case failed(OutputFault, retryAfter: Duration)
        /// The receiver refuses this entry, which is skipped.
        case skipped(JournalEntry, OutputFault)
        /// The receiver has all entries of a batch but this number, which are skipped; the entry is the batch's first.
        case lost(Int, JournalEntry, OutputFault)
        /// History has lost these entries before the receiver had them; it has recorded that, if it keeps the cursor.
        case missing(JournalGap)
    }

    /// The visible part of the state.
    public struct Progress: Hashable, Sendable {
        public var state = OutputStatus.State.idle
        public var cursor: Int64?
        public var backlog: Int64 = 0
        public var delivered: UInt64 = 0
        public var skipped: UInt64 = 0
        /// The attempts that failed.
        public var failures: UInt64 = 0
        /// The current fault, or the refusal since the last success.
        public var fault: OutputFault?
        /// The time of the next attempt, on the machine's clock.
        public var nextTry: Duration?
        /// The oldest entry that is fetched and not delivered.
        public var oldest: JournalEntry?
        /// The time, on the machine's clock, since which undelivered entries are known.
        public var waitingSince: Duration?
        /// The last time, on the machine's clock, at which no entry waited; `nil` if there was none in this run.
        public var completeUntil: Duration?
        /// The fetched entries in memory, and their bytes.
        public var fetched = 0
        public var fetchedBytes = 0
    }
}
