import GattherdLog
import GattherdModel

/// Assigns numbers to readings; outlives the database connection, so that no number is assigned twice.
final class SequenceSource {
    let file: SequenceFile
    private var numbers: SequenceNumbers
    /// The last number that was or may have been assigned before this run.
    private var start: Int64
    /// The consumers whose receivers have been at a number of this file in this run.
    private var contacts: Set<String> = []
    /// The highest numbers that receivers without a contact in this run can have, by consumer; see ``ContactTable``.
    var limits: [String: Int64] = [:]
    /// The numbers of entries that could not be committed in this run.
    private(set) var unused = UnusedNumbers()

    /// Starts above all marks.
    ///
    /// - Parameters:
    ///   - path: The path of the sequence file beside the database.
    ///   - mark: The database's mark.
    ///   - log: The log for an invalid or missing sequence file.
    init(path: String, above mark: Int64, _ log: Log) {
        file = SequenceFile(path: path)
        start = max(mark, file.mark(expecting: mark, log))
        numbers = SequenceNumbers(above: start)
    }

    /// The last number that was or may have been assigned.
    var last: Int64 { numbers.last }
    /// The highest number that may be assigned without another write.
    var reserved: Int64 { numbers.reserved }

    /// Continues above the mark of another database.
    func raise(above mark: Int64) {
        guard mark > numbers.reserved else { return }
        numbers = SequenceNumbers(above: mark)
        start = max(start, mark)
    }

    // MARK: - Receivers that keep the cursor

    /// The highest number that the receiver of a consumer can have of this file.
    ///
    /// Before the first contact in this run, it has entries up to the end of the run of its last contact. If it has
    /// more, an older copy of both files is in use. Its new entries have numbers that the receiver has for other ones.
    func highest(of consumer: String, acknowledged: Int64) -> Int64 {
        if contacts.contains(consumer) { return last }
        return limit(of: consumer) ?? (acknowledged > start ? last : start)
    }

    /// The last number up to which an older copy has the receiver's entries: the end of the run of the last contact.
    ///
    /// Entries of later runs may have numbers that the receiver has for other ones. The receivers of all consumers must
    /// be able to continue from there.
    func common(with consumer: String) -> Int64 {
        guard limit(of: consumer) != nil else { return 0 }
        return limits.values.min() ?? 0
    }

    private func limit(of consumer: String) -> Int64? { limits[consumer] ?? limits[ContactTable.anyone] }

    /// Records that the consumer is at the number of its receiver, and may deliver all entries after it.
    func recordContact(of consumer: String) {
        contacts.insert(consumer)
        limits[ContactTable.anyone] = nil
    }

    // MARK: - Numbers

    /// Reserves `count` more numbers durably.
    ///
    /// - Returns: The mark if it is new: store it in the database too, then call ``didStore(_:)``.
    /// - Throws: ``StoreFault`` if the mark cannot be written.
    func prepare(_ count: Int) throws(StoreFault) -> Int64? {
        guard let mark = numbers.markNeeded(for: count) else { return nil }
        try file.write(mark)
        return mark
    }

    /// Records that `mark` is durable.
    func didStore(_ mark: Int64) {
        numbers.reserve(through: mark)
    }

    /// Returns the next number.
    func next() -> Int64 {
        numbers.next()
    }

    /// Records that the numbers assigned after `seq` belong to a failed commit.
    ///
    /// The numbers are not assigned again, because after an I/O error it is unknown if the commit reached the disk.
    func addUnused(after seq: Int64) { unused.add(after: seq, through: last) }
}

extension SequenceFile {
    /// Returns the mark, or 0 without one; logs a missing mark that should exist.
    fileprivate func mark(expecting other: Int64, _ log: Log) -> Int64 {
        switch read() {
        case .mark(let mark): return mark
        case .missing:
            if other > 0 { log(.warning, "the sequence file is missing", [LogField("path", path)]) }
        case .garbled(let reason):
            log(.error, "the sequence file cannot be read", [LogField("path", path), LogField("reason", reason)])
        }
        return 0
    }
}

/// The sequence numbers of readings, which only grow and are never reused.
///
/// Numbers are reserved durably, in blocks ahead of their use, in both the database and ``SequenceFile``. The next
/// opener starts above the highest mark of both. Neither a commit that a power loss rolled back nor a database restored
/// from an older copy therefore repeats a number that a subscriber may have seen; only older copies of both would. A
/// crash leaves a gap of at most one block.
struct SequenceNumbers {
    /// The maximum, which is exact as a JSON number too.
    static let highest: Int64 = 1 << 53
    private static let block: Int64 = 100_000

    /// The last number that was or may have been assigned.
    private(set) var last: Int64
    /// The highest number that may be assigned.
    private(set) var reserved: Int64

    /// Starts above `mark`, without a reservation.
    init(above mark: Int64) {
        last = mark
        reserved = mark
    }

    /// Returns the mark that must be durable before `count` more numbers are assigned; `nil` if it is durable already.
    func markNeeded(for count: Int) -> Int64? {
        let end = last + Int64(count)
        return end > reserved ? end + Self.block : nil
    }

    /// Records that `mark` is durable.
    mutating func reserve(through mark: Int64) {
        reserved = mark
    }

    /// Returns the next number.
    mutating func next() -> Int64 {
        last += 1
        return last
    }
}

extension SequenceSource {
    /// Returns the source of the file before, or a new one, above the database's mark.
    static func continuing(
        _ old: SequenceSource?,
        path: String,
        above mark: Int64,
        _ log: Log
    ) throws(StoreFault) -> SequenceSource {
        let source = old ?? SequenceSource(path: path + "-seq", above: mark, log)
        source.raise(above: mark)
        guard source.last <= SequenceNumbers.highest else {
            throw StoreFault("\(path): its sequence numbers are used up; move the file aside")
        }
        return source
    }
}
