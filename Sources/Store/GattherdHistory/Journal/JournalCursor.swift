import GattherdModel

/// The cursor of one consumer of the journal.
struct JournalCursor {
    /// The number of entries that a crash may repeat while the cursor waits to be saved with another commit.
    ///
    /// Busy devices commit several hundred entries at a time, so that the next commit comes first.
    private static let repeated: Int64 = 1000

    let consumer: JournalConsumerOptions
    /// The last number that the consumer has acknowledged together with all before it.
    private(set) var seq: Int64
    /// The number in the file.
    private(set) var saved: Int64
    /// The last number that the consumer has skipped, if any.
    private(set) var skipped = Int64.min
    /// The number of the last skipped entry that the journal had.
    private var lost = Int64.min
    /// The last number that was read back from the file.
    private var read: Int64 = 0

    init(_ consumer: JournalConsumerOptions, seq: Int64, saved: Int64) {
        self.consumer = consumer
        self.seq = seq
        self.saved = saved
    }

    /// The last number that was handed over, which is delivered even if it is dropped here.
    func handedOver(_ tail: JournalTail) -> Int64 {
        max(seq, read, tail.position(of: consumer.name))
    }

    /// True if the cursor differs from that in the file.
    var isSaveDue: Bool { seq != saved }

    /// True if the cursor has moved so far that it must be saved at once, so that a crash repeats few entries.
    var isSaveUrgent: Bool { seq - saved >= Self.repeated }

    /// Moves the cursor forward, never back.
    mutating func acknowledge(through seq: Int64) {
        self.seq = max(self.seq, seq)
    }

    /// Moves the cursor forward over entries that the consumer does not get.
    ///
    /// - Parameters:
    ///   - seq: The last number.
    ///   - isLoss: True if there are entries among the numbers.
    mutating func skip(through seq: Int64, isLoss: Bool) {
        skipped = max(skipped, seq)
        if isLoss { lost = max(lost, seq) }
        acknowledge(through: seq)
    }

    /// Moves the cursor back or forward, and gets the entries after it again.
    mutating func move(to seq: Int64) {
        (self.seq, read, skipped, lost) = (seq, min(read, seq), min(skipped, seq), min(lost, seq))
    }

    /// The entries after `seq` that the consumer has skipped, if any.
    func gap(after seq: Int64) -> JournalGap? {
        guard lost > seq else { return nil }
        return JournalGap(after: seq, through: lost, reason: "more than the longest backlog")
    }

    mutating func didRead(through seq: Int64) {
        read = max(read, seq)
    }

    mutating func didSave(_ seq: Int64) {
        saved = seq
    }
}

/// The cursors in the file, also those of consumers that are not configured now.
final class CursorTable {
    private let select: Statement
    private let upsert: Statement
    private let selectLowest: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        select = try Statement("SELECT cursor FROM consumer WHERE name = ?1", on: connection)
        selectLowest = try Statement("SELECT min(cursor) FROM consumer", on: connection)
        upsert = try Statement(
            """
            INSERT INTO consumer (name, cursor) VALUES (?1, ?2)
            ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor
            """,
            on: connection
        )
    }

    /// Returns the cursor; `nil` for a consumer that never had one.
    func cursor(of consumer: String) throws(StoreFault) -> Int64? {
        // Numbers begin at 1, but a damaged row may have any.
        try select.firstInteger(binding: consumer).map { max(0, $0) }
    }

    /// The lowest cursor of all consumers, or 0.
    func lowest() throws(StoreFault) -> Int64 {
        max(0, try selectLowest.firstInteger() ?? 0)
    }

    func set(_ consumer: String, to cursor: Int64) throws(StoreFault) {
        try upsert.run(binding: consumer, cursor)
    }
}
