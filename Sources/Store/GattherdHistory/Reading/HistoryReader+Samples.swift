public import GattherdModel

extension HistoryReader {
    /// Passes the queried samples to `body`, ordered by time, until `body` returns false.
    ///
    /// - Throws: ``StoreFault`` when the file cannot be read, or is damaged.
    public func rows(_ query: HistoryQuery, _ body: (HistoryRow) -> Bool) throws(StoreFault) {
        // Most of the visited rows may not match the query.
        let known = try KeyedRows(Self.seriesSQL, on: connection) { row in
            let series = HistorySeries(row, from: 1)
            return query.asks(for: series.device, series.metric) ? series : nil
        }
        try slices(Self.samples, in: query.times) { row throws(StoreFault) in
            guard let series = try known.row(row.integer(3)) else { return nil }
            let time = Timestamp(microseconds: row.integer(0))
            return HistoryRow(seq: row.integer(1), time: time, series: series, value: row.value(4))
        } _: {
            body($0)
        }
    }

    private static let seriesSQL = """
        SELECT series.id, device, profile, stream.stream, metric, unit, source, kind, repeated
        FROM metric_series AS series JOIN stream ON stream.id = series.stream
        """

    private static let samples = OrderedRows(
        sql: """
            SELECT ts, seq, ix, series, value FROM sample
            WHERE (ts, seq, ix) > (?1, ?2, ?3) AND ts < ?5 ORDER BY ts, seq, ix LIMIT ?4
            """,
        last: Resolution.lastSample
    )
}
