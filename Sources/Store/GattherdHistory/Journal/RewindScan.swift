import GattherdModel

/// Rebuilds the extents of readings that were acknowledged, for a consumer that goes back.
///
/// There is no index of samples by number, so all samples are read once, in the order of their times, in short steps.
/// The progress is saved in the transactions of the steps, so a crash resumes where it stopped.
final class RewindScan {
    /// The maximum number of readings of one step.
    private static let chunk = 2048

    /// The numbers whose extents are rebuilt.
    private struct Progress: Equatable {
        var after: Int64
        var through: Int64
        /// The last reading that was read.
        var ts = Int64.min
        var seq = Int64.min
        /// The last correction of times; another one moves samples past the place, so the scan starts again.
        var correction: Int64
    }

    private let meter: BacklogMeter
    private let extents: ExtentTable
    private var current: Progress?
    /// The progress in the file.
    private var saved: Progress?
    private let selectReadings: Statement
    private let save: Statement
    private let remove: Statement
    private let selectCorrection: Statement
    private let select: Statement

    init(_ connection: SQLiteConnection, _ meter: BacklogMeter, _ extents: ExtentTable) throws(StoreFault) {
        (self.meter, self.extents) = (meter, extents)
        // 80 and 24 as in JournalReading.size.
        selectReadings = try Statement(
            """
            SELECT ts, seq, 80 + sum(24 + iif(typeof(value) = 'text', length(CAST(value AS BLOB)), 0)) FROM sample
            WHERE (ts, seq) > (?1, ?2) GROUP BY ts, seq ORDER BY ts, seq LIMIT \(Self.chunk)
            """,
            on: connection
        )
        save = try Statement(
            """
            INSERT INTO rewind (id, after, through, ts, seq, correction) VALUES (1, ?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (id) DO UPDATE SET after = excluded.after, through = excluded.through, ts = excluded.ts,
                seq = excluded.seq, correction = excluded.correction
            """,
            on: connection
        )
        remove = try Statement("DELETE FROM rewind", on: connection)
        selectCorrection = try Statement("SELECT max(id) FROM correction", on: connection)
        select = try Statement("SELECT after, through, ts, seq, correction FROM rewind", on: connection)
        try reload()
    }

    /// Makes a scan leave out the readings up to ?1, which were dropped meanwhile.
    ///
    /// The numbers of dropped readings stay marked as lost, also those that the scan had rebuilt before.
    static let leaveOut = "UPDATE rewind SET after = max(after, ?1)"

    /// Reads the progress from the file, which may have changed.
    func reload() throws(StoreFault) {
        saved = try select.rows { row in
            Progress(
                after: row.integer(0),
                through: row.integer(1),
                ts: row.integer(2),
                seq: row.integer(3),
                correction: row.integer(4)
            )
        }.first
        current = saved
    }

    /// The last number whose extent is rebuilt; `nil` if there is nothing to do.
    var end: Int64? { current?.through }

    func didCommit() { saved = current }
    func didRollBack() { current = saved }

    /// Starts a scan for the numbers above `after`, up to and including `through`; only in a transaction.
    ///
    /// A scan in progress continues if it has these numbers, else one for all of them starts.
    func start(after: Int64, through: Int64) throws(StoreFault) {
        guard after < through else { return }
        if let current, current.after <= after, current.through >= through { return }
        let wanted = Progress(
            after: min(after, current?.after ?? after),
            through: max(through, current?.through ?? through),
            correction: try selectCorrection.firstInteger() ?? 0
        )
        try set(wanted)
    }

    /// Ends the scan, because no consumer needs its numbers any more; only in a transaction.
    func cancel() throws(StoreFault) { try set(nil) }

    /// Runs one step; only in a transaction.
    ///
    /// - Returns: At the end of the scan, the number after which all extents exist; otherwise `nil`.
    /// - Throws: ``StoreFault`` if the file cannot be read or written.
    func step() throws(StoreFault) -> Int64? {
        guard var next = current else { return nil }
        let correction = try selectCorrection.firstInteger() ?? 0
        if correction != next.correction { (next.ts, next.seq, next.correction) = (.min, .min, correction) }
        let readings = try selectReadings.rows(binding: next.ts, next.seq) { row in
            Extent(first: row.integer(1), bytes: Int(row.integer(2)), ts: row.integer(0), arrived: row.integer(0))
        }
        let wanted = readings.filter { $0.first > next.after && $0.first <= next.through }
        meter.add(try extents.insertMissing(wanted.sorted { $0.first < $1.first }))
        guard readings.count == Self.chunk, let last = readings.last else {
            try set(nil)
            return next.after
        }
        (next.ts, next.seq) = (last.earliest, last.first)
        try set(next)
        return nil
    }

    private func set(_ progress: Progress?) throws(StoreFault) {
        if let progress {
            try save.run(binding: progress.after, progress.through, progress.ts, progress.seq, progress.correction)
        } else {
            try remove.run()
        }
        current = progress
    }
}
