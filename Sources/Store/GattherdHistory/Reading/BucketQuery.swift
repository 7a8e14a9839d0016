import GattherdModel

/// Summarises numbers of consecutive time spans, from samples and stored summaries.
struct BucketQuery {
    private let connection: SQLiteConnection
    private let times: Range<Int64>
    /// The quantities by their keys; `nil` for those that the query does not select.
    private let quantities: KeyedRows<Quantity?>

    init(_ query: HistoryQuery, on connection: SQLiteConnection) throws(StoreFault) {
        self.connection = connection
        times = query.times
        quantities = try KeyedRows("SELECT id, device, stream, metric, unit FROM quantity", on: connection) { row in
            let quantity = Quantity(
                device: row.text(1),
                stream: row.text(2),
                metric: row.text(3),
                unit: row.optionalText(4)
            )
            return query.selects(quantity.device, quantity.stream, quantity.metric) ? quantity : nil
        }
    }

    /// Passes the summaries to `body`, oldest span first, until it returns false.
    func run(every step: Duration, _ body: (HistoryBucket) -> Bool) throws(StoreFault) {
        let step = step.microseconds
        var resampler = Resampler(step: step, quantities)
        var isWanted = true
        for segment in try plan(step: step).segments {
            try numbers(in: segment) { row in
                if !resampler.covers(row.ts) { isWanted = resampler.finishSpan().allSatisfy(body) }
                resampler.add(row)
                return isWanted
            }
            guard isWanted else { return }
        }
        _ = resampler.finishSpan().allSatisfy(body)
    }

    private func plan(step: Int64) throws(StoreFault) -> BucketPlan {
        let state = try StateTable(connection)
        func marks(
            _ covered: StateTable.Key?,
            _ purged: StateTable.PurgedKeys
        ) throws(StoreFault) -> BucketPlan.Marks {
            BucketPlan.Marks(
                covered: try covered.map { (key) throws(StoreFault) in try state.value(of: key) } ?? .max,
                gone: try state.purged(purged).reach(before: times.upperBound)
            )
        }
        let all: [Resolution: BucketPlan.Marks] = [
            .samples: try marks(nil, .samples), .minutes: try marks(.minutes, .minutes),
            .hours: try marks(.hours, .hours),
        ]
        return BucketPlan(times, step: step, marks: all)
    }

    private func numbers(in segment: BucketPlan.Segment, _ body: (NumberRow) -> Bool) throws(StoreFault) {
        try RowWalk(segment.resolution.rows, in: segment.times, on: connection).run { row throws(StoreFault) in
            try quantities.row(row.integer(3)) == nil ? nil : NumberRow(row)
        } _: {
            body($0)
        }
    }
}

extension Duration {
    /// The whole microseconds, at least one, clamped to `Int64`.
    fileprivate var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (micro, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? .max : Swift.max(1, micro &+ attoseconds / 1_000_000_000_000)
    }
}

/// Finds the first and the last time of rows.
struct TimeRangeQuery {
    private let connection: SQLiteConnection

    init(on connection: SQLiteConnection) {
        self.connection = connection
    }

    /// Returns the times of the oldest and the newest sample, optionally including the starts of summaries.
    func all(withSummaries: Bool) throws(StoreFault) -> ClosedRange<Timestamp>? {
        let resolutions = withSummaries ? Resolution.allCases : [.samples]
        func end(_ function: String) throws(StoreFault) -> Int64? {
            let ends = resolutions.map { "SELECT (SELECT \(function)(ts) FROM \($0.table)) AS ts" }
            return try connection.optionalInteger(
                "SELECT \(function)(ts) FROM (\(ends.joined(separator: " UNION ALL ")))"
            )
        }
        guard let first = try end("min"), let last = try end("max"), first <= last else { return nil }
        return Timestamp(microseconds: first)...Timestamp(microseconds: last)
    }

    /// Returns the times of the oldest and the newest queried numbers, as exactly as possible.
    func numbers(_ query: HistoryQuery) throws(StoreFault) -> ClosedRange<Timestamp>? {
        var hours: (first: Timestamp, last: Timestamp)?
        try BucketQuery(query, on: connection).run(every: .seconds(3600)) { bucket in
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
            let part = query.part(from: place.microseconds, length: span)
            try BucketQuery(part, on: connection).run(every: .microseconds(step)) { bucket in
                found = choose(found, bucket.time)
                return true
            }
            guard let found else { break }
            (place, span) = (found, step)
        }
        return max(place, query.since ?? place)
    }
}
