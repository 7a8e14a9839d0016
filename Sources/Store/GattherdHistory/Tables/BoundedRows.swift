import GattherdModel

/// A table of events or rejects, which others can cause, with its own share of the file.
///
/// If the table exceeds its share, the oldest rows of the largest source are deleted. A noisy source therefore evicts
/// neither samples nor the rows of other sources.
final class BoundedRows {
    /// The maximum number of rows and bytes.
    struct Limit {
        let rows: Int64
        let bytes: Int64
    }

    private struct Amount {
        var rows: Int64 = 0
        var bytes: Int64 = 0

        init() {}

        /// Reads two columns, within bounds in which sums do not overflow, whatever a damaged row has.
        init(_ row: borrowing Statement, from column: Int32) {
            rows = min(max(0, row.integer(column)), 1 << 60)
            bytes = min(max(0, row.integer(column + 1)), 1 << 60)
        }
    }

    private struct Source {
        let device: String?
        let kind: String
        let amount: Amount
    }

    /// The maximum number of rows that one step deletes.
    private static let chunk: Int64 = 1024

    private let limit: Limit
    private let total: Statement
    private let largest: Statement
    private let deleteOldest: Statement
    private let forget: Statement
    private let connection: SQLiteConnection
    private var amount: Amount?

    init(_ kind: PurgeTable.Kind, _ limit: Limit, _ connection: SQLiteConnection) throws(StoreFault) {
        self.limit = limit
        self.connection = connection
        let table = kind.table
        total = try Statement("SELECT sum(n), sum(bytes) FROM source WHERE list = '\(table)'", on: connection)
        largest = try Statement(
            """
            SELECT nullif(device, ''), kind, n, bytes FROM source WHERE list = '\(table)'
            ORDER BY iif(?1, n, bytes) DESC LIMIT 1
            """,
            on: connection
        )
        let condition = kind == .events ? "device IS ?1 AND kind = ?2" : "device = ?1 AND ?2 = ''"
        deleteOldest = try Statement(
            """
            DELETE FROM \(table) WHERE id IN (
                SELECT id FROM \(table) INDEXED BY \(table)_of_device WHERE \(condition) ORDER BY ts LIMIT ?3
            )
            """,
            on: connection
        )
        forget = try Statement(
            "DELETE FROM source WHERE list = '\(table)' AND device = coalesce(?1, '') AND kind = ?2",
            on: connection
        )
    }

    /// The size of the rows and their index entries in bytes.
    var bytes: Int64 { current.bytes }

    /// True if rows must be deleted.
    var isExcessive: Bool { current.rows > limit.rows || current.bytes > limit.bytes }

    /// Makes the next decision count again; call this after rows may have been added or deleted.
    func recount() {
        amount = nil
    }

    /// Deletes some of the oldest rows of the largest source.
    func shorten() throws(StoreFault) {
        defer { recount() }
        guard let source = try largestSource() else { return }
        try deleteOldest.run(binding: source.device, source.kind, surplus(of: source.amount))
        // A damaged file may count a source that has no rows.
        if connection.changes == 0 { try forget.run(binding: source.device, source.kind) }
    }

    /// The number of the source's rows to delete now: not all at once, because another source may soon be the largest.
    private func surplus(of source: Amount) -> Int64 {
        let average = max(1, source.bytes / max(1, source.rows))
        let wanted = max(current.rows - limit.rows, (current.bytes - limit.bytes + average - 1) / average)
        return max(1, min(wanted, Self.chunk, source.rows / 8))
    }

    private var current: Amount {
        if let amount { return amount }
        let found = (try? count()) ?? Amount()
        amount = found
        return found
    }

    private func count() throws(StoreFault) -> Amount {
        defer { total.reset() }
        return try total.step() ? Amount(total, from: 0) : Amount()
    }

    private func largestSource() throws(StoreFault) -> Source? {
        largest.bind(current.rows > limit.rows)
        defer { largest.reset() }
        guard try largest.step() else { return nil }
        let amount = Amount(largest, from: 2)
        return Source(device: largest.optionalText(0), kind: largest.text(1), amount: amount)
    }
}

extension HistoryLimits {
    /// The maximum size of events, and of rejects, in bytes: 1/64 of the file, 32 MiB without a limit.
    private var listBytes: Int64 { maxSize.map { Swift.max(65_536, $0 / 64) } ?? 32 << 20 }

    func limit(of list: PurgeTable.Kind) -> BoundedRows.Limit {
        BoundedRows.Limit(rows: list == .rejects ? 100_000 : 200_000, bytes: listBytes)
    }

    /// The pages reserved for events and rejects.
    ///
    /// Twice their bytes, because pages are not full after only some of their rows were deleted.
    var listPages: Int64 { maxSize == nil ? 0 : Self.pages(listBytes * 2) }

    /// Returns the number of pages that an amount of events and rejects counts as.
    static func pages(_ bytes: Int64) -> Int64 { (bytes * 2 + 4095) / 4096 }
}
