import GattherdModel

/// A table whose oldest rows are deleted, a few at a time.
final class PurgeTable {
    enum Kind: String, CaseIterable {
        case samples
        case rejects
        case events
        case minutes
        case hours
    }

    /// The result of a step.
    struct Outcome {
        var deleted: Int
        /// The instant up to which rows were checked; `nil` if all requested rows were.
        var reached: Int64?
    }

    /// Samples that stay although they are old by the time now: those with higher numbers than `seq`, from `start` on.
    ///
    /// Stored records may be among them that were downloaded while the clock had an error that is still unknown.
    struct Spared {
        var seq = Int64.max
        var start = Int64.max
    }

    let kind: Kind
    /// The times in which rows may have been deleted.
    private(set) var purged: PurgedTimes
    private let state: StateTable
    private let connection: SQLiteConnection
    private let selectOldest: Statement
    private let selectEnd: Statement
    private let selectLatest: Statement
    private let delete: Statement
    private let selectFirst: Statement

    init(_ kind: Kind, _ connection: SQLiteConnection, _ state: StateTable) throws(StoreFault) {
        self.kind = kind
        self.state = state
        self.connection = connection
        purged = try Self.purged(kind, state)
        selectOldest = try Statement("SELECT min(ts) FROM \(kind.table)", on: connection)
        let rows = "\(kind.table) WHERE ts > ?1 AND ts < ?2 AND (\(kind.number) <= ?3 OR ts < ?4)"
        selectEnd = try Statement("SELECT ts FROM \(rows) ORDER BY ts LIMIT 1 OFFSET ?5", on: connection)
        selectLatest = try Statement("SELECT max(ts) FROM \(rows)", on: connection)
        selectFirst = try Statement(
            """
            SELECT ts, \(kind.number) FROM \(kind.table) WHERE ts >= ?1 AND ts < ?2
            ORDER BY \(kind == .samples ? "ts, seq" : "ts") LIMIT 1
            """,
            on: connection
        )
        delete = try Statement(
            "DELETE FROM \(kind.table) WHERE ts > ?1 AND ts <= ?2 \(kind.condition)"
                + (kind == .samples ? " RETURNING seq" : ""),
            on: connection
        )
    }

    /// The time of the oldest row; `nil` without rows.
    func oldest() throws(StoreFault) -> Int64? {
        try selectOldest.firstInteger()
    }

    /// Deletes the oldest rows in its own transaction.
    ///
    /// - Parameters:
    ///   - start: The instant after which to start.
    ///   - end: The first instant whose rows stay.
    ///   - count: The number of rows to check; the rows of the last instant are checked together.
    ///   - latest: The latest possible time now.
    ///   - isPending: True if the clock that stamped the rows may be wrong.
    ///   - delivered: The last delivered reading; samples of later readings stay until they are delivered.
    ///   - spared: Samples that stay.
    /// - Returns: The number of deleted rows, and the progress.
    /// - Throws: ``StoreFault`` if the file cannot be written; then nothing has changed.
    func purge(
        after start: Int64 = .min,
        before end: Int64,
        count: Int,
        latest: Int64,
        isPending: Bool,
        delivered: Int64,
        spared: Spared = Spared()
    ) throws(StoreFault) -> Outcome {
        let reached = try instant(of: count, after: start, before: end, spared)
        let found: Int64? = if let reached { reached } else { try self.latest(after: start, before: end, spared) }
        guard let last = found else { return Outcome(deleted: 0, reached: nil) }
        var deleted = 0
        var purged = purged
        try connection.transaction { () throws(StoreFault) in
            deleted = try delete(after: start, through: last, delivered, spared)
            guard deleted > 0, let keys = kind.purgedKeys else { return }
            let behind = start.addingReportingOverflow(1).partialValue
            purged.add(from: behind, through: last, latest: latest, isPending: isPending)
            if purged != self.purged { try state.set(keys, to: purged) }
        }
        self.purged = purged
        return Outcome(deleted: deleted, reached: reached)
    }

    /// Deletes the rows; returns their number.
    private func delete(
        after start: Int64,
        through last: Int64,
        _ delivered: Int64,
        _ spared: Spared
    ) throws(StoreFault) -> Int {
        guard kind == .samples else {
            try delete.run(binding: start, last)
            return connection.changes
        }
        delete.bind(start, last, delivered, spared.seq, spared.start)
        defer { delete.reset() }
        var (count, highest) = (0, Int64.min)
        while try delete.step() { (count, highest) = (count + 1, max(highest, delete.integer(0))) }
        if count > 0, highest > (try state.value(of: .lastDeleted)) { try state.set(.lastDeleted, to: highest) }
        return count
    }

    private static func purged(_ kind: Kind, _ state: StateTable) throws(StoreFault) -> PurgedTimes {
        guard let keys = kind.purgedKeys else { return PurgedTimes() }
        return try state.purged(keys)
    }

    /// Returns the time of the first row in these times, and the number of its reading.
    ///
    /// Only samples have numbers.
    func first(in times: Range<Int64>) throws(StoreFault) -> (ts: Int64, seq: Int64)? {
        selectFirst.bind(times.lowerBound, times.upperBound)
        defer { selectFirst.reset() }
        return try selectFirst.step() ? (selectFirst.integer(0), selectFirst.integer(1)) : nil
    }

    /// Reads the times in which rows may have been deleted again.
    func readPurged() throws(StoreFault) {
        purged = try Self.purged(kind, state)
    }

    /// Corrects times that lie in the future of `now`, a trusted time; only in a transaction.
    func limitPurged(to now: Int64) throws(StoreFault) {
        guard let keys = kind.purgedKeys else { return }
        var limited = purged
        limited.limit(to: now)
        if limited != purged { try state.set(keys, to: limited) }
    }

    /// True if there is a row between the two instants that is not spared.
    func hasRow(after start: Int64, before end: Int64, spared: Spared = Spared()) throws(StoreFault) -> Bool {
        guard start < end else { return false }
        return try instant(of: 0, after: start, before: end, spared) != nil
    }

    /// Returns the time of the row after the first `count` rows; `nil` if there are fewer.
    private func instant(
        of count: Int,
        after start: Int64,
        before end: Int64,
        _ spared: Spared
    ) throws(StoreFault) -> Int64? {
        try selectEnd.firstInteger(binding: start, end, spared.seq, spared.start, Int64(count))
    }

    /// Returns the time of the last of these rows; `nil` without rows.
    private func latest(after start: Int64, before end: Int64, _ spared: Spared) throws(StoreFault) -> Int64? {
        try selectLatest.firstInteger(binding: start, end, spared.seq, spared.start)
    }
}

extension PurgeTable.Kind {
    var table: String {
        switch self {
        case .samples: "sample"
        case .rejects: "reject"
        case .events: "event"
        case .minutes: "minute"
        case .hours: "hour"
        }
    }

    /// The column with the number of a sample's reading; other rows count as the reading 0.
    fileprivate var number: String { self == .samples ? "seq" : "0" }

    /// Returns the end of the rows that belong to a time range.
    ///
    /// The end of summaries is rounded down to an hour, so that this hour can be summarised again from its minutes.
    func end(of times: Range<Int64>) -> Int64 {
        switch self {
        case .minutes, .hours: times.upperBound.rounded(downTo: Resolution.hours.length)
        case .samples, .rejects, .events: times.upperBound
        }
    }

    /// The keys in the file of the times in which rows may have been deleted.
    fileprivate var purgedKeys: StateTable.PurgedKeys? {
        switch self {
        case .samples: .samples
        case .minutes: .minutes
        case .hours: .hours
        case .rejects, .events: nil
        }
    }

    /// True for a sample whose reading is in no extent; extents do not overlap.
    private static var isNotWaiting: String {
        "coalesce((SELECT last FROM outbox WHERE first <= sample.seq ORDER BY first DESC LIMIT 1), seq - 1) < seq"
    }

    fileprivate var condition: String {
        self == .samples ? "AND (seq <= ?4 OR ts < ?5) AND (seq <= ?3 OR \(Self.isNotWaiting))" : ""
    }
}
