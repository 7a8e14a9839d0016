import GattherdModel

/// The readings that wait for delivery, as far as they take room.
final class Backlog {
    private let outbox: Outbox?
    private let saved: Int64
    private let connection: Connection
    private let selectEnd: Statement
    private let delete: Statement

    /// - Parameters:
    ///   - connection: The database.
    ///   - state: Knows the cursor while delivery is off.
    ///   - outbox: Delivery's; `nil` while it is off, when readings may still wait from before.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    init(_ connection: Connection, _ state: StateTable, _ outbox: Outbox?) throws(StoreFault) {
        self.connection = connection
        self.outbox = outbox
        saved = try state.value(of: .cursor)
        selectEnd = try Statement(
            "SELECT max(seq) FROM (SELECT seq FROM log WHERE seq > ?1 ORDER BY seq LIMIT ?2)",
            on: connection
        )
        delete = try Statement("DELETE FROM log WHERE seq > ?1 AND seq <= ?2", on: connection)
    }

    /// The last reading that was delivered.
    var delivered: Int64 { outbox?.cursor ?? saved }

    /// The last reading that delivery has taken, and will deliver whatever becomes of it here.
    var taken: Int64 { max(delivered, outbox?.taken ?? 0) }

    /// Gives up the oldest readings that nobody has taken; gives their number.
    func drop(count: Int) throws(StoreFault) -> Int {
        let start = taken
        guard let end = try end(of: count, after: start) else { return 0 }
        delete.bind(start, at: 1)
        delete.bind(end, at: 2)
        try delete.run()
        return connection.changes
    }

    private func end(of count: Int, after start: Int64) throws(StoreFault) -> Int64? {
        selectEnd.bind(start, at: 1)
        selectEnd.bind(Int64(count), at: 2)
        defer { selectEnd.reset() }
        return try selectEnd.step() && !selectEnd.isNull(0) ? selectEnd.integer(0) : nil
    }
}
