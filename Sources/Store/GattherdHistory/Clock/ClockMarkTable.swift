import GattherdModel

/// Keeps the clock's mark over restarts, in a table of one row.
final class ClockMarkTable {
    /// How often a mark is saved that says nothing new, in microseconds of uptime.
    static let interval: Int64 = 600_000_000

    private let upsert: Statement
    private var saved: ClockMark?

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        upsert = try Statement(
            """
            INSERT OR REPLACE INTO clock_mark
                (id, boot, uptime, wall, base, base_uptime, lag, phase, waited, synchronised, fresh)
            VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            """,
            on: connection
        )
        saved = try Self.read(connection)
    }

    /// The mark as it is in the file.
    var mark: ClockMark? { saved }

    /// Has the mark saved again, for it is not known what is in the file.
    func forget() {
        saved = nil
    }

    /// True when the file should have `mark`.
    func isDue(_ mark: ClockMark) -> Bool {
        guard let saved else { return true }
        let isSame =
            (mark.boot, mark.base, mark.lag, mark.phase, mark.isFresh)
            == (saved.boot, saved.base, saved.lag, saved.phase, saved.isFresh)
        return !isSame || (mark.uptime &- saved.uptime).magnitude >= Self.interval.magnitude
            || (mark.offset &- saved.offset).magnitude > ClockTrust.tolerance
    }

    func save(_ mark: ClockMark) throws(StoreFault) {
        let numbers: [Int64?] = [
            mark.uptime, mark.wall, mark.base, mark.baseUptime, mark.lag, mark.phase.rawValue, mark.waited,
            mark.synchronised, mark.isFresh ? 1 : 0,
        ]
        upsert.bind(mark.boot, at: 1)
        for (index, number) in numbers.enumerated() {
            if let number { upsert.bind(number, at: Int32(index) + 2) } else { upsert.bindNull(at: Int32(index) + 2) }
        }
        try upsert.run()
        saved = mark
    }

    private static func read(_ connection: SQLiteConnection) throws(StoreFault) -> ClockMark? {
        let select = try Statement(
            """
            SELECT boot, uptime, wall, base, base_uptime, lag, phase, waited, synchronised, fresh
            FROM clock_mark LIMIT 1
            """,
            on: connection
        )
        guard try select.step() else { return nil }
        return ClockMark(
            boot: select.text(0),
            uptime: select.integer(1),
            wall: select.integer(2),
            base: select.isNull(3) ? nil : select.integer(3),
            baseUptime: select.integer(4),
            lag: select.integer(5),
            phase: ClockTrust.Phase(rawValue: select.integer(6)) ?? .waiting,
            waited: select.integer(7),
            synchronised: select.integer(8),
            isFresh: select.integer(9) == 1
        )
    }
}
