public import GattherdModel

extension HistoryReader {
    /// Passes summaries of the queried numbers to `body`, oldest span first, until `body` returns false.
    ///
    /// A span without a number is omitted; the first and the last span contain only the queried time range.
    /// Spans of whole minutes or hours are read from their summaries.
    ///
    /// - Parameters:
    ///   - query: The rows to summarise.
    ///   - step: The length of a span; at least a microsecond.
    ///   - body: A function that receives the span of one metric of one device.
    /// - Throws: ``StoreFault`` when the file cannot be read, or is damaged.
    public func buckets(
        _ query: HistoryQuery,
        every step: Duration,
        _ body: (HistoryBucket) -> Bool
    ) throws(StoreFault) {
        let step = step.microseconds
        var resampler = Resampler(step: step, try quantities())
        let wanted = try KeyedRows("SELECT id, device, metric FROM quantity", on: connection) { row in
            query.asks(for: row.text(1), row.text(2))
        }
        var isWanted = true
        for segment in try plan(query, step: step).segments {
            try numbers(wanted, in: segment) { row in
                if !resampler.covers(row.ts) { isWanted = resampler.takeBuckets().allSatisfy(body) }
                resampler.add(row)
                return isWanted
            }
            guard isWanted else { return }
        }
        _ = resampler.takeBuckets().allSatisfy(body)
    }

    private func plan(_ query: HistoryQuery, step: Int64) throws(StoreFault) -> BucketPlan {
        let state = try StateTable(connection)
        func marks(
            _ covered: StateTable.Key?,
            _ purged: StateTable.PurgedKeys
        ) throws(StoreFault) -> BucketPlan.Marks {
            BucketPlan.Marks(
                covered: try covered.map { (key) throws(StoreFault) in try state.value(of: key) } ?? .max,
                gone: try state.purged(purged).reach(before: query.times.upperBound)
            )
        }
        let all: [Resolution: BucketPlan.Marks] = [
            .samples: try marks(nil, .samples), .minutes: try marks(.minutes, .minutes),
            .hours: try marks(.hours, .hours),
        ]
        return BucketPlan(query.times, step: step, marks: all)
    }

    private func quantities() throws(StoreFault) -> KeyedRows<Quantity> {
        try KeyedRows("SELECT id, device, metric, unit FROM quantity", on: connection) { row in
            Quantity(device: row.text(1), metric: row.text(2), unit: row.optionalText(3))
        }
    }

    private func numbers(
        _ wanted: KeyedRows<Bool>,
        in segment: BucketPlan.Segment,
        _ body: (NumberRow) -> Bool
    ) throws(StoreFault) {
        try slices(segment.grain.rows, in: segment.times) { row throws(StoreFault) in
            try wanted.row(row.integer(3)) ? NumberRow(row) : nil
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
