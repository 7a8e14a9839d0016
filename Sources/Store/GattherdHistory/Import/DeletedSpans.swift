import GattherdModel

/// Finds minutes and hours of which retention has deleted samples; their summaries are left.
///
/// An imported sample of such a span may be one of those that were deleted. Stored again, it would count twice in the
/// summaries, so it counts as stored.
final class DeletedSpans {
    private let purgedSamples: PurgedTimes
    private let purgedMinutes: PurgedTimes
    private let isMinuteDeleted: Statement
    private let isHourDeleted: Statement
    /// The last answer about each quantity.
    private var answers: [Int64: (span: Int64, isDeleted: Bool)] = [:]

    init(_ connection: SQLiteConnection, _ state: StateTable) throws(StoreFault) {
        purgedSamples = try state.purged(.samples)
        purgedMinutes = try state.purged(.minutes)
        isMinuteDeleted = try Statement(Self.query(.minutes), on: connection)
        isHourDeleted = try Statement(Self.query(.hours), on: connection)
    }

    /// Selects 1 if the span from ?1 to ?3 has a summary of more numbers of the quantity ?2 than it has samples.
    private static func query(_ resolution: Resolution) -> String {
        """
        SELECT coalesce((SELECT n FROM \(resolution.table) WHERE ts = ?1 AND quantity = ?2), 0) > (
            SELECT count(*) FROM sample CROSS JOIN metric_series AS series ON series.id = sample.series
            WHERE sample.ts >= ?1 AND sample.ts < ?3 AND quantity = ?2 AND typeof(value) IN ('integer', 'real')
        )
        """
    }

    /// True if a sample of the quantity may have been deleted at this instant.
    func contains(_ quantity: Int64, at ts: Int64) throws(StoreFault) -> Bool {
        guard purgedSamples.contains(ts) else { return false }
        let isHour = purgedMinutes.contains(ts)
        let length = (isHour ? Resolution.hours : .minutes).length
        let span = ts.rounded(downTo: length)
        if let answer = answers[quantity], answer.span == span { return answer.isDeleted }
        let end = span.addingReportingOverflow(length).partialValue
        let found =
            if isHour {
                try isHourDeleted.firstInteger(binding: span, quantity, end)
            } else {
                try isMinuteDeleted.firstInteger(binding: span, quantity, end)
            }
        answers[quantity] = (span, found == 1)
        return found == 1
    }
}
