public import GattherdModel

extension HistoryReader {
    /// Returns the newest rejected payloads of a device, or of all devices, oldest first.
    ///
    /// At most `limit`, and at most ``longestAnswer`` bytes in readable form.
    public func rejects(device: String? = nil, newest limit: Int) throws(StoreFault) -> [Reject] {
        let condition: StaticString = device == nil ? "" : "WHERE device = ?1"
        let statement = try Statement(
            """
            SELECT ts, device, characteristic, octets, reason FROM reject \(condition)
            ORDER BY ts DESC, id DESC LIMIT ?2
            """,
            on: connection
        )
        if device != nil { statement.bind(device, at: 1) }
        statement.bind(Int64(max(0, limit)), at: 2)
        var rejects: [Reject] = []
        var bytes = 0
        while try statement.step() {
            let reject = Reject(
                time: Timestamp(microseconds: statement.integer(0)),
                device: statement.text(1),
                characteristic: statement.text(2),
                octets: statement.octets(3),
                reason: statement.text(4)
            )
            bytes += 2 * reject.octets.count + reject.reason.utf8.count + 160
            guard bytes <= Self.longestAnswer || rejects.isEmpty else { break }
            rejects.append(reject)
        }
        return rejects.reversed()
    }
}
