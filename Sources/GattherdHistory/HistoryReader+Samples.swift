public import GattherdModel

extension HistoryReader {
    /// Hands over the samples that `query` asks for, by time, until `body` returns false.
    public func rows(_ query: HistoryQuery, _ body: (HistoryRow) -> Bool) throws(StoreFault) {
        let series = try KeyedRows(Self.seriesSQL, on: connection) { HistorySeries($0, from: 1) }
        try samples(query) { sample in
            guard let series = series[sample.series] else { return true }
            let time = Timestamp(microseconds: sample.ts)
            return body(HistoryRow(seq: sample.seq, time: time, series: series, value: sample.value))
        }
    }

    private static let seriesSQL = """
        SELECT series.id, device, profile, stream.stream, metric, unit, source, kind, repeated
        FROM series JOIN stream ON stream.id = series.stream
        """

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
        let start = RowPlace(before: query.since?.microseconds ?? .min)
        try slices(statement, from: start) { row throws(StoreFault) in
            let place = RowPlace(behind: row)
            let sample = StoredSample(ts: place.ts, seq: place.second, series: row.integer(3), value: row.value(4))
            return (sample, place)
        } _: {
            body($0)
        }
    }
}
