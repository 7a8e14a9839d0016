public import GattherdModel

extension HistoryReader {
    /// Passes rejected payloads to `body`, ordered by time, until `body` returns false.
    ///
    /// The query's metric is ignored, because a reject has none.
    public func rejects(_ query: HistoryQuery, _ body: (Reject) -> Bool) throws(StoreFault) {
        try slices(Self.rejects, in: query.times) { row throws(StoreFault) in
            let device = row.text(3)
            guard query.device ?? device == device else { return nil }
            return Reject(
                time: Timestamp(microseconds: row.integer(0)),
                device: device,
                characteristic: row.text(4),
                octets: row.octets(5),
                reason: row.text(6)
            )
        } _: {
            body($0)
        }
    }

    private static let rejects = OrderedRows(
        sql: """
            SELECT ts, id, 0, device, characteristic, octets, reason FROM reject
            WHERE (ts, id, 0) > (?1, ?2, ?3) AND ts < ?5 ORDER BY ts, id LIMIT ?4
            """,
        last: "SELECT ts, id, 0 FROM reject WHERE ts < ?1 ORDER BY ts DESC, id DESC LIMIT 1"
    )
}
