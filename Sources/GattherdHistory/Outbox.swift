import GattherdModel

/// The readings that are not delivered yet, and the cursor: the last one that the broker has acknowledged.
///
/// Only what is committed while delivery is on comes in here, so that turning delivery on does not publish
/// the past.
final class Outbox {
    /// Rows that are deleted at once, so that no commit waits for a day's backlog to go.
    private static let chunk = 5000
    /// Acknowledged readings that are left lying, for deleting a few with each commit costs many page writes.
    private static let tolerated = 1000

    /// How far the file is behind.
    struct Progress {
        /// The cursor in the file.
        var saved: Int64
        /// The last reading of which nothing is left.
        var trimmed: Int64
    }

    private(set) var cursor: Int64
    /// The last reading that was handed over.
    var taken: Int64 { max(read, tail.taken) }
    /// The last reading that was read back.
    private var read: Int64 = 0
    private let tail: LogTail
    /// What the transaction that is open has added.
    private var added: [LoggedReading] = []
    private var progress: Progress
    private let state: StateTable
    private let meter: BacklogMeter
    private let insert: Statement
    private let select: Statement
    private let selectChunkEnd: Statement
    private let trim: Statement
    private let findStream: Statement
    private var streams: [Int64: (device: String, stream: String)] = [:]

    /// True when the next commit should take the cursor along, or delete what it has passed.
    var isSaveDue: Bool { cursor != progress.saved || cursor - progress.trimmed > Self.tolerated }

    /// True when nothing at all is left to do.
    var isTidy: Bool { cursor == progress.saved && cursor == progress.trimmed }

    /// Reads the cursor; with nothing left to deliver it is at `head`, the newest reading.
    init(
        _ connection: Connection,
        _ state: StateTable,
        _ meter: BacklogMeter,
        _ tail: LogTail,
        head: Int64
    ) throws(StoreFault) {
        self.state = state
        self.tail = tail
        self.meter = meter
        let saved = try state.value(of: .cursor)
        let undelivered = try connection.integer("SELECT min(seq) FROM log WHERE seq > \(saved)")
        let oldest = try connection.integer("SELECT min(seq) FROM log")
        cursor = undelivered > 0 ? undelivered - 1 : head
        progress = Progress(saved: saved, trimmed: oldest > 0 ? oldest - 1 : cursor)
        insert = try Statement("INSERT INTO log (seq, stream, payload, ts) VALUES (?1, ?2, ?3, ?4)", on: connection)
        select = try Statement(
            "SELECT seq, stream, payload FROM log WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            on: connection
        )
        selectChunkEnd = try Statement(
            "SELECT max(seq) FROM (SELECT seq FROM log ORDER BY seq LIMIT \(Self.chunk))",
            on: connection
        )
        trim = try Statement("DELETE FROM log WHERE seq <= ?1 RETURNING seq, length(payload)", on: connection)
        findStream = try Statement("SELECT device, stream FROM stream WHERE id = ?1", on: connection)
    }

    /// Adds a reading; only in a transaction.
    func append(_ reading: LoggedReading, time: Timestamp, stream: Int64) throws(StoreFault) {
        insert.bind(reading.seq, at: 1)
        insert.bind(stream, at: 2)
        insert.bind(time.microseconds, at: 4)
        try insert.run(blob: reading.payload.span, at: 3)
        meter.add(reading.payload.count)
        added.append(reading)
    }

    /// Lets delivery have what was added between these two numbers, which is committed.
    func release(after start: Int64, through end: Int64) {
        tail.append(added, after: start, through: end)
        added.removeAll(keepingCapacity: true)
    }

    /// Forgets what was added: it is not committed.
    func forget() {
        added.removeAll()
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
        read = max(read, readings.last?.seq ?? 0)
        return readings
    }

    /// Moves the cursor, but never back.
    func acknowledge(through seq: Int64) {
        cursor = max(cursor, seq)
    }

    /// Writes the cursor and deletes some of what it has passed; only in a transaction.
    ///
    /// - Parameter tidily: Deletes even if there is little to delete.
    /// - Returns: What to tell ``adopt(_:)`` when the transaction is committed.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func save(tidily: Bool) throws(StoreFault) -> Progress {
        try state.set(.cursor, to: cursor)
        guard tidily || cursor - progress.trimmed > Self.tolerated else {
            return Progress(saved: cursor, trimmed: progress.trimmed)
        }
        let end = try chunkEnd()
        trim.bind(end, at: 1)
        _ = try meter.delete(trim)
        return Progress(saved: cursor, trimmed: end)
    }

    /// Notes that what ``save(tidily:)`` wrote is committed.
    func adopt(_ progress: Progress) {
        self.progress = progress
    }

    /// The last reading that may be deleted now.
    private func chunkEnd() throws(StoreFault) -> Int64 {
        defer { selectChunkEnd.reset() }
        guard try selectChunkEnd.step(), !selectChunkEnd.isNull(0) else { return cursor }
        return min(cursor, selectChunkEnd.integer(0))
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
