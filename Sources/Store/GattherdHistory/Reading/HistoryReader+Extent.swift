public import GattherdModel

extension HistoryReader {
    /// Returns the times of the oldest and the newest sample, optionally including the starts of summaries.
    ///
    /// Returns `nil` for an empty history.
    public func extent(withSummaries: Bool) throws(StoreFault) -> ClosedRange<Timestamp>? {
        let grains = withSummaries ? Resolution.allCases : [.samples]
        func end(_ function: String) throws(StoreFault) -> Int64? {
            let ends = grains.map { "SELECT (SELECT \(function)(ts) FROM \($0.table)) AS ts" }
            return try connection.optionalInteger(
                "SELECT \(function)(ts) FROM (\(ends.joined(separator: " UNION ALL ")))"
            )
        }
        guard let first = try end("min"), let last = try end("max"), first <= last
        else { return nil }
        return Timestamp(microseconds: first)...Timestamp(microseconds: last)
    }

    /// Returns the times of the oldest and the newest queried numbers, as exactly as possible.
    public func extent(ofNumbers query: HistoryQuery) throws(StoreFault) -> ClosedRange<Timestamp>? {
        var hours: (first: Timestamp, last: Timestamp)?
        try buckets(query, every: .seconds(3600)) { bucket in
            hours = (hours?.first ?? bucket.time, bucket.time)
            return true
        }
        guard let hours else { return nil }
        let first = try refine(query, hours.first) { found, time in found ?? time }
        let last = try refine(query, hours.last) { _, time in time }
        return first...max(first, last)
    }

    /// Searches an hour, then a minute of it, for the instant that `choose` selects.
    private func refine(
        _ query: HistoryQuery,
        _ hour: Timestamp,
        _ choose: (Timestamp?, Timestamp) -> Timestamp
    ) throws(StoreFault) -> Timestamp {
        var (place, span) = (hour, Resolution.hours.length)
        for step in [Resolution.minutes.length, Resolution.samples.length] {
            var found: Timestamp?
            try buckets(query.part(place.microseconds, span), every: .microseconds(step)) { bucket in
                found = choose(found, bucket.time)
                return true
            }
            guard let found else { break }
            (place, span) = (found, step)
        }
        return max(place, query.since ?? place)
    }
}

extension HistoryQuery {
    fileprivate func part(_ start: Int64, _ span: Int64) -> HistoryQuery {
        var query = self
        let end = Timestamp(microseconds: start.addingReportingOverflow(span).partialValue)
        query.since = max(Timestamp(microseconds: start), since ?? Timestamp(microseconds: .min))
        query.until = min(end, until ?? end)
        return query
    }
}
