import GattherdModel

/// The completed corrections of timestamps, which consumers of everything get as entries of the journal.
final class CorrectionTable {
    /// The maximum number of corrections that are kept, the newest; each start with a wrong clock makes a few.
    private static let most = 4096

    private let insert: Statement
    private let select: Statement
    private let selectShift: Statement
    private let prune: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        insert = try Statement(
            "INSERT INTO correction (id, after, through, shift) VALUES (?1, ?2, ?3, ?4)",
            on: connection
        )
        select = try Statement(
            "SELECT id, after, through, shift FROM correction WHERE id > ?1 ORDER BY id LIMIT ?2",
            on: connection
        )
        selectShift = try Statement(
            "SELECT sum(shift) FROM correction WHERE after < ?1 AND through >= ?1",
            on: connection
        )
        prune = try Statement(
            "DELETE FROM correction WHERE id NOT IN (SELECT id FROM correction ORDER BY id DESC LIMIT \(Self.most))",
            on: connection
        )
    }

    /// Adds a correction; only in a transaction.
    func add(_ correction: ClockCorrection, seq: Int64) throws(StoreFault) {
        let shift = Timestamp(microseconds: 0).advanced(by: correction.shift).microseconds
        try insert.run(binding: seq, correction.after, correction.through, shift)
        try prune.run()
    }

    func entries(after seq: Int64, limit: Int) throws(StoreFault) -> [JournalEntry] {
        try select.rows(binding: seq, Int64(limit)) { row in
            let correction = ClockCorrection(
                after: row.integer(1),
                through: row.integer(2),
                shift: .microseconds(row.integer(3))
            )
            return .correction(correction, seq: row.integer(0))
        }
    }

    /// The sum of the corrections of an entry's time.
    func shift(of seq: Int64) throws(StoreFault) -> Duration {
        .microseconds(try selectShift.firstInteger(binding: seq) ?? 0)
    }
}
