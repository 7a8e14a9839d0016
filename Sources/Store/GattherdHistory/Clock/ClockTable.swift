import GattherdModel

/// The start of a clock span; all times are in microseconds.
struct ClockSpanStart: Equatable {
    /// The last number before the span.
    var after: Int64
    var uptime: Int64
    /// The proven wall clock time of the machine's start; `nil` if nothing is proven.
    var base: Int64?
    /// The uptime of the earliest row, below zero for a record of the past; `nil` if all rows are from the span.
    var earliest: Int64?
}

/// The clock spans before the wall clock was set, which survive restarts.
final class ClockTable {
    /// The maximum number of spans, for a clock that is never correct.
    fileprivate static let maximumSpans = 64

    private let connection: SQLiteConnection
    private let boot: String
    private let selectOpen: Statement
    private let begin: Statement
    private let extend: Statement
    private let end: Statement
    private let resolve: Statement
    private let removeOthers: Statement
    private let selectShifts: Statement
    private let selectPending: Statement
    private let closeOthers: Statement
    private let estimateOthers: Statement
    private let selectStart: Statement
    private let advance: Statement
    private let delete: Statement
    private let detachCursors: Statement
    private let correctCursors: Statement
    private let keepCursors: Statement

    init(_ connection: SQLiteConnection, boot: String) throws(StoreFault) {
        self.connection = connection
        self.boot = boot
        selectOpen = try Statement(ClockSQL.selectOpen, on: connection)
        begin = try Statement(ClockSQL.begin, on: connection)
        extend = try Statement(ClockSQL.extend, on: connection)
        end = try Statement(ClockSQL.end, on: connection)
        resolve = try Statement(ClockSQL.resolve, on: connection)
        removeOthers = try Statement(ClockSQL.removeOthers, on: connection)
        closeOthers = try Statement(ClockSQL.closeOthers, on: connection)
        estimateOthers = try Statement(ClockSQL.estimateOthers, on: connection)
        selectPending = try Statement(ClockSQL.selectPending, on: connection)
        selectStart = try Statement(ClockSQL.selectStart, on: connection)
        selectShifts = try Statement(ClockSQL.selectShifts, on: connection)
        advance = try Statement(ClockSQL.advance, on: connection)
        delete = try Statement(ClockSQL.delete, on: connection)
        detachCursors = try Statement(ClockSQL.detachCursors, on: connection)
        correctCursors = try Statement(ClockSQL.correctCursors, on: connection)
        keepCursors = try Statement(ClockSQL.keepCursors, on: connection)
    }

    /// True if the table is empty.
    func isEmpty() throws(StoreFault) -> Bool {
        try connection.integer("SELECT EXISTS (SELECT 1 FROM clock)") == 0
    }

    /// The clock's error in the current span; `nil` without a current span.
    func openOffset() throws(StoreFault) -> Int64? {
        try selectOpen.firstInteger(binding: boot)
    }

    /// Starts a span.
    func begin(offset: Int64, _ start: ClockSpanStart) throws(StoreFault) {
        // The number of a removed span may be given again.
        try detachCursors.run()
        try begin.run(binding: boot, offset, start.after, start.uptime, start.base, start.earliest)
    }

    /// Records that the current span, if any, has a row with a time before its start.
    func extend(to earliest: Int64) throws(StoreFault) {
        try extend.run(binding: boot, earliest)
    }

    /// Returns the start of the first pending span of this boot, with the earliest row of all of them.
    func firstStart() throws(StoreFault) -> ClockSpanStart? {
        selectStart.bind(boot)
        defer { selectStart.reset() }
        guard try selectStart.step() else { return nil }
        return ClockSpanStart(
            after: selectStart.integer(0),
            uptime: selectStart.integer(1),
            base: selectStart.optionalInteger(2),
            earliest: selectStart.optionalInteger(3)
        )
    }

    /// Returns the spans whose clock error is unknown.
    ///
    /// - Parameter uptime: The uptime now, as far as it is proof.
    /// - Returns: The spans, without an order.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    func pending(uptime: Int64) throws(StoreFault) -> [PendingClockSpan] {
        selectPending.bind(boot, uptime)
        defer { selectPending.reset() }
        var spans: [PendingClockSpan] = []
        while try selectPending.step() {
            let start = selectPending.integer(0)
            let end = max(start, selectPending.integer(1)).addingReportingOverflow(ClockWatch.tolerance).partialValue
            guard start < end else { continue }
            spans.append(
                PendingClockSpan(times: start..<end, now: selectPending.integer(2), seq: selectPending.integer(3))
            )
        }
        return spans
    }

    /// Ends spans of earlier boots.
    ///
    /// - Parameters:
    ///   - uptime: The last known uptime of the previous boot.
    ///   - seq: The last number.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func closeOthers(uptime: Int64, through seq: Int64) throws(StoreFault) {
        try closeOthers.run(binding: boot, uptime, seq)
    }

    /// Moves spans of earlier boots to their earliest possible times if their own times are certainly wrong.
    ///
    /// - Parameter now: The trusted time.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func estimateOthers(now: Int64) throws(StoreFault) {
        try estimateOthers.run(binding: boot, now &+ ClockTrust.tolerance)
        try removeOthers(all: true)
    }

    /// Ends the current span, if any.
    func end(uptime: Int64, through seq: Int64) throws(StoreFault) {
        try end.run(binding: boot, uptime, seq)
    }

    /// Sets the error of every span by a correct clock, and removes spans without an error.
    func resolve(offset: Int64) throws(StoreFault) {
        try resolve.run(binding: boot, offset)
        try removeOthers(all: false)
    }

    /// Sets the error of every span by a clock that may be wrong itself, and starts a span with the same rows.
    ///
    /// Cursors of a span that the clock calls correct belong to the new span.
    func resolveAndBegin(offset: Int64, _ start: ClockSpanStart) throws(StoreFault) {
        try resolve.run(binding: boot, offset)
        try begin(offset: offset, start)
        try keepCursors.run()
        try removeOthers(all: false)
    }

    /// Removes spans that are empty or correct, and spans of earlier boots with an unknown error.
    ///
    /// - Parameter all: True to remove also spans of earlier boots whose error might become known.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func removeOthers(all: Bool) throws(StoreFault) {
        try removeOthers.run(binding: boot, all)
    }

    /// Returns the pending shifts, in the order in which they are made.
    func pendingShifts() throws(StoreFault) -> [ClockShift] {
        try selectShifts.rows { row in
            let offset = Self.bounded(row.integer(4))
            return ClockShift(
                id: row.integer(0),
                shift: Self.bounded(row.integer(1)),
                after: row.integer(2),
                through: row.integer(3),
                times: offset..<max(offset, Self.bounded(row.integer(5))) + ClockWatch.tolerance,
                earliest: min(offset, Self.bounded(row.optionalInteger(10) ?? offset)),
                phase: ClockShift.Phase(rawValue: row.integer(6)) ?? .events,
                place: RowPosition(row, from: 7)
            )
        }
    }

    /// Returns a time or a shift within 73,000 years: sums of two do not overflow, whatever a damaged row has.
    private static func bounded(_ microseconds: Int64) -> Int64 { min(max(microseconds, -1 << 61), 1 << 61) }

    func advance(_ shift: ClockShift) throws(StoreFault) {
        try advance.run(binding: shift.id, shift.phase.rawValue, shift.place.ts, shift.place.second, shift.place.third)
    }

    /// Removes a span whose rows are corrected, and corrects the cursors of stored records that were written in it.
    func remove(_ shift: ClockShift) throws(StoreFault) {
        try correctCursors.run(binding: shift.id, shift.shift)
        try delete.run(binding: shift.id)
    }
}

/// The statements of ``ClockTable``; ?1 is the boot, or the id of a span.
private enum ClockSQL {
    /// The error of the current span.
    static let selectOpen = "SELECT offset FROM clock WHERE boot = ?1 AND seq_end IS NULL"

    /// Starts a span.
    static let begin = """
        INSERT INTO clock (boot, offset, seq, uptime, base, earliest) VALUES (?1, ?2, ?3, ?4, ?5, ?2 + ?6)
        """

    /// Moves the earliest time of the current span back.
    static let extend = """
        UPDATE clock SET earliest = ?2 WHERE boot = ?1 AND seq_end IS NULL AND coalesce(earliest, offset) > ?2
        """

    /// Ends the current span.
    static let end = """
        UPDATE clock SET time_end = offset + ?2, seq_end = ?3
        WHERE boot = ?1 AND seq_end IS NULL
        """

    /// Sets the error of the spans of this boot.
    static let resolve = "UPDATE clock SET shift = ?2 - offset WHERE boot = ?1 AND shift IS NULL"

    /// Removes spans that need no correction; ?2 also those of earlier boots that may still prove one.
    static let removeOthers = """
        DELETE FROM clock WHERE (shift IS NULL AND boot <> ?1 AND (base IS NULL OR ?2))
            OR id <= (SELECT max(id) FROM clock) - \(ClockTable.maximumSpans)
            OR abs(shift) < \(ClockWatch.tolerance) OR seq = seq_end
        """

    /// Ends spans of earlier boots at their last row.
    static let closeOthers = """
        UPDATE clock SET seq_end = ?3, time_end = coalesce(
                (SELECT max(ts) FROM sample WHERE ts BETWEEN offset + coalesce(clock.uptime, 0)
                    AND offset + ?2 + \(ClockMarkTable.interval * 2)),
                offset + coalesce(uptime, 0)
            )
        WHERE boot <> ?1 AND seq_end IS NULL
        """

    /// Moves spans of earlier boots whose times are certainly wrong.
    static let estimateOthers = """
        UPDATE clock SET shift = base - offset
        WHERE boot <> ?1 AND shift IS NULL AND (
            (base - offset > \(ClockTrust.tolerance) AND time_end + base - offset <= ?2)
            OR (base - offset < -\(ClockTrust.tolerance) AND time_end > ?2)
        )
        """

    /// The spans whose error is unknown.
    static let selectPending = """
        SELECT offset + coalesce(uptime, 0), coalesce(time_end, offset + ?2),
            iif(boot = ?1, offset, time_end) + ?2, seq
        FROM clock WHERE shift IS NULL
        """

    /// The start of the first pending span.
    static let selectStart = """
        SELECT seq, coalesce(uptime, 0), base,
            (SELECT min(earliest - offset) FROM clock WHERE boot = ?1 AND shift IS NULL)
        FROM clock WHERE boot = ?1 AND shift IS NULL ORDER BY id LIMIT 1
        """

    /// The pending shifts, with the one in progress first: a shift of an earlier span may become known meanwhile.
    static let selectShifts = """
        SELECT id, shift, seq, seq_end, offset, time_end, phase, place, place_seq, place_ix, earliest
        FROM clock WHERE shift IS NOT NULL ORDER BY phase = 0 AND place = 0, id
        """

    /// Saves the progress of a shift.
    static let advance = "UPDATE clock SET phase = ?2, place = ?3, place_seq = ?4, place_ix = ?5 WHERE id = ?1"

    /// Removes a span.
    static let delete = "DELETE FROM clock WHERE id = ?1"

    /// Forgets the removed spans of cursors.
    static let detachCursors = """
        UPDATE record_cursor SET span = NULL WHERE span IS NOT NULL AND span NOT IN (SELECT id FROM clock)
        """

    /// Corrects the cursors of a span, which belong to the next span with the same rows then, if there is one.
    static let correctCursors = """
        UPDATE record_cursor SET ts = ts + ?2, shift = shift + ?2, span = (
            SELECT later.id FROM clock AS own JOIN clock AS later
                ON later.boot = own.boot AND later.id > own.id AND later.seq <= own.seq
            WHERE own.id = ?1 ORDER BY later.id LIMIT 1
        )
        WHERE span = ?1
        """

    /// Moves the cursors of correct spans to the next span with the same rows.
    static let keepCursors = """
        UPDATE record_cursor SET span = (
            SELECT later.id FROM clock AS own JOIN clock AS later
                ON later.boot = own.boot AND later.id > own.id AND later.seq <= own.seq
            WHERE own.id = record_cursor.span ORDER BY later.id LIMIT 1
        )
        WHERE span IN (SELECT id FROM clock WHERE abs(shift) < \(ClockWatch.tolerance))
        """
}

extension RowPosition {
    fileprivate init(_ row: borrowing Statement, from column: Int32) {
        ts = row.integer(column)
        second = row.integer(column + 1)
        third = row.integer(column + 2)
    }
}
