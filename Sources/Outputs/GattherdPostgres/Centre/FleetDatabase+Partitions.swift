extension FleetDatabase {
    /// Rows that an upgrade has left in a default partition.
    package struct UnmovedRows: Hashable, Sendable {
        /// The number of partitions that are missing; `nil` if it is not known.
        package let days: Int?
        package let problem: String
    }

    /// A day of a table whose rows have no partition, and the size up to which the default partition is read.
    private struct StrandedDay: Sendable {
        let table: String
        let start: String
        let size: String

        init?(_ row: [String?]) {
            guard row.count == 3, let table = row[0], let start = row[1], let size = row[2] else { return nil }
            (self.table, self.start, self.size) = (table, start, size)
        }
    }

    /// The number of failed days after which the others are not tried: the database may be away.
    private static let mostFailures = 3

    /// Moves rows without a partition; each day has a transaction of its own, so gateways deliver in between, and a
    /// repeated command continues.
    ///
    /// - Returns: The rows that are left.
    func moveStrandedRows(within limit: Duration, _ progress: (Int, Int) -> Void) async -> UnmovedRows? {
        let days: [StrandedDay]
        do throws(Failure) {
            days = try await strandedDays()
        } catch {
            return UnmovedRows(days: nil, problem: "\(error)")
        }
        var (moved, failures): (Int, [String]) = (0, [])
        for day in days where failures.count < Self.mostFailures {
            do throws(Failure) {
                try await move(day, within: limit)
                moved += 1
                progress(moved, days.count)
            } catch {
                failures.append("\(error)")
            }
        }
        // The retention and later upgrades repeat this.
        _ = try? await asOwner("SELECT gattherd.shrink_others(\(Int64.max))")
        return failures.first.map { UnmovedRows(days: days.count - moved, problem: $0) }
    }

    private func strandedDays() async throws(Failure) -> [StrandedDay] {
        let rows = try await asOwner("SELECT parent, day, size FROM gattherd.stranded(\(Int64.max))")
        return rows.compactMap { StrandedDay($0) }
    }

    private func move(_ day: StrandedDay, within limit: Duration) async throws(Failure) {
        let isFree = try await asOwner(
            "SELECT gattherd.make_block($1, $2::bigint, $3::bigint)",
            [.text(day.table), .text(day.start), .text(day.size)],
            within: limit
        )
        guard isFree == [["t"]] else { throw Failure("a query holds gattherd.\(day.table)_other") }
    }

    /// Runs a statement as the owner of the tables, in a transaction of its own.
    private func asOwner(
        _ sql: String,
        _ parameters: [PostgresParameter] = [],
        within limit: Duration = FleetDatabase.longest
    ) async throws(Failure) -> [[String?]] {
        try await transaction(within: limit) { (connection) throws(PostgresError) in
            try connection.script(Self.becomeOwner)
            return .success(try connection.rows(sql, parameters))
        }
    }
}
