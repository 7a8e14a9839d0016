public import GattherdModel

extension HistoryReader {
    /// Hands over the payloads that did not decode, by time, until `body` returns false.
    ///
    /// The query's metric is not looked at: a reject has none.
    public func rejects(_ query: HistoryQuery, _ body: (Reject) -> Bool) throws(StoreFault) {
        let statement = try Statement(
            """
            SELECT ts, id, 0, device, characteristic, octets, reason FROM reject
            WHERE (ts, id, 0) > (?1, ?2, ?3) AND ts < ?5 AND (?6 IS NULL OR device = ?6)
            ORDER BY ts, id LIMIT ?4
            """,
            on: connection
        )
        statement.bind(query.until?.microseconds ?? .max, at: 5)
        statement.bind(query.device, at: 6)
        let start = RowPlace(before: query.since?.microseconds ?? .min)
        try slices(statement, from: start) { row throws(StoreFault) in
            let place = RowPlace(behind: row)
            let reject = Reject(
                time: Timestamp(microseconds: row.integer(0)),
                device: row.text(3),
                characteristic: row.text(4),
                octets: row.octets(5),
                reason: row.text(6)
            )
            return (reject, place)
        } _: {
            body($0)
        }
    }
}
