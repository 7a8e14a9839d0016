public import GattherdModel

/// Compares the summaries with the rows that they summarise.
struct SummaryCheck {
    /// The spans of a table that differ from the finer rows.
    struct Difference {
        let resolution: Resolution
        /// The number of rows that differ, are missing or are surplus.
        var rows: Int
        /// The first span that differs.
        let first: Int64

        /// The difference, for people.
        var text: String {
            let name = resolution == .minutes ? "minutes" : "hours"
            let finer = resolution == .minutes ? "samples" : "minutes"
            let time = Timestamp(microseconds: first).rfc3339
            return "\(rows) summaries of \(name) differ from the \(finer), the first at \(time)"
        }

        /// The difference and its remedy.
        var advice: String { text + "; stop the daemon, then: gattherd db check --repair" }
    }

    private let connection: SQLiteConnection
    private let state: StateTable

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        self.connection = connection
        state = try StateTable(connection)
    }

    /// Returns the tables that differ, as far as all finer rows exist.
    func differences() throws(StoreFault) -> [Difference] {
        // Rows whose timestamps are being corrected are summarised last.
        guard try connection.integer("SELECT EXISTS (SELECT 1 FROM clock WHERE shift IS NOT NULL)") == 0 else {
            return []
        }
        let minutes = try difference(.minutes, of: .samples, purged: .minutes, mark: .minutes)
        let hours = try difference(.hours, of: .minutes, purged: .hours, mark: .hours)
        return [minutes, hours].compactMap(\.self)
    }

    /// Rewinds the summaries to the first difference; the next daemon summarises again from there.
    func repair(_ differences: [Difference]) throws(StoreFault) {
        guard let minutes = differences.first(where: { $0.resolution == .minutes })?.first else {
            guard let hours = differences.first else { return }
            return try rewind(.hours, to: hours.first, .hours)
        }
        try rewind(.minutes, to: minutes, .minutes)
        let start = complete(try state.purged(.minutes), try state.purged(.hours), .hours)
        let hour = max(start, min(minutes, differences.last?.first ?? .max).rounded(downTo: Resolution.hours.length))
        if try hour < state.value(of: .hours) { try rewind(.hours, to: hour, .hours) }
    }

    private func rewind(_ resolution: Resolution, to mark: Int64, _ key: StateTable.Key) throws(StoreFault) {
        let delete = try Statement("DELETE FROM \(resolution.table) WHERE ts >= ?1", on: connection)
        try delete.run(binding: mark)
        try state.set(key, to: mark)
    }

    /// Returns the start of the first span that is complete.
    private func complete(_ finer: PurgedTimes, _ purged: PurgedTimes, _ resolution: Resolution) -> Int64 {
        max(finer.past, purged.past).rounded(upTo: resolution.length)
    }

    private func difference(
        _ resolution: Resolution,
        of finerKeys: StateTable.PurgedKeys,
        purged keys: StateTable.PurgedKeys,
        mark: StateTable.Key
    ) throws(StoreFault) -> Difference? {
        guard let finer = resolution.finer else { return nil }
        let end = try state.value(of: mark)
        let compare = try Statement(Self.comparison(of: resolution, with: finer), on: connection)
        let next = try Statement(
            """
            SELECT min(ts) FROM (
                SELECT min(ts) AS ts FROM \(resolution.table) WHERE ts >= ?1 AND ts < ?2
                UNION ALL SELECT min(ts) FROM \(finer.table) WHERE ts >= ?1 AND ts < ?2
            )
            """,
            on: connection
        )
        var found: Difference?
        let (purgedFiner, purged) = (try state.purged(finerKeys), try state.purged(keys))
        var start = complete(purgedFiner, purged, resolution)
        let (finerAhead, ahead) = (Self.bounds(purgedFiner.ahead), Self.bounds(purged.ahead))
        while start < end, let first = try next.firstInteger(binding: start, end) {
            let window = first.rounded(downTo: resolution.length)
            start = min(end, window.addingReportingOverflow(resolution.length * 24).partialValue)
            compare.bind(window, start, finerAhead.lower, finerAhead.upper, ahead.lower, ahead.upper)
            defer { compare.reset() }
            guard try compare.step(), compare.integer(0) > 0 else { continue }
            found = found ?? Difference(resolution: resolution, rows: 0, first: compare.integer(1))
            found?.rows += Int(compare.integer(0))
        }
        return found
    }

    /// Returns bounds that contain nothing for `nil`.
    private static func bounds(_ times: Range<Int64>?) -> (lower: Int64, upper: Int64) {
        (times?.lowerBound ?? .max, times?.upperBound ?? .min)
    }

    /// Counts the spans from ?1 to ?2 that differ, and selects the first.
    ///
    /// Spans in which rows from ?3 to ?4 or from ?5 to ?6 may have been deleted are not compared.
    ///
    /// Sums may differ by rounding errors, because they depend on the order. The limit is computed with real numbers,
    /// because SQLite's `abs()` fails with the lowest integer, which some devices send for an unknown value.
    private static func comparison(of resolution: Resolution, with finer: Resolution) -> String {
        let rows =
            finer == .samples
            ? """
            SELECT sample.ts AS ts, quantity, 1 AS n, CAST(value AS REAL) AS sum, value AS min, value AS max
            FROM sample CROSS JOIN metric_series AS series ON series.id = sample.series
            WHERE sample.ts >= ?1 AND sample.ts < ?2 AND typeof(value) IN ('integer', 'real')
            """
            : "SELECT ts, quantity, n, sum, min, max FROM \(finer.table) WHERE ts >= ?1 AND ts < ?2"
        return """
            SELECT count(*), min(ts) FROM (
                SELECT ts FROM (
                    SELECT ts, quantity, n, sum, min, max, 1 AS side FROM \(resolution.table) WHERE ts >= ?1 AND ts < ?2
                    UNION ALL SELECT \(HistoryViews.floored("ts", to: resolution.length)), quantity, sum(n), sum(sum), min(min),
                        max(max), -1 FROM (\(rows)) GROUP BY 1, 2
                ) WHERE NOT (ts < ?4 AND ts > ?3 - \(resolution.length)) AND NOT (ts < ?6 AND ts > ?5 - \(resolution.length))
                GROUP BY ts, quantity
                HAVING sum(side) <> 0 OR sum(n * side) <> 0 OR min(min) <> max(min) OR min(max) <> max(max)
                    OR abs(sum(sum * side)) > 1e-9 * max(n) * (max(abs(0.0 + min(min)), abs(0.0 + max(max))) + 1)
            )
            """
    }
}

/// Repairs summaries that differ from the samples, while no daemon has the file.
public enum SummaryRepair {
    /// - Returns: The differences; the next daemon repairs them after a while.
    /// - Throws: ``StoreFault`` if a daemon has the file, or the file cannot be written.
    public static func run(path: String) throws(StoreFault) -> [String] {
        let path = DatabaseName.resolved(path)
        try FileContent.expectExistingHistory(path)
        let lock = try FileLock(database: path)
        defer { withExtendedLifetime(lock) {} }
        let connection = try HistoryDatabase.openForMaintenance(path)
        var differences: [SummaryCheck.Difference] = []
        try connection.transaction { () throws(StoreFault) in
            let check = try SummaryCheck(connection)
            differences = try check.differences()
            try check.repair(differences)
        }
        return differences.map(\.text)
    }
}
