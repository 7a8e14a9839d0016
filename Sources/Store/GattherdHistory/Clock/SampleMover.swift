import GattherdModel

/// Moves samples in time, with all rows that refer to them by time.
final class SampleMover {
    private struct StoredSample {
        let place: RowPosition
        let series: Int64
        let quantity: Int64
        let value: SampleValue
    }

    private let selectNext: Statement
    private let selectPrevious: Statement
    private let delete: Statement
    private let insert: Statement
    private let setHead: Statement
    private let setFirst: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        selectNext = try Statement(
            """
            SELECT ts, seq, ix, series, value, quantity FROM sample CROSS JOIN metric_series AS series ON series.id = sample.series
            WHERE (ts, seq, ix) > (?1, ?2, ?3) AND ts < ?5 ORDER BY ts, seq, ix LIMIT ?4
            """,
            on: connection
        )
        selectPrevious = try Statement(
            """
            SELECT ts, seq, ix, series, value, quantity FROM sample CROSS JOIN metric_series AS series ON series.id = sample.series
            WHERE (ts, seq, ix) < (?1, ?2, ?3) AND ts >= ?5 ORDER BY ts DESC, seq DESC, ix DESC LIMIT ?4
            """,
            on: connection
        )
        delete = try Statement("DELETE FROM sample WHERE ts = ?1 AND seq = ?2 AND ix = ?3", on: connection)
        insert = try Statement(RowInserts.sample, on: connection)
        setHead = try Statement("UPDATE head SET ts = ?1 WHERE series = ?4 AND seq = ?2 AND ix = ?3", on: connection)
        setFirst = try Statement("UPDATE metric_series SET first = ?3 WHERE id = ?1 AND first = ?2", on: connection)
    }

    /// Returns the start position, from which no sample is visited again after it was moved.
    static func start(of shift: ClockShift) -> RowPosition {
        RowPosition(before: shift.shift > 0 ? shift.times.upperBound : shift.earliest)
    }

    /// Moves the span's samples among the next `count`; only in a transaction.
    ///
    /// - Parameters:
    ///   - shift: The samples, the distance, and the position to continue at.
    ///   - count: The number of samples to read.
    ///   - rollups: The summaries. Those of spans with deleted rows cannot be made again; the samples are removed and
    ///     added.
    ///   - purgedSamples: The times in which samples may have been deleted.
    /// - Returns: True if there are no more samples.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func move(
        _ shift: inout ClockShift,
        count: Int,
        _ rollups: Rollups,
        purgedSamples: PurgedTimes
    ) throws(StoreFault) -> Bool {
        let samples = try next(shift, count)
        for sample in samples {
            shift.place = sample.place
            guard sample.place.second > shift.after, sample.place.second <= shift.through else { continue }
            try move(sample, by: shift.shift)
            // All series that begin in the span were moved with it, but not those that begin with a record of the past.
            if sample.place.ts < shift.times.lowerBound { try moveStart(of: sample, by: shift.shift) }
            let (old, new) = (sample.place.ts, sample.place.ts &+ shift.shift)
            if !rollups.canRecount(old, purgedSamples: purgedSamples) {
                rollups.remove(sample.value, of: sample.quantity, at: old)
            }
            if !rollups.canRecount(new, purgedSamples: purgedSamples) {
                rollups.addLate(sample.value, of: sample.quantity, at: new)
            }
        }
        try rollups.writeLate()
        return samples.count < count
    }

    private func moveStart(of sample: StoredSample, by shift: Int64) throws(StoreFault) {
        try setFirst.run(binding: sample.series, sample.place.ts, sample.place.ts &+ shift)
    }

    private func next(_ shift: ClockShift, _ count: Int) throws(StoreFault) -> [StoredSample] {
        if shift.shift > 0 { return try read(selectPrevious, shift.place, shift.earliest, count) }
        return try read(selectNext, shift.place, shift.times.upperBound, count)
    }

    private func read(
        _ statement: borrowing Statement,
        _ place: RowPosition,
        _ end: Int64,
        _ count: Int
    ) throws(StoreFault) -> [StoredSample] {
        try statement.rows(binding: place.ts, place.second, place.third, Int64(count), end) { row in
            StoredSample(
                place: RowPosition(behind: row),
                series: row.integer(3),
                quantity: row.integer(5),
                value: row.value(4)
            )
        }
    }

    private func move(_ sample: StoredSample, by shift: Int64) throws(StoreFault) {
        let (ts, seq, index) = (sample.place.ts, sample.place.second, sample.place.third)
        try delete.run(binding: ts, seq, index)
        try insert.run(binding: ts &+ shift, seq, index, sample.series, sample.value)
        try setHead.run(binding: ts &+ shift, seq, index, sample.series)
    }
}
