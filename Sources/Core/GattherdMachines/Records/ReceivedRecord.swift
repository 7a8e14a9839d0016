import GattherdModel

/// A stored record as a device sends it.
public struct ReceivedRecord: Hashable, Sendable {
    /// The record's number; `nil` if the device does not number records.
    public var number: Int64?
    /// The device's clock when it made the record, in microseconds; `nil` if the record has no such time.
    public var reading: Int64?
    /// The record's age in microseconds, if the device sends that.
    public var age: Int64?
    /// The time to the next record of an unnumbered series, in microseconds.
    public var interval: Int64?
    /// A digest of the contents.
    public var digest: Int64

    public init(
        number: Int64? = nil,
        reading: Int64? = nil,
        age: Int64? = nil,
        interval: Int64? = nil,
        digest: Int64 = 0
    ) {
        (self.number, self.reading, self.age) = (number, reading, age)
        (self.interval, self.digest) = (interval, digest)
    }
}

/// The records that a download requests.
public enum RecordRequest: Hashable, Sendable {
    case all
    /// All records, because the device no longer has the newest stored one.
    case allAfterNone
    /// The records from the newest stored one on, which is requested again to recognise a device that was reset.
    case from(Int64)
    /// The records from the newest stored one on, up to a number. After the numbers have wrapped, the device may still
    /// have higher ones from before.
    case within(ClosedRange<Int64>)

    /// The lowest requested number.
    var lowest: Int64 {
        switch self {
        case .all, .allAfterNone: 0
        case .from(let number): number
        case .within(let range): range.lowerBound
        }
    }

    /// True if the request leaves out records by their number.
    var isFiltered: Bool {
        switch self {
        case .all, .allAfterNone: false
        case .from, .within: true
        }
    }

    /// The relation of a request to the one before it.
    public enum Relation: Hashable, Sendable {
        /// Continues after the records that are stored.
        case new
        /// Repeats the previous request, because some record of it is missing.
        case repetition
        /// Completes the previous request: the numbers have wrapped, so one request cannot cover them all.
        case continuation
    }
}

/// A record as a point in the series.
struct RecordMark: Hashable, Sendable {
    var number: Int64
    /// The device's own time of the record, or a digest of the record.
    var digest: Int64
    /// The gateway's time.
    var time: Int64
    /// The base of that time; see ``RecordTracker/setBase(_:)``.
    var base: Int64 = 0
    /// The time of its receipt if ``time`` is only one of several possible times; else `nil`.
    var receipt: Int64?

    /// The latest possible time of the record.
    var latest: Int64 { receipt ?? time }

    /// Moves the times of a record that was received in this boot.
    mutating func move(by step: Int64, to base: Int64) {
        guard self.base != 0 else { return }
        (time, receipt, self.base) = (time &+ step, receipt.map { $0 &+ step }, base)
    }
}

/// The records of one request, as long as they arrive in order: a download that ended early continues after them.
///
/// A live record can arrive at any moment. A record therefore counts only when a later one has followed, and nothing
/// counts once a record was earlier than the first: such a device sends the newest record first. If a live record
/// cannot be told from a stored one, a later record must prove that the record was made before the request.
struct RecordProgress: Hashable, Sendable {
    /// The number of the first record.
    private(set) var first: Int64?
    /// The newest record that a later one has followed.
    private(set) var front: RecordMark?
    /// The last record.
    private(set) var last: RecordMark?
    private var isDisordered = false
    /// The error of two readings of a clock with a resolution of a second.
    private static let tolerance: Int64 = 2_000_000
    /// The record that counts once a later one proves it.
    private var candidate: RecordMark?

    /// - Parameters:
    ///   - first: The number of the first record.
    ///   - front: The last record that counts.
    init(first: Int64? = nil, front: RecordMark? = nil) {
        (self.first, self.front) = (first, front)
    }

    /// Changes the records.
    mutating func update(_ change: (inout RecordMark) -> Void) {
        if var mark = front {
            change(&mark)
            front = mark
        }
        if var mark = last {
            change(&mark)
            last = mark
        }
        if var mark = candidate {
            change(&mark)
            candidate = mark
        }
    }

    /// Raises the numbers of all records.
    mutating func raiseNumbers(by round: Int64) {
        first = first.map { $0 &+ round }
        update { $0.number += round }
    }

    /// Adds a record that follows the ones before without a hole, as far as is known.
    ///
    /// - Parameters:
    ///   - mark: The record.
    ///   - elapsed: The time since the start of the request, if the record may be a live one; else `nil`.
    mutating func add(_ mark: RecordMark, after elapsed: Int64? = nil) {
        guard !isDisordered else { return }
        guard let first else { return (self.first, last, candidate) = (mark.number, mark, mark) }
        guard mark.number > first else {
            (self.first, front, last, candidate, isDisordered) = (nil, nil, nil, nil, true)
            return
        }
        if let elapsed {
            prove(by: mark, after: elapsed)
        } else if let last, mark.number > last.number {
            front = last
        }
        last = mark
    }

    /// Counts the candidate if the record is later by more than the time since the start of the request.
    ///
    /// The device's clock was then at least that far beyond the candidate's time when the candidate arrived.
    private mutating func prove(by mark: RecordMark, after elapsed: Int64) {
        if let candidate, candidate.number < mark.number {
            guard mark.time &- candidate.time > elapsed &+ Self.tolerance else { return }
            front = candidate
        }
        candidate = mark
    }
}
