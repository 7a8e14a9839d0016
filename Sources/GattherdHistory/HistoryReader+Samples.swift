public import GattherdModel

extension HistoryReader {
    /// Hands over the samples that `query` asks for, by time, until `body` returns false.
    public func rows(_ query: HistoryQuery, _ body: (HistoryRow) -> Bool) throws(StoreFault) {
        let series = try SeriesTable(connection)
        try samples(query) { sample in
            guard let series = series[sample.series] else { return true }
            let time = Timestamp(microseconds: sample.ts)
            return body(HistoryRow(seq: sample.seq, time: time, series: series, value: sample.value))
        }
    }

    /// Hands over the numbers that `query` asks for in spans of time, oldest first, until `body` returns false.
    ///
    /// A span without a number is left out; the first and the last one hold only what the query asks for.
    ///
    /// - Parameters:
    ///   - query: What to look at.
    ///   - step: The length of a span; at least a microsecond.
    ///   - body: Takes a span of one metric of one device.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    public func buckets(
        _ query: HistoryQuery,
        every step: Duration,
        _ body: (HistoryBucket) -> Bool
    ) throws(StoreFault) {
        let series = try SeriesTable(connection)
        var resampler = Resampler(step: step)
        var isWanted = true
        try samples(query) { sample in
            guard let series = series[sample.series] else { return true }
            if !resampler.covers(sample.ts) { isWanted = resampler.takeBuckets().allSatisfy(body) }
            resampler.add(sample.value, at: sample.ts, of: sample.series, series)
            return isWanted
        }
        if isWanted { _ = resampler.takeBuckets().allSatisfy(body) }
    }

    private struct StoredSample {
        let ts: Int64
        let seq: Int64
        let series: Int64
        let value: SampleValue
    }

    private func samples(_ query: HistoryQuery, _ body: (StoredSample) -> Bool) throws(StoreFault) {
        let statement = try Statement(
            """
            SELECT ts, seq, ix, series, value FROM sample
            WHERE (ts, seq, ix) > (?1, ?2, ?3) AND ts < ?5 AND series IN (
                SELECT series.id FROM series JOIN stream ON stream.id = series.stream
                WHERE (?6 IS NULL OR stream.device = ?6) AND (?7 IS NULL OR series.metric = ?7)
            )
            ORDER BY ts, seq, ix LIMIT ?4
            """,
            on: connection
        )
        statement.bind(query.until?.microseconds ?? .max, at: 5)
        statement.bind(query.device, at: 6)
        statement.bind(query.metric, at: 7)
        let start = Place(ts: query.since?.microseconds ?? .min, seq: -1, third: -1)
        try slices(statement, from: start) { row throws(StoreFault) in
            let place = Place(ts: row.integer(0), seq: row.integer(1), third: row.integer(2))
            let sample = StoredSample(ts: place.ts, seq: place.seq, series: row.integer(3), value: row.value(4))
            return (sample, place)
        } _: {
            body($0)
        }
    }
}

/// The series of the file by key; those that come up while we read are read when they are met.
private final class SeriesTable {
    private let statement: Statement
    private var known: [Int64: HistorySeries] = [:]

    init(_ connection: Connection) throws(StoreFault) {
        statement = try Statement(
            """
            SELECT series.id, device, profile, stream.stream, metric, unit, source
            FROM series JOIN stream ON stream.id = series.stream
            """,
            on: connection
        )
        try load()
    }

    subscript(id: Int64) -> HistorySeries? {
        if let series = known[id] { return series }
        try? load()
        return known[id]
    }

    private func load() throws(StoreFault) {
        defer { statement.reset() }
        while try statement.step() { known[statement.integer(0)] = HistorySeries(statement, from: 1) }
    }
}
