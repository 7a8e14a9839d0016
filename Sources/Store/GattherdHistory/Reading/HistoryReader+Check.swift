public import GattherdModel

/// The row counts and times of a history.
public struct HistoryContents: Hashable, Sendable {
    /// The size of the database and its free space, in bytes.
    public var size: Int64
    public var free: Int64
    public var samples: Int
    /// The times of the oldest and the newest sample.
    public var span: ClosedRange<Timestamp>?
    public var minutes: Int
    public var hours: Int
    public var events: Int
    public var rejects: Int
    /// The number of readings that are undelivered, or delivered but not deleted yet.
    public var logged: Int
    /// The highest reserved number of a reading.
    public var mark: Int64
}

extension HistoryReader {
    /// Checks every page, row and reference, while the daemon continues.
    ///
    /// - Returns: The problems, at most a hundred; empty if there are none.
    /// - Throws: ``StoreFault`` if the file cannot be read.
    public func check() throws(StoreFault) -> [String] {
        do throws(StoreFault) {
            let findings = try texts("PRAGMA integrity_check(100)").filter { $0 != "ok" }
            guard findings.isEmpty else { return findings }
            return try texts(Self.contradictions) + summaryFindings()
        } catch {
            guard error.kind == .damaged else { throw error }
            return [error.detail]
        }
    }

    /// Returns the summaries that differ from the samples, in one snapshot.
    private func summaryFindings() throws(StoreFault) -> [String] {
        try connection.execute("BEGIN")
        defer { try? connection.execute("ROLLBACK") }
        return try SummaryCheck(connection).differences().map(\.advice)
    }

    /// The queries for contradictions that SQLite's own check cannot detect.
    private static let contradictions = """
        SELECT DISTINCT 'a row of "' || "table" || '" refers to nothing' FROM pragma_foreign_key_check UNION ALL
        SELECT 'samples of a series that is not there' WHERE EXISTS (
            SELECT 1 FROM sample WHERE series NOT IN (SELECT id FROM metric_series)
        ) UNION ALL
        SELECT 'it is not clear which readings wait for delivery' WHERE EXISTS (
            SELECT 1 FROM (SELECT *, lead(first) OVER (ORDER BY first) AS next FROM outbox)
            WHERE last < first OR ts_last < ts OR next <= last
        ) UNION ALL
        SELECT 'a summary of a quantity that is not there' WHERE EXISTS (
            SELECT 1 FROM minute WHERE quantity NOT IN (SELECT id FROM quantity)
            UNION ALL SELECT 1 FROM hour WHERE quantity NOT IN (SELECT id FROM quantity)
        ) UNION ALL
        SELECT 'a summary without a number' WHERE EXISTS (
            SELECT 1 FROM minute WHERE n < 1 UNION ALL SELECT 1 FROM hour WHERE n < 1
        )
        """

    /// Counts all rows, which reads the whole file.
    public func contents() throws(StoreFault) -> HistoryContents {
        func count(_ table: String) throws(StoreFault) -> Int {
            Int(try connection.integer("SELECT count(*) FROM \(table)"))
        }
        let oldest = try connection.optionalInteger("SELECT min(ts) FROM sample")
        let newest = try connection.optionalInteger("SELECT max(ts) FROM sample")
        let pageSize = try connection.integer("PRAGMA page_size")
        return HistoryContents(
            size: try connection.integer("PRAGMA page_count") * pageSize,
            free: try connection.integer("PRAGMA freelist_count") * pageSize,
            samples: try count("sample"),
            span: Self.span(oldest, newest),
            minutes: try count("minute"),
            hours: try count("hour"),
            events: try count("event"),
            rejects: try count("reject"),
            logged: Int(try connection.integer("SELECT sum(last - first + 1) FROM outbox")),
            mark: try StateTable(connection).value(of: .seq)
        )
    }

    private static func span(_ oldest: Int64?, _ newest: Int64?) -> ClosedRange<Timestamp>? {
        guard let oldest, let newest, oldest <= newest else { return nil }
        return Timestamp(microseconds: oldest)...Timestamp(microseconds: newest)
    }

    private func texts(_ sql: String) throws(StoreFault) -> [String] {
        let statement = try Statement(sql, on: connection)
        var texts: [String] = []
        while try statement.step() { texts.append(statement.text(0)) }
        return texts
    }
}
