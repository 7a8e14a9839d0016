import GattherdModel

/// The readings that are not delivered yet, and the cursor: the last one that the broker has acknowledged.
///
/// Only what is committed while delivery is on comes in here, so that turning delivery on does not publish
/// the past.
final class Outbox {
    /// Rows that are deleted at once, so that no commit waits for a day's backlog to go.
    private static let chunk = 5000

    private(set) var cursor: Int64
    /// True while the file's cursor is behind ``cursor``, or acknowledged rows are still there.
    private(set) var isUnsaved: Bool
    private let state: StateTable
    private let insert: Statement
    private let select: Statement
    private let trim: Statement
    private var streams: [Int64: (device: String, stream: String)] = [:]
    private let findStream: Statement

    /// Reads the cursor; with nothing left to deliver it is at `head`, the newest reading.
    init(_ connection: Connection, _ state: StateTable, head: Int64) throws(StoreFault) {
        self.state = state
        let saved = try state.value(of: .cursor)
        let oldest = try connection.integer("SELECT min(seq) FROM log WHERE seq > \(saved)")
        cursor = oldest > 0 ? oldest - 1 : head
        let isTrimmed = try connection.integer("SELECT EXISTS (SELECT 1 FROM log WHERE seq <= \(cursor))") == 0
        isUnsaved = cursor != saved || !isTrimmed
        insert = try Statement("INSERT INTO log (seq, stream, payload) VALUES (?1, ?2, ?3)", on: connection)
        select = try Statement(
            "SELECT seq, stream, payload FROM log WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            on: connection
        )
        trim = try Statement(
            """
            DELETE FROM log WHERE seq <= ?1
            AND seq <= (SELECT max(seq) FROM (SELECT seq FROM log ORDER BY seq LIMIT \(Self.chunk)))
            """,
            on: connection
        )
        findStream = try Statement("SELECT device, stream FROM stream WHERE id = ?1", on: connection)
    }

    /// Adds a reading; only in a transaction.
    func append(seq: Int64, stream: Int64, payload: Span<UInt8>) throws(StoreFault) {
        insert.bind(seq, at: 1)
        insert.bind(stream, at: 2)
        try insert.run(blob: payload, at: 3)
    }

    func readings(after seq: Int64, limit: Int) throws(StoreFault) -> [LoggedReading] {
        select.bind(seq, at: 1)
        select.bind(Int64(max(0, limit)), at: 2)
        defer { select.reset() }
        var readings: [LoggedReading] = []
        while try select.step() {
            let (device, stream) = try names(ofStream: select.integer(1))
            readings.append(
                LoggedReading(seq: select.integer(0), device: device, stream: stream, payload: select.octets(2))
            )
        }
        return readings
    }

    /// Moves the cursor, but never back.
    func acknowledge(through seq: Int64) {
        guard seq > cursor else { return }
        cursor = seq
        isUnsaved = true
    }

    /// Writes the cursor and deletes some of what it has passed; only in a transaction, which
    /// ``didSave(trimmed:)`` follows once it is committed.
    ///
    /// - Returns: How many readings were deleted.
    func save() throws(StoreFault) -> Int {
        try state.set(.cursor, to: cursor)
        trim.bind(cursor, at: 1)
        try trim.run()
        return trim.changes
    }

    /// Notes that what ``save()`` wrote is committed.
    func didSave(trimmed: Int) {
        isUnsaved = trimmed == Self.chunk
    }

    private func names(ofStream id: Int64) throws(StoreFault) -> (device: String, stream: String) {
        if let names = streams[id] { return names }
        findStream.bind(id, at: 1)
        defer { findStream.reset() }
        _ = try findStream.step()
        let names = (device: findStream.text(0), stream: findStream.text(1))
        streams[id] = names
        return names
    }
}
