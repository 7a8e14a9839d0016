import GattherdModel

/// Reads samples of some series, ordered by time.
struct SampleQuery {
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

    /// The series by their keys; `nil` for series that the query does not select, which may have most visited rows.
    private let series: KeyedRows<HistorySeries?>
    private let walk: RowWalk

    init(_ query: HistoryQuery, on connection: SQLiteConnection) throws(StoreFault) {
        series = try KeyedRows(Self.seriesSQL, on: connection) { row in
            let series = HistorySeries(row, from: 1)
            return query.selects(series.device, series.stream, series.metric) ? series : nil
        }
        walk = try RowWalk(Self.samples, in: query.times, on: connection)
    }

    /// Passes the samples to `body` until it returns false.
    func run(_ body: (HistoryRow) -> Bool) throws(StoreFault) {
        try walk.run { row throws(StoreFault) -> HistoryRow? in
            guard let series = try series.row(row.integer(3)) else { return nil }
            let time = Timestamp(microseconds: row.integer(0))
            return HistoryRow(seq: row.integer(1), time: time, series: series, value: row.value(4))
        } _: {
            body($0)
        }
    }
}

/// Reads rejected payloads, ordered by time.
struct RejectQuery {
    private static let rejects = OrderedRows(
        sql: """
            SELECT ts, id, 0, ts, device, characteristic, octets, reason FROM reject
            WHERE (ts, id, 0) > (?1, ?2, ?3) AND ts < ?5 ORDER BY ts, id LIMIT ?4
            """,
        last: "SELECT ts, id, 0 FROM reject WHERE ts < ?1 ORDER BY ts DESC, id DESC LIMIT 1"
    )

    private let device: String?
    private let walk: RowWalk

    init(_ query: HistoryQuery, on connection: SQLiteConnection) throws(StoreFault) {
        device = query.device
        walk = try RowWalk(Self.rejects, in: query.times, on: connection)
    }

    /// Passes the rejects to `body` until it returns false.
    func run(_ body: (Reject) -> Bool) throws(StoreFault) {
        try walk.run { row throws(StoreFault) -> Reject? in
            let reject = Reject(row, from: 3)
            return device ?? reject.device == reject.device ? reject : nil
        } _: {
            body($0)
        }
    }
}
