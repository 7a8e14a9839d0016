import GattherdModel

/// A table whose oldest rows go, a few at a time.
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
        /// Rows up to this instant were looked at; `nil` for all that were asked for.
        var reached: Int64?
    }

    let kind: Kind
    /// The times in which rows may be gone.
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
        selectEnd = try Statement(
            "SELECT ts FROM \(kind.table) WHERE ts > ?1 AND ts < ?2 ORDER BY ts LIMIT 1 OFFSET ?3",
            on: connection
        )
        selectLatest = try Statement("SELECT max(ts) FROM \(kind.table) WHERE ts > ?1 AND ts < ?2", on: connection)
        selectFirst = try Statement(
            """
            SELECT ts, \(kind == .samples ? "seq" : "0") FROM \(kind.table) WHERE ts >= ?1 AND ts < ?2
            ORDER BY \(kind == .samples ? "ts, seq" : "ts") LIMIT 1
            """,
            on: connection
        )
        delete = try Statement(
            "DELETE FROM \(kind.table) WHERE ts > ?1 AND ts <= ?2 \(kind.condition)",
            on: connection
        )
    }

    /// When the oldest row is from; `nil` when there is none.
    func oldest() throws(StoreFault) -> Int64? {
        defer { selectOldest.reset() }
        return try selectOldest.step() && !selectOldest.isNull(0) ? selectOldest.integer(0) : nil
    }

    /// Deletes the oldest rows in a transaction of its own.
    ///
    /// - Parameters:
    ///   - start: The instant behind which to begin.
    ///   - end: The first instant whose rows stay.
    ///   - count: Rows to look at; those of the last instant are looked at together.
    ///   - latest: The latest time that it may be now.
    ///   - isPending: True if the clock that stamped the rows may be wrong.
    ///   - delivered: Samples of later readings stay as long as their reading waits for delivery.
    /// - Returns: How many rows went, and how far it got.
    /// - Throws: ``StoreFault`` when the file cannot be written; then nothing has changed.
    func purge(
        after start: Int64 = .min,
        before end: Int64,
        count: Int,
        latest: Int64,
        isPending: Bool,
        delivered: Int64
    ) throws(StoreFault) -> Outcome {
        let reached = try instant(of: count, after: start, before: end)
        let found: Int64? = if let reached { reached } else { try self.latest(after: start, before: end) }
        guard let last = found else { return Outcome(deleted: 0, reached: nil) }
        var deleted = 0
        var purged = purged
        try connection.transaction { () throws(StoreFault) in
            delete.bind(start, last)
            if kind == .samples { delete.bind(delivered, at: 3) }
            try delete.run()
            deleted = connection.changes
            guard deleted > 0, let keys = kind.purgedKeys else { return }
            let behind = start.addingReportingOverflow(1).partialValue
            purged.add(from: behind, through: last, latest: latest, isPending: isPending)
            if purged != self.purged { try state.set(keys, to: purged) }
        }
        self.purged = purged
        return Outcome(deleted: deleted, reached: reached)
    }

    private static func purged(_ kind: Kind, _ state: StateTable) throws(StoreFault) -> PurgedTimes {
        guard let keys = kind.purgedKeys else { return PurgedTimes() }
        return try state.purged(keys)
    }

    /// The first row of these times: when it is from, and the number of its reading.
    ///
    /// Only samples have numbers.
    func first(in times: Range<Int64>) throws(StoreFault) -> (ts: Int64, seq: Int64)? {
        selectFirst.bind(times.lowerBound, times.upperBound)
        defer { selectFirst.reset() }
        return try selectFirst.step() ? (selectFirst.integer(0), selectFirst.integer(1)) : nil
    }

    /// Reads the times in which rows may be gone again.
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

    /// True when there is a row between the two instants.
    func hasRow(after start: Int64, before end: Int64) throws(StoreFault) -> Bool {
        guard start < end else { return false }
        return try instant(of: 0, after: start, before: end) != nil
    }

    /// When the row is from that `count` rows come before; `nil` when there are not that many.
    private func instant(of count: Int, after start: Int64, before end: Int64) throws(StoreFault) -> Int64? {
        selectEnd.bind(start, end, Int64(count))
        defer { selectEnd.reset() }
        return try selectEnd.step() ? selectEnd.integer(0) : nil
    }

    /// When the last of these rows is from; `nil` when there is none.
    private func latest(after start: Int64, before end: Int64) throws(StoreFault) -> Int64? {
        selectLatest.bind(start, end)
        defer { selectLatest.reset() }
        return try selectLatest.step() && !selectLatest.isNull(0) ? selectLatest.integer(0) : nil
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

    /// The names under which the file has the times in which rows may be gone.
    fileprivate var purgedKeys: StateTable.PurgedKeys? {
        switch self {
        case .samples: .samples
        case .minutes: .minutes
        case .hours: .hours
        case .rejects, .events: nil
        }
    }

    /// True of a sample whose reading is in no extent; those do not overlap.
    private static var isNotWaiting: String {
        "coalesce((SELECT last FROM outbox WHERE first <= sample.seq ORDER BY first DESC LIMIT 1), seq - 1) < seq"
    }

    fileprivate var condition: String {
        self == .samples ? "AND (seq <= ?3 OR \(Self.isNotWaiting))" : ""
    }
}
