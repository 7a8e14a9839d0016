import GattherdModel

/// Corrects the timestamps of rows from before the wall clock was set, a step at a time.
///
/// The progress is saved in the same transactions, so a crash resumes where it stopped.
final class TimestampCorrection {
    /// The number of rows and minutes per step.
    private static let chunk = 1024
    private static let minutes: Int64 = 16
    /// The maximum number of hours without a corrected row that one step passes over.
    private static let hours = 256
    /// The number of samples from which an hour is summarised again without a search for corrected rows.
    private static let hourSamples: Int64 = 65_536

    /// The corrections that are not complete, in order; the first one is in progress.
    private(set) var pending: [ClockShift] = []
    private let connection: SQLiteConnection
    private let table: ClockTable
    private let state: StateTable
    private let rollups: Rollups
    private let mover: SampleMover
    private let events: NumberedRows
    private let rejects: NumberedRows
    private let extents: NumberedRows
    private let corrections: CorrectionTable
    private let sequence: SequenceSource
    private let shiftDevices: Statement
    private let shiftSeries: Statement
    private let selectFirstRow: Statement
    private let selectMoved: Statement

    init(
        _ connection: SQLiteConnection,
        _ table: ClockTable,
        _ state: StateTable,
        _ rollups: Rollups,
        _ sequence: SequenceSource
    ) throws(StoreFault) {
        self.sequence = sequence
        self.connection = connection
        self.table = table
        self.state = state
        self.rollups = rollups
        mover = try SampleMover(connection)
        events = try NumberedRows("event", number: "id", times: ["ts"], connection)
        rejects = try NumberedRows("reject", number: "id", times: ["ts"], connection)
        extents = try NumberedRows("outbox", number: "first", times: ["ts", "ts_last", "arrived"], connection)
        corrections = try CorrectionTable(connection)
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
        selectFirstRow = try Statement(
            """
            SELECT min(ts) FROM (
                SELECT min(ts) AS ts FROM sample WHERE ts >= ?1
                UNION ALL SELECT min(ts) FROM minute WHERE ts >= ?1 UNION ALL SELECT min(ts) FROM hour WHERE ts >= ?1
            )
            """,
            on: connection
        )
        selectMoved = try Statement(
            """
            SELECT count(*), max(seq > ?3 AND seq <= ?4) FROM (
                SELECT seq FROM sample WHERE ts >= ?1 AND ts < ?2 LIMIT \(Self.hourSamples)
            )
            """,
            on: connection
        )
        try reload()
    }

    /// The correction in progress; `nil` if there is none.
    var current: ClockShift? { pending.first }

    /// Reads the next corrections from the file.
    func reload() throws(StoreFault) {
        pending = try table.pendingShifts()
    }

    /// Runs one step of the correction.
    ///
    /// - Returns: The completed correction, if any, as an entry of the journal.
    /// - Throws: ``StoreFault`` if the file cannot be written; then nothing has changed.
    func step() throws(StoreFault) -> JournalEntry? {
        guard let before = current else { return nil }
        var shift = before
        var entry: JournalEntry?
        let mark = try sequence.prepare(1)
        defer { rollups.discardLate() }
        try connection.transaction { () throws(StoreFault) in
            if let mark { try state.set(.seq, to: mark) }
            var isDone = false
            if try work(on: &shift) { isDone = try !enter(after: shift.phase, &shift) }
            if isDone { entry = try complete(shift) } else { try table.advance(shift) }
        }
        if let mark { sequence.didStore(mark) }
        pending[0] = shift
        if entry != nil { try reload() }
        return entry
    }

    /// Removes the correction and records it as an entry of the journal.
    private func complete(_ shift: ClockShift) throws(StoreFault) -> JournalEntry {
        let (correction, seq) = (shift.correction, sequence.next())
        try table.remove(shift)
        try corrections.add(correction, seq: seq)
        return .correction(correction, seq: seq)
    }

    /// Enters the next phase; returns false if there is none.
    private func enter(after phase: ClockShift.Phase, _ shift: inout ClockShift) throws(StoreFault) -> Bool {
        guard let next = ClockShift.Phase(rawValue: phase.rawValue + 1) else { return false }
        shift.phase = next
        switch next {
        case .events, .rejects: shift.place = RowPosition(before: shift.after)
        case .samples: shift.place = SampleMover.start(of: shift)
        case .oldMinutes:
            rollups.rewind()
            shift.place = RowPosition(before: Self.hour(shift.earliest))
        case .newMinutes:
            try shiftMarks(shift)
            shift.place = RowPosition(before: Self.hour(shift.earliest &+ shift.shift))
        case .journal: shift.place = RowPosition(before: shift.after)
        }
        return true
    }

    /// Runs one step of the phase; returns true at its end.
    private func work(on shift: inout ClockShift) throws(StoreFault) -> Bool {
        switch shift.phase {
        case .events:
            if shift.place.ts <= shift.after { try shiftSightings(shift) }
            return try events.move(&shift, count: Self.chunk)
        case .rejects: return try rejects.move(&shift, count: Self.chunk)
        case .samples: return try mover.move(&shift, count: Self.chunk, rollups, purgedSamples: purgedSamples())
        case .oldMinutes: return try recount(&shift, shift.times, movedBy: shift.shift)
        case .newMinutes: return try recount(&shift, shift.movedTimes, movedBy: 0)
        // Undelivered extents follow their samples.
        case .journal: return try extents.move(&shift, count: Self.chunk)
        }
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

    /// Rebuilds some summaries of a time range whose samples have moved by `distance`; returns true at its end.
    ///
    /// The range is rounded to whole hours, because an hour is summarised after its minutes.
    private func recount(
        _ shift: inout ClockShift,
        _ times: Range<Int64>,
        movedBy distance: Int64
    ) throws(StoreFault) -> Bool {
        let purgedSamples = try purgedSamples()
        let end = times.upperBound.rounded(upTo: Resolution.hours.length)
        guard let next = try firstRow(from: Self.hour(shift.place.ts)), next < end else { return true }
        shift.place.ts = max(shift.place.ts, Self.hour(next))
        if try skipHours(&shift, before: Self.hour(times.lowerBound), movedBy: distance) { return false }
        let hourEnd = Self.hour(shift.place.ts) &+ Resolution.hours.length
        let last = min(end, hourEnd, shift.place.ts + Self.minutes * Resolution.minutes.length)
        while shift.place.ts < last {
            try rollups.recount(minute: shift.place.ts, purgedSamples: purgedSamples)
            shift.place.ts += Resolution.minutes.length
        }
        return shift.place.ts >= end
    }

    /// Passes over hours between records of the past, which may lie years apart; returns true if there were any.
    private func skipHours(
        _ shift: inout ClockShift,
        before end: Int64,
        movedBy distance: Int64
    ) throws(StoreFault) -> Bool {
        let start = shift.place.ts
        guard start == Self.hour(start) else { return false }
        var rows: Int64 = 0
        for _ in 0..<Self.hours where shift.place.ts < end && rows < Self.chunk {
            let hour = shift.place.ts &+ distance
            selectMoved.bind(hour, hour &+ Resolution.hours.length, shift.after, shift.through)
            defer { selectMoved.reset() }
            guard try selectMoved.step(), selectMoved.integer(1) == 0 else { break }
            // The search has not seen the other samples of such an hour.
            guard selectMoved.integer(0) < Self.hourSamples else { break }
            rows += selectMoved.integer(0)
            shift.place.ts += Resolution.hours.length
        }
        return shift.place.ts > start
    }

    /// Returns the time of the first sample or summary from `ts` on, to pass over years without any.
    private func firstRow(from ts: Int64) throws(StoreFault) -> Int64? { try selectFirstRow.firstInteger(binding: ts) }

    private func purgedSamples() throws(StoreFault) -> PurgedTimes { try state.purged(.samples) }

    private static func hour(_ ts: Int64) -> Int64 { ts.rounded(downTo: Resolution.hours.length) }
}

/// Moves the times of rows that are found by a number.
private final class NumberedRows {
    private let selectEnd: Statement
    private let shift: Statement

    init(_ table: String, number: String, times: [String], _ connection: SQLiteConnection) throws(StoreFault) {
        let rows = "SELECT \(number) AS n FROM \(table) WHERE \(number) > ?1 AND \(number) <= ?2"
        selectEnd = try Statement("SELECT max(n) FROM (\(rows) ORDER BY 1 LIMIT ?3)", on: connection)
        let changes = times.map { "\($0) = \($0) + ?1" }.joined(separator: ", ")
        shift = try Statement(
            "UPDATE \(table) SET \(changes) WHERE \(number) > ?2 AND \(number) <= ?3",
            on: connection
        )
    }

    /// Moves the next rows of a correction; returns true at the end.
    func move(_ correction: inout ClockShift, count: Int) throws(StoreFault) -> Bool {
        let start = max(correction.after, correction.place.ts)
        guard let end = try selectEnd.firstInteger(binding: start, correction.through, Int64(count)) else {
            return true
        }
        try shift.run(binding: correction.shift, start, end)
        correction.place.ts = end
        return false
    }
}

extension ClockShift {
    /// The time range of the span, by the right clock.
    fileprivate var movedTimes: Range<Int64> { times.lowerBound &+ shift..<times.upperBound &+ shift }

    var correction: ClockCorrection {
        ClockCorrection(after: after, through: through, shift: .microseconds(shift))
    }
}
