extension FleetDatabase {
    /// Rows that an upgrade has left in a default partition, or a default partition that is still large.
    package struct UnmovedRows: Hashable, Sendable {
        /// The number of partitions that are missing; `nil` if it is not known.
        package let days: Int?
        package let problem: String
    }

    /// A day of a table whose rows have no partition, and the size up to which the default partition is read.
    private struct StrandedDay: Hashable, Sendable {
        let table: String
        let start: String
        let size: String

        init?(_ row: [String?]) {
            guard row.count == 3, let table = row[0], let start = row[1], let size = row[2] else { return nil }
            (self.table, self.start, self.size) = (table, start, size)
        }
    }

    /// The days that were found so far, and the result of their moves.
    private struct Moves {
        var days: Set<StrandedDay> = []
        var moved = 0
        var failures: [String] = []

        var hasFailed: Bool { failures.count >= FleetDatabase.mostFailures }

        var unmoved: UnmovedRows? { failures.first.map { UnmovedRows(days: days.count - moved, problem: $0) } }
    }

    /// The number of failed days after which the others are not tried: the database may be away.
    private static let mostFailures = 3
    /// The number of searches for days: gateways deliver while rows are moved.
    private static let searches = 3
    /// The number of attempts to shrink default partitions that somebody holds; each waits for 200 ms.
    private static let shrinkings = 5

    /// Moves rows without a partition; each day has a transaction of its own, so gateways deliver in between, and a
    /// repeated command continues.
    ///
    /// - Returns: The rows that are left.
    func moveStrandedRows(within limit: Duration, _ progress: (Int, Int) -> Void) async -> UnmovedRows? {
        var moves = Moves()
        do throws(Failure) {
            for _ in 0..<Self.searches where !moves.hasFailed {
                let days = try await strandedDays().filter { !moves.days.contains($0) }
                guard !days.isEmpty else { break }
                await move(days, within: limit, &moves, progress)
            }
            let problem = try await shrinkOthers()
            return moves.unmoved ?? problem.map { UnmovedRows(days: nil, problem: $0) }
        } catch {
            return moves.unmoved ?? UnmovedRows(days: nil, problem: "\(error)")
        }
    }

    private func strandedDays() async throws(Failure) -> [StrandedDay] {
        let rows = try await asOwner("SELECT parent, day, size FROM gattherd.stranded(\(Int64.max))")
        return rows.compactMap { StrandedDay($0) }
    }

    private func move(
        _ days: [StrandedDay],
        within limit: Duration,
        _ moves: inout Moves,
        _ progress: (Int, Int) -> Void
    ) async {
        moves.days.formUnion(days)
        for day in days where !moves.hasFailed {
            do throws(Failure) {
                try await move(day, within: limit)
                moves.moved += 1
                progress(moves.moved, moves.days.count)
            } catch {
                moves.failures.append("\(error)")
            }
        }
    }

    private func move(_ day: StrandedDay, within limit: Duration) async throws(Failure) {
        let isFree = try await asOwner(
            "SELECT gattherd.fill_block($1, $2::bigint, $3::bigint)",
            [.text(day.table), .text(day.start), .text(day.size)],
            within: limit
        )
        guard isFree == [["t"]] else { throw Failure(Self.holding("gattherd.\(day.table)_other")) }
    }

    /// Shrinks the default partitions without rows.
    ///
    /// - Returns: The reason why no new partitions can be made; `nil` if they can.
    private func shrinkOthers() async throws(Failure) -> String? {
        var large: [[String?]] = []
        for _ in 0..<Self.shrinkings {
            _ = try await asOwner("SELECT gattherd.shrink_others(\(Int64.max))")
            large = try await asOwner("SELECT other, mib, is_used FROM gattherd.large_others()")
            guard large.contains(where: { $0.last == "f" }) else { break }
        }
        guard let first = large.first, first.count == 3, let name = first[0], let size = first[1] else { return nil }
        let table = "gattherd.\(name)"
        guard first[2] == "t" else { return Self.holding(table) }
        return """
            \(table) has rows and \(size) MiB, and above 32 MiB no new partitions are made; if repeating does not help, \
            see 'Retention' in docs/fleet.md
            """
    }

    private static func holding(_ table: String) -> String { "a query, or autovacuum, holds \(table)" }

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
