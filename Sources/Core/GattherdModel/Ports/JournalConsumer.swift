/// The properties of a consumer of the journal.
public struct JournalConsumerOptions: Hashable, Sendable {
    /// The kinds of entries that a consumer gets.
    public enum Content: Hashable, Sendable {
        case readings
        /// Readings, events, rejects and clock corrections.
        case everything
    }

    /// The name of the cursor, for example `mqtt`; a consumer with another name has a cursor of its own.
    public var name: String
    public var content = Content.readings
    /// The maximum number of entries that wait for the consumer.
    ///
    /// Beyond it the consumer skips the oldest, which is counted and recorded. With `nil` only the limits of the file
    /// bound the backlog.
    public var longestBacklog: Int64?

    public init(name: String, content: Content = .readings, longestBacklog: Int64? = nil) {
        self.name = name
        self.content = content
        self.longestBacklog = longestBacklog
    }
}

/// The journal as one consumer sees it, with a durable cursor of its own.
///
/// `GattherdHistory` implements it. A consumer that is slow or dead costs the others nothing.
public protocol JournalConsumer: Sendable {
    /// Returns a stream of the newest committed number: the current one, then one after each commit. Negative while
    /// unknown.
    func heads() -> AsyncStream<Int64>
    /// Returns up to `limit` entries after `seq`, in order.
    func entries(after seq: Int64, limit: Int) async throws(StoreFault) -> JournalBatch
    /// Returns the same from memory without waiting; `nil` if ``entries(after:limit:)`` must read the file.
    func recent(after seq: Int64, limit: Int) -> JournalBatch?
    /// The number of corrections of times in this run. When it grows, readings received before may have wrong times.
    ///
    /// Always 0 for a consumer of everything, which gets each correction as an entry.
    var correctionCount: Int { get }
    /// Returns the cursor: the consumer has acknowledged all entries up to this number.
    func acknowledged() async throws(StoreFault) -> Int64
    /// Moves the cursor forward to `seq`. Retention may then delete what all consumers have passed.
    func acknowledge(through seq: Int64) async throws(StoreFault)
    /// Returns the epoch of the journal, together with which a number names an entry forever.
    func epoch() async throws(StoreFault) -> JournalEpoch
    /// Moves the cursor to `seq`, back or forward, for a receiver that has all entries up to there and no others.
    ///
    /// Returns when the entries after `seq` can be fetched, which takes a scan of the file if they were acknowledged.
    ///
    /// Entries after `seq` that the journal no longer has are reported as ``JournalBatch/missing``.
    ///
    /// - Throws: ``StoreFault``; `busy` if the journal never had the number `seq`. Then it has started a new epoch,
    ///   unless it did so before while the file was open.
    func rewind(to seq: Int64) async throws(StoreFault)
}

extension JournalConsumer {
    public func recent(after seq: Int64, limit: Int) -> JournalBatch? { nil }
    public var correctionCount: Int { 0 }
}

/// A period in which a journal only grew.
///
/// A file that is created, or put back from an older copy, starts a new epoch.
public struct JournalEpoch: Hashable, Sendable {
    /// The random id, as 32 lowercase hexadecimal digits.
    public let text: String
    /// The earlier epochs, the newest first.
    ///
    /// The file was restored from copies of them, and no number is used twice.
    ///
    /// A receiver that does not know this epoch continues from its cursor in the newest epoch that it knows.
    public let earlier: [String]
    /// The last number before the epoch; entries up to there are copies of entries of earlier epochs.
    public let after: Int64
    /// The epoch that this one does not continue, although the file is an older copy of it.
    public let origin: Origin?

    /// An epoch that went on in another file, so that numbers were used twice.
    public struct Origin: Hashable, Sendable {
        public let epoch: String
        /// The last common number: up to there, both files have the same entries.
        public let through: Int64

        public init(_ epoch: String, through: Int64) {
            (self.epoch, self.through) = (epoch, through)
        }
    }

    public init(_ text: String, earlier: [String] = [], after: Int64 = 0, origin: Origin? = nil) {
        (self.text, self.earlier, self.after, self.origin) = (text, earlier, after, origin)
    }
}

/// Entries that a consumer cannot get any more.
public struct JournalGap: Hashable, Sendable {
    /// The missing entries have higher numbers than this, up to and including ``through``.
    public let after: Int64
    public let through: Int64
    /// The cause, for people.
    public let reason: String

    public init(after: Int64, through: Int64, reason: String) {
        (self.after, self.through, self.reason) = (after, through, reason)
    }
}
