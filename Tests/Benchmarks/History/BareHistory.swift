import GattherdModel

/// Another layout, filled with the same samples.
struct BareHistory {
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
        let database = try BareDatabase(path: path)
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
        let database = try BareDatabase(path: path)
        let end = workload.end.microseconds
        let range = try database.query(candidate.range)
        let spans = try database.query(
            "SELECT ts / 60000000, count(*), min(value), avg(value), max(value) FROM (\(candidate.range)) GROUP BY 1"
        )
        let newest = try database.query(candidate.newest)
        newest.bind(7)
        func time(_ query: BareDatabase.Query, hours: Int64) throws -> Double {
            query.bind(7, end - hours * 3_600_000_000, end)
            return try shortestMilliseconds { try query.run() }
        }
        return try [
            time(range, hours: 1), time(range, hours: 24), time(spans, hours: 24),
            shortestMilliseconds { try newest.run() },
        ]
    }
}
