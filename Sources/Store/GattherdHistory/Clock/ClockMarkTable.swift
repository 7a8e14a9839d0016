import GattherdModel

/// The clock's mark, which survives restarts in a table of one row.
final class ClockMarkTable {
    /// The longest time between two saves of a mark, in microseconds of uptime.
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

    /// The mark in the file.
    var mark: ClockMark? { saved }

    /// Marks the saved state as unknown after a failed commit, so that the mark is saved again.
    func invalidate() {
        saved = nil
    }

    /// True if `mark` should be saved.
    func isDue(_ mark: ClockMark) -> Bool {
        guard let saved else { return true }
        let isSame =
            (mark.boot, mark.base, mark.lag, mark.phase, mark.isFresh)
            == (saved.boot, saved.base, saved.lag, saved.phase, saved.isFresh)
        return !isSame || (mark.uptime &- saved.uptime).magnitude >= Self.interval.magnitude
            || (mark.offset &- saved.offset).magnitude > ClockTrust.tolerance
    }

    func save(_ mark: ClockMark) throws(StoreFault) {
        try upsert.run(
            binding: mark.boot,
            mark.uptime,
            mark.wall,
            mark.base,
            mark.baseUptime,
            mark.lag,
            mark.phase.rawValue,
            mark.waited,
            mark.synchronised,
            mark.isFresh
        )
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
            base: select.optionalInteger(3),
            baseUptime: select.integer(4),
            lag: select.integer(5),
            phase: ClockTrust.Phase(rawValue: select.integer(6)) ?? .waiting,
            waited: select.integer(7),
            synchronised: select.integer(8),
            isFresh: select.integer(9) == 1
        )
    }
}
