public import GattherdModel

extension HistoryReader {
    /// Hands over the samples that `query` asks for, by time, until `body` returns false.
    ///
    /// - Throws: ``StoreFault`` when the file cannot be read, or is damaged.
    public func rows(_ query: HistoryQuery, _ body: (HistoryRow) -> Bool) throws(StoreFault) {
        let known = try KeyedRows(Self.seriesSQL, on: connection) { HistorySeries($0, from: 1) }
        try slices(Self.samples, in: query.times) { row throws(StoreFault) in
            let series = try known.row(row.integer(3))
            guard query.asks(for: series.device, series.metric) else { return nil }
            let time = Timestamp(microseconds: row.integer(0))
            return HistoryRow(seq: row.integer(1), time: time, series: series, value: row.value(4))
        } _: {
            body($0)
        }
    }

    private static let seriesSQL = """
        SELECT series.id, device, profile, stream.stream, metric, unit, source, kind, repeated
        FROM series JOIN stream ON stream.id = series.stream
        """

    private static let samples = OrderedRows(
        sql: """
            SELECT ts, seq, ix, series, value FROM sample
            WHERE (ts, seq, ix) > (?1, ?2, ?3) AND ts < ?5 ORDER BY ts, seq, ix LIMIT ?4
            """,
        last: Grain.lastSample
    )
}
