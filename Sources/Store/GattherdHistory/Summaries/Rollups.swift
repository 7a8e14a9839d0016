import GattherdModel

/// The summaries of minutes and hours, and the samples that arrive after their minute was summarised or are moved.
final class Rollups {
    private struct LateKey: Hashable {
        let minute: Int64
        let quantity: Int64
    }

    private let connection: SQLiteConnection
    private let minutes: Rollup
    private let hours: Rollup
    private var late: [LateKey: NumberSummary] = [:]
    /// The samples to remove from summaries that cannot be made again.
    private var removed: [LateKey: NumberSummary] = [:]
    /// The times in which minutes and hours may have been deleted; late samples do not recreate them.
    var purgedMinutes = PurgedTimes()
    var purgedHours = PurgedTimes()

    init(_ connection: SQLiteConnection, _ state: StateTable) throws(StoreFault) {
        self.connection = connection
        minutes = try Rollup(.minutes, of: .samples, mark: .minutes, connection, state)
        hours = try Rollup(.hours, of: .minutes, mark: .hours, connection, state)
    }

    /// The instant from which samples will be summarised; add earlier ones by ``addLate(_:of:at:)``.
    var end: Int64 { minutes.end }

    /// True if a minute or an hour before the instant `newest` has not been summarised.
    func isBehind(_ newest: Int64) -> Bool {
        minutes.isBehind(newest) || hours.isBehind(minutes.mark)
    }

    /// Summarises one slice.
    func step(_ newest: Int64) throws(StoreFault) {
        if minutes.isBehind(newest) {
            try minutes.step(before: newest)
        } else {
            try hours.step(before: minutes.mark)
        }
    }

    /// The first instants that minutes and hours do not cover.
    var minuteMark: Int64 { minutes.mark }
    var hourMark: Int64 { hours.mark }

    /// Summarises the current minute; further samples of it will be late.
    ///
    /// - Parameter newest: The latest time of a sample.
    /// - Returns: False if there was nothing to summarise.
    /// - Throws: ``StoreFault`` if the file cannot be written.
    func sumUpEarly(_ newest: Int64) throws(StoreFault) -> Bool {
        let end = newest.addingReportingOverflow(Resolution.minutes.length).partialValue
        guard minutes.isBehind(end) else { return false }
        try minutes.step(before: end)
        return true
    }

    /// Adds a sample from before ``end``, which is being stored.
    func addLate(_ value: SampleValue, of quantity: Int64, at ts: Int64) {
        Self.add(value, of: quantity, at: ts, to: &late)
    }

    /// Removes a stored sample, which is being moved, from the summaries of its time.
    func remove(_ value: SampleValue, of quantity: Int64, at ts: Int64) {
        Self.add(value, of: quantity, at: ts, to: &removed)
    }

    private static func add(
        _ value: SampleValue,
        of quantity: Int64,
        at ts: Int64,
        to sums: inout [LateKey: NumberSummary]
    ) {
        guard let number = NumberSummary(value) else { return }
        let key = LateKey(minute: ts.rounded(downTo: Resolution.minutes.length), quantity: quantity)
        if sums[key]?.add(number) == nil { sums[key] = number }
    }

    /// Writes the removed and the late samples to their summaries; only in a transaction.
    func writeLate() throws(StoreFault) {
        guard !late.isEmpty || !removed.isEmpty else { return }
        defer { clearLate() }
        for (key, numbers) in removed.sorted(by: { $0.key.minute < $1.key.minute }) {
            for table in tables(at: key.minute) { try table.remove(numbers, of: key.quantity, at: key.minute) }
        }
        for (key, numbers) in late.sorted(by: { $0.key.minute < $1.key.minute }) {
            for table in tables(at: key.minute) { try table.add(numbers, of: key.quantity, at: key.minute) }
        }
    }

    /// The tables to which samples of the minute are added: those that have not deleted it.
    private func tables(at minute: Int64) -> [Rollup] {
        (purgedMinutes.contains(minute) ? [] : [minutes]) + (purgedHours.contains(minute) ? [] : [hours])
    }

    private func clearLate() {
        late.removeAll()
        removed.removeAll()
    }

    /// Summarises the minute that begins at `minute` again, and its hour after the last minute; only in a transaction.
    ///
    /// Spans whose finer rows are purged stay unchanged.
    func recount(minute: Int64, purgedSamples: PurgedTimes) throws(StoreFault) {
        if isWhole(minute: minute, purgedSamples) { try minutes.recount(minute) }
        let hour = minute.rounded(downTo: Resolution.hours.length)
        let isLast = minute &- hour >= Resolution.hours.length - Resolution.minutes.length
        if isLast, isWhole(hour: hour) { try hours.recount(hour) }
    }

    /// True if ``recount(minute:purgedSamples:)`` makes all summaries of the instant again.
    func canRecount(_ ts: Int64, purgedSamples: PurgedTimes) -> Bool {
        isWhole(minute: ts.rounded(downTo: Resolution.minutes.length), purgedSamples)
            && isWhole(hour: ts.rounded(downTo: Resolution.hours.length))
    }

    /// True if no sample of the minute was purged, nor its summary.
    private func isWhole(minute: Int64, _ purgedSamples: PurgedTimes) -> Bool {
        !purgedSamples.overlaps(.minutes, at: minute) && !purgedMinutes.contains(minute)
    }

    /// True if no minute of the hour was purged, nor its summary.
    private func isWhole(hour: Int64) -> Bool {
        !purgedMinutes.overlaps(.hours, at: hour) && !purgedHours.contains(hour)
    }

    /// Lowers the marks to the rows, if a clock that was ahead has moved them far beyond the latest sample.
    ///
    /// Below the marks all samples are late, so that each commit would write summaries until the marks' time has come.
    func lowerMarks(to newest: Int64) throws(StoreFault) {
        guard minutes.mark > newest.addingReportingOverflow(Resolution.hours.length).partialValue,
            let last = try connection.optionalInteger("SELECT max(ts) FROM minute")
        else { return }
        let end = last.addingReportingOverflow(Resolution.minutes.length).partialValue
        let hour = end.rounded(downTo: Resolution.hours.length)
        // The hour is summarised again from its minutes. Samples behind them could be those of deleted minutes.
        guard newest < end, isWhole(hour: hour) else { return }
        let lowered = [(minutes, end), (hours, hour)].filter { $0.0.mark > $0.1 }
        try connection.transaction { () throws(StoreFault) in
            for (table, mark) in lowered { try table.saveLower(mark) }
        }
        for (table, mark) in lowered { table.lower(to: mark) }
    }

    /// Discards the late samples and their sums after a rollback.
    func discardLate() {
        clearLate()
        rewind()
    }

    /// Discards the sums of spans that are not complete; their rows are read again.
    func rewind() {
        minutes.rewind()
        hours.rewind()
    }
}
