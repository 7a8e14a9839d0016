import GattherdModel

/// Another layout of samples in SQLite.
struct Candidate: Sendable {
    let name: String
    let schema: String
    /// Stores ?1 (µs), ?2 (a series) and ?3 (its value).
    let insert: String
    /// Selects the samples of the series ?1 from ?2 to before ?3; the columns are `ts` and `value`.
    let range: String
    let newest: String

    private init(_ name: String, _ schema: String) {
        self.name = name
        self.schema = schema
        insert = "INSERT INTO sample (ts, series, value) VALUES (?1, ?2, ?3)"
        range = "SELECT ts, value FROM sample WHERE series = ?1 AND ts >= ?2 AND ts < ?3"
        newest = "SELECT value FROM sample WHERE series = ?1 ORDER BY ts DESC LIMIT 1"
    }

    private init(packed name: String) {
        self.name = name
        schema = "CREATE TABLE sample (key INTEGER PRIMARY KEY, value REAL) STRICT"
        insert = "INSERT INTO sample (key, value) VALUES (?2 << 42 | ?1 / 1000, ?3)"
        let range = "key >= (?1 << 42 | ?2 / 1000) AND key < (?1 << 42 | ?3 / 1000)"
        self.range = "SELECT (key & 0x3ffffffffff) * 1000 AS ts, value FROM sample WHERE \(range)"
        newest = "SELECT value FROM sample WHERE key < (?1 + 1) << 42 ORDER BY key DESC LIMIT 1"
    }

    private static let columns = "ts INTEGER NOT NULL, series INTEGER NOT NULL, value REAL"

    static let all = [
        Candidate("rows as they come, no index", "CREATE TABLE sample (\(columns)) STRICT"),
        Candidate(
            "rows, index (series, ts)",
            "CREATE TABLE sample (\(columns)) STRICT; CREATE INDEX by_series ON sample (series, ts)"
        ),
        Candidate(
            "rows, covering index",
            "CREATE TABLE sample (\(columns)) STRICT; CREATE INDEX by_series ON sample (series, ts, value)"
        ),
        Candidate(
            "numbered rows, index (series, ts)",
            """
            CREATE TABLE sample (seq INTEGER PRIMARY KEY, \(columns)) STRICT;
            CREATE INDEX by_series ON sample (series, ts)
            """
        ),
        Candidate(
            "key (series, ts)",
            "CREATE TABLE sample (\(columns), PRIMARY KEY (series, ts)) STRICT, WITHOUT ROWID"
        ),
        Candidate(packed: "key series << 42 | ms"),
        Candidate(
            "key (ts, series)",
            "CREATE TABLE sample (\(columns), PRIMARY KEY (ts, series)) STRICT, WITHOUT ROWID"
        ),
    ]
}

/// A file with another layout and the same samples.
struct CandidateHistory {
    private let candidate: Candidate
    private let path: String
    private let workload: Workload

    init(_ candidate: Candidate, path: String, _ workload: Workload) {
        self.candidate = candidate
        self.path = path
        self.workload = workload
    }

    func measure() async throws -> [Double?] {
        let before = octetsWritten()
        let time = try await seconds { try fill() }
        let count = Double(workload.count)
        let written = Double(octetsWritten() - before) / count
        return [Double(octets(of: path)) / count, written, count / time / 1000] + (try queries())
    }

    private func fill() throws {
        let database = try PlainDatabase(path: path)
        try database.execute(candidate.schema)
        let insert = try database.query(candidate.insert)
        for start in stride(from: 0, to: workload.count, by: workload.commit) {
            try database.execute("BEGIN IMMEDIATE")
            for index in start..<start + workload.commit {
                insert.bind(workload.time(of: index).microseconds, Int64(workload.series(of: index)))
                insert.bind(real: workload.value(of: index), at: 3)
                try insert.run()
            }
            try database.execute("COMMIT")
        }
        try database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private func queries() throws -> [Double?] {
        let database = try PlainDatabase(path: path)
        let end = workload.end.microseconds
        let range = try database.query(candidate.range)
        let spans = try database.query(
            "SELECT ts / 60000000, count(*), min(value), avg(value), max(value) FROM (\(candidate.range)) GROUP BY 1"
        )
        let newest = try database.query(candidate.newest)
        newest.bind(7)
        func time(_ query: PlainDatabase.Query, hours: Int64) throws -> Double {
            query.bind(7, end - hours * 3_600_000_000, end)
            return try shortestMilliseconds { try query.run() }
        }
        return try [
            time(range, hours: 1), time(range, hours: 24), time(spans, hours: 24),
            shortestMilliseconds { try newest.run() },
        ]
    }
}
