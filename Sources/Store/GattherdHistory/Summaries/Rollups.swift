import GattherdModel

/// Minutes and hours, and the samples that come too late for a minute that has been summed up.
final class Rollups {
    private struct LateKey: Hashable {
        let minute: Int64
        let quantity: Int64
    }

    private let minutes: Rollup
    private let hours: Rollup
    private var late: [LateKey: NumberSummary] = [:]
    /// The times in which minutes and hours may be gone; late samples do not begin them again.
    var purgedMinutes = PurgedTimes()
    var purgedHours = PurgedTimes()

    init(_ connection: SQLiteConnection, _ state: StateTable) throws(StoreFault) {
        minutes = try Rollup(.minutes, of: .samples, mark: .minutes, connection, state)
        hours = try Rollup(.hours, of: .minutes, mark: .hours, connection, state)
    }

    /// Samples from then on will be met when their turn comes; earlier ones must be told of by ``addLate(_:of:at:)``.
    var end: Int64 { minutes.end }

    /// True when a minute or an hour before the instant `newest` has not been summed up.
    func isBehind(_ newest: Int64) -> Bool {
        minutes.isBehind(newest) || hours.isBehind(minutes.mark)
    }

    /// Sums some of it up.
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

    /// Sums up the minute that is not over; what comes for it will be late.
    ///
    /// - Parameter newest: The latest time of a sample.
    /// - Returns: False when there was nothing to sum up.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func sumUpEarly(_ newest: Int64) throws(StoreFault) -> Bool {
        let end = newest.addingReportingOverflow(Resolution.minutes.length).partialValue
        guard minutes.isBehind(end) else { return false }
        try minutes.step(before: end)
        return true
    }

    /// Takes a sample from before ``end``, which is being stored.
    func addLate(_ value: SampleValue, of quantity: Int64, at ts: Int64) {
        guard let number = NumberSummary(value) else { return }
        let key = LateKey(minute: ts.rounded(downTo: Resolution.minutes.length), quantity: quantity)
        if late[key]?.add(number) == nil { late[key] = number }
    }

    /// Adds what came late to where it belongs; only in a transaction.
    func writeLate() throws(StoreFault) {
        guard !late.isEmpty else { return }
        defer { late.removeAll() }
        for (key, numbers) in late.sorted(by: { $0.key.minute < $1.key.minute }) {
            let isGone = (purgedMinutes.contains(key.minute), purgedHours.contains(key.minute))
            if !isGone.0 { try minutes.add(numbers, of: key.quantity, at: key.minute) }
            if !isGone.1 { try hours.add(numbers, of: key.quantity, at: key.minute) }
        }
    }

    /// Sums up anew the minute from `minute` on, and at the end of an hour that; only in a transaction.
    ///
    /// Spans whose finer rows are purged stay unchanged.
    func recount(minute: Int64, purgedSamples: PurgedTimes) throws(StoreFault) {
        let isWhole = !purgedSamples.overlaps(.minutes, at: minute) && !purgedMinutes.contains(minute)
        if isWhole { try minutes.recount(minute) }
        let hour = minute.rounded(downTo: Resolution.hours.length)
        let isLast = minute &- hour >= Resolution.hours.length - Resolution.minutes.length
        if isLast, !purgedMinutes.overlaps(.hours, at: hour), !purgedHours.contains(hour) { try hours.recount(hour) }
    }

    /// Forgets what came late and what it was added to, for it is not stored.
    func forgetLate() {
        late.removeAll()
        minutes.forget()
        hours.forget()
    }
}
