public import GattherdModel

extension HistoryReader {
    /// The newest payloads of a device, or of all devices, that did not decode: at most `limit`, oldest first.
    public func rejects(device: String? = nil, newest limit: Int) throws(StoreFault) -> [Reject] {
        let statement = try Statement(
            """
            SELECT ts, device, characteristic, octets, reason FROM reject
            WHERE ?1 IS NULL OR device = ?1 ORDER BY ts DESC, id DESC LIMIT ?2
            """,
            on: connection
        )
        statement.bind(device, at: 1)
        statement.bind(Int64(max(0, limit)), at: 2)
        var rejects: [Reject] = []
        while try statement.step() {
            rejects.append(
                Reject(
                    time: Timestamp(microseconds: statement.integer(0)),
                    device: statement.text(1),
                    characteristic: statement.text(2),
                    octets: statement.octets(3),
                    reason: statement.text(4)
                )
            )
        }
        return rejects.reversed()
    }
}
