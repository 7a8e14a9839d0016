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
    /// The highest reserved `seq`.
    public var mark: Int64
}

extension HistoryContents {
    /// Counts the rows of an open file.
    init(of connection: SQLiteConnection) throws(StoreFault) {
        func count(_ table: String) throws(StoreFault) -> Int {
            Int(try connection.integer("SELECT count(*) FROM \(table)"))
        }
        let pageSize = try connection.integer("PRAGMA page_size")
        self.init(
            size: try connection.integer("PRAGMA page_count") * pageSize,
            free: try connection.integer("PRAGMA freelist_count") * pageSize,
            samples: try count("sample"),
            span: try TimeRangeQuery(on: connection).all(withSummaries: false),
            minutes: try count("minute"),
            hours: try count("hour"),
            events: try count("event"),
            rejects: try count("reject"),
            logged: Int(try connection.integer("SELECT sum(last - first + 1) FROM outbox")),
            mark: try StateTable(connection).value(of: .seq)
        )
    }
}

/// Checks a file for damage and contradictions.
struct HistoryCheck {
    private let connection: SQLiteConnection

    init(_ connection: SQLiteConnection) {
        self.connection = connection
    }

    /// Returns the problems, at most a hundred; empty if there are none.
    func findings() throws(StoreFault) -> [String] {
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

    private func texts(_ sql: String) throws(StoreFault) -> [String] {
        try Statement(sql, on: connection).rows { row in row.text(0) }
    }

    /// The queries for contradictions that SQLite's own check cannot detect.
    private static let contradictions = """
        SELECT DISTINCT 'a row of "' || "table" || '" refers to a missing row' FROM pragma_foreign_key_check UNION ALL
        SELECT 'samples of a series that is not there' WHERE EXISTS (
            SELECT 1 FROM sample WHERE series NOT IN (SELECT id FROM metric_series)
        ) UNION ALL
        SELECT 'it is not clear which readings wait for delivery' WHERE EXISTS (
            SELECT 1 FROM outbox WHERE last < first OR ts_last < ts
                OR last >= (SELECT min(first) FROM outbox AS next WHERE next.first > outbox.first)
        ) UNION ALL
        SELECT 'a summary of a quantity that is not there' WHERE EXISTS (
            SELECT 1 FROM minute WHERE quantity NOT IN (SELECT id FROM quantity)
            UNION ALL SELECT 1 FROM hour WHERE quantity NOT IN (SELECT id FROM quantity)
        ) UNION ALL
        SELECT 'a summary without a number' WHERE EXISTS (
            SELECT 1 FROM minute WHERE n < 1 UNION ALL SELECT 1 FROM hour WHERE n < 1
        )
        """
}
