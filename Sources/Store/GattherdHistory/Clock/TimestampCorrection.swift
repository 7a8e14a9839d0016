import GattherdModel

/// Corrects the timestamps of rows from before the wall clock was set, a step at a time.
///
/// The progress is saved in the same transactions, so a crash resumes where it stopped.
final class TimestampCorrection {
    /// The number of rows and minutes per step.
    private static let chunk = 1024
    private static let minutes: Int64 = 16

    /// The correction in progress; `nil` if there is none.
    private(set) var current: ClockShift?
    private let connection: SQLiteConnection
    private let table: ClockTable
    private let state: StateTable
    private let rollups: Rollups
    private let mover: SampleMover
    private let shiftEvents: Statement
    private let shiftRejects: Statement
    private let shiftDevices: Statement
    private let shiftSeries: Statement
    private let selectExtents: Statement
    private let shiftExtents: Statement

    init(
        _ connection: SQLiteConnection,
        _ table: ClockTable,
        _ state: StateTable,
        _ rollups: Rollups
    ) throws(StoreFault) {
        self.connection = connection
        self.table = table
        self.state = state
        self.rollups = rollups
        mover = try SampleMover(connection)
        shiftEvents = try Statement("UPDATE event SET ts = ts + ?1 WHERE id > ?2 AND id <= ?3", on: connection)
        shiftRejects = try Statement("UPDATE reject SET ts = ts + ?1 WHERE id > ?2 AND id <= ?3", on: connection)
        shiftDevices = try Statement(
            """
            UPDATE device SET first_seen = first_seen + iif(first_seen BETWEEN ?2 AND ?3, ?1, 0),
                last_seen = last_seen + iif(last_seen BETWEEN ?2 AND ?3, ?1, 0)
            """,
            on: connection
        )
        shiftSeries = try Statement(
            "UPDATE metric_series SET first = first + ?1 WHERE first BETWEEN ?2 AND ?3",
            on: connection
        )
        selectExtents = try Statement(
            """
            SELECT max(first) FROM (
                SELECT first FROM outbox WHERE first > ?1 AND first <= ?2 ORDER BY first LIMIT \(Self.chunk)
            )
            """,
            on: connection
        )
        shiftExtents = try Statement(
            "UPDATE outbox SET ts = ts + ?1, ts_last = ts_last + ?1 WHERE first > ?2 AND first <= ?3",
            on: connection
        )
        try reload()
    }

    /// Reads the next correction from the file.
    func reload() throws(StoreFault) {
        current = try table.nextShift()
    }

    /// Runs one step of the correction.
    ///
    /// - Returns: The completed shift, if any.
    /// - Throws: ``StoreFault`` if the file cannot be written; then nothing has changed.
    func step() throws(StoreFault) -> ClockShift? {
        guard let before = current else { return nil }
        var shift = before
        var isDone = false
        defer { rollups.discardLate() }
        try connection.transaction { () throws(StoreFault) in
            if try work(on: &shift) { isDone = try !enter(after: shift.phase, &shift) }
            if isDone { try table.remove(shift) } else { try table.advance(shift) }
        }
        current = shift
        guard isDone else { return nil }
        try reload()
        return shift
    }

    /// Enters the next phase; returns false if there is none.
    private func enter(after phase: ClockShift.Phase, _ shift: inout ClockShift) throws(StoreFault) -> Bool {
        guard let next = ClockShift.Phase(rawValue: phase.rawValue + 1) else { return false }
        shift.phase = next
        switch next {
        case .events: shift.place = RowPosition(before: shift.start.event)
        case .rejects: shift.place = RowPosition(before: shift.start.reject)
        case .samples: shift.place = SampleMover.start(of: shift)
        case .oldMinutes: shift.place = RowPosition(before: Self.hour(shift.times.lowerBound))
        case .newMinutes:
            try shiftMarks(shift)
            shift.place = RowPosition(before: Self.hour(shift.times.lowerBound &+ shift.shift))
        case .journal: shift.place = RowPosition(before: shift.start.seq)
        }
        return true
    }

    /// Runs one step of the phase; returns true at its end.
    private func work(on shift: inout ClockShift) throws(StoreFault) -> Bool {
        switch shift.phase {
        case .events: try shiftRows(shiftEvents, &shift, from: shift.start.event, through: shift.end.event)
        case .rejects: try shiftRows(shiftRejects, &shift, from: shift.start.reject, through: shift.end.reject)
        case .samples: try mover.move(&shift, count: Self.chunk, rollups, purgedSamples: purgedSamples())
        case .oldMinutes: try recount(&shift, until: shift.times.upperBound)
        case .newMinutes: try recount(&shift, until: shift.times.upperBound &+ shift.shift)
        case .journal: try shiftJournal(&shift)
        }
    }

    private func shiftRows(
        _ statement: borrowing Statement,
        _ shift: inout ClockShift,
        from start: Int64,
        through end: Int64
    ) throws(StoreFault) -> Bool {
        let place = max(start, shift.place.ts)
        if shift.phase == .events && place == start { try shiftSightings(shift) }
        let last = min(end, place + Int64(Self.chunk))
        try statement.run(binding: shift.shift, place, last)
        shift.place.ts = last
        return last >= end
    }

    /// Moves the times of the undelivered extents along with their samples.
    private func shiftJournal(_ shift: inout ClockShift) throws(StoreFault) -> Bool {
        let place = max(shift.start.seq, shift.place.ts)
        guard let last = try selectExtents.firstInteger(binding: place, shift.end.seq) else { return true }
        try shiftExtents.run(binding: shift.shift, place, last)
        shift.place.ts = last
        return false
    }

    /// Moves the times of deleted rows along with the span.
    private func shiftMarks(_ shift: ClockShift) throws(StoreFault) {
        for keys in StateTable.PurgedKeys.all {
            let before = try state.purged(keys)
            var purged = before
            purged.move(shift.times, by: shift.shift)
            if purged != before { try state.set(keys, to: purged) }
        }
    }

    private func shiftSightings(_ shift: ClockShift) throws(StoreFault) {
        try run(shift, shiftDevices)
        try run(shift, shiftSeries)
    }

    private func run(_ shift: ClockShift, _ statement: borrowing Statement) throws(StoreFault) {
        try statement.run(binding: shift.shift, shift.times.lowerBound, shift.times.upperBound)
    }

    /// Rounded to whole hours, so that each hour is summarised again after its minutes.
    private func recount(_ shift: inout ClockShift, until end: Int64) throws(StoreFault) -> Bool {
        let purgedSamples = try purgedSamples()
        let end = end.rounded(upTo: Resolution.hours.length)
        let last = min(end, shift.place.ts + Self.minutes * Resolution.minutes.length)
        while shift.place.ts < last {
            try rollups.recount(minute: shift.place.ts, purgedSamples: purgedSamples)
            shift.place.ts += Resolution.minutes.length
        }
        return shift.place.ts >= end
    }

    private func purgedSamples() throws(StoreFault) -> PurgedTimes { try state.purged(.samples) }

    private static func hour(_ ts: Int64) -> Int64 { ts.rounded(downTo: Resolution.hours.length) }
}
