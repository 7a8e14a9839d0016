import GattherdModel

/// The readings that are not delivered yet, and the cursor: the last one that the broker has acknowledged.
///
/// The readings themselves are in history: here is only where their samples are, a row for each extent. Only
/// what is committed while delivery is on comes in here, so that turning delivery on does not publish the past.
final class Journal {
    /// Extents that are deleted at once, so that no commit waits for a day's backlog to go.
    private static let chunk = 5000
    /// Octets that the next transaction is expected to add, at most.
    private static let kept = 1 << 16
    /// Acknowledged readings that are left lying, for deleting a few with each commit costs many page writes.
    private static let tolerated = 1000

    /// The progress that the file does not have yet.
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
    private let tail: JournalTail
    /// The readings that the open transaction has added, and their concatenated payloads.
    private var added: [(stream: StreamDefinition, seq: Int64, end: Int)] = []
    private var payloads = JSONWriter()
    private var extent: Extent?
    private var progress: Progress
    private let state: StateTable
    private let meter: BacklogMeter
    private let reader: JournalReader
    private let insert: Statement
    private let selectChunkEnd: Statement
    private let trim: Statement

    /// True when the next commit should take the cursor along, or delete what it has passed.
    var isSaveDue: Bool { cursor != progress.saved || cursor - progress.trimmed > Self.tolerated }

    /// The distance from the cursor in the file.
    var unsaved: Int64 { cursor - progress.saved }

    /// True when nothing at all is left to do.
    var isTidy: Bool { cursor == progress.saved && cursor == progress.trimmed }

    /// Reads the cursor; with nothing left to deliver it is at `head`, the newest reading.
    init(
        _ connection: SQLiteConnection,
        _ state: StateTable,
        _ meter: BacklogMeter,
        _ tail: JournalTail,
        head: Int64
    ) throws(StoreFault) {
        self.state = state
        self.tail = tail
        self.meter = meter
        let saved = try state.value(of: .cursor)
        let undelivered = try connection.integer("SELECT min(first) FROM outbox WHERE last > \(saved)")
        let oldest = try connection.integer("SELECT min(first) FROM outbox")
        cursor = undelivered > 0 ? max(saved, undelivered - 1) : head
        progress = Progress(saved: saved, trimmed: oldest > 0 ? oldest - 1 : cursor)
        reader = try JournalReader(connection)
        insert = try Statement(
            "INSERT INTO outbox (first, last, octets, ts, ts_last) VALUES (?1, ?2, ?3, ?4, ?5)",
            on: connection
        )
        selectChunkEnd = try Statement(
            "SELECT max(last) FROM (SELECT last FROM outbox ORDER BY first LIMIT \(Self.chunk))",
            on: connection
        )
        trim = try Statement("DELETE FROM outbox WHERE last <= ?1 RETURNING first, octets", on: connection)
    }

    /// Adds a reading that is in history already; only in a transaction, with ``flush()`` after the last.
    func append(_ reading: Reading, seq: Int64, samples: [Sample]) throws(StoreFault) {
        let start = payloads.octets.count
        reading.writeJSON(seq: seq, samples: samples, to: &payloads)
        payloads.endDocument()
        let end = payloads.octets.count
        if extent?.add(seq, reading.time, end - start) != true {
            try flush()
            extent = Extent(seq, reading.time, end - start)
        }
        meter.add(end - start)
        added.append((reading.stream, seq, end))
    }

    /// Writes the extent that has been begun.
    func flush() throws(StoreFault) {
        guard let extent else { return }
        self.extent = nil
        try insert.run(binding: extent.first, extent.last, Int64(extent.octets), extent.earliest, extent.latest)
    }

    /// Lets delivery have what was added between these two numbers, which is committed.
    func release(after start: Int64, through end: Int64) {
        let octets = payloads.octets
        var place = 0
        let readings = added.map { reading in
            defer { place = reading.end }
            let (stream, payload) = (reading.stream, octets[place..<reading.end])
            return JournalReading(seq: reading.seq, device: stream.device, stream: stream.stream, payload: payload)
        }
        tail.append(readings, after: start, through: end)
        forget()
    }

    /// Forgets what was added: it is not committed, or handed over.
    func forget() {
        added.removeAll(keepingCapacity: true)
        payloads = JSONWriter(reserving: min(payloads.octets.count, Self.kept))
        extent = nil
    }

    /// Reads back what waits after `seq`, at most `limit` readings; see ``JournalReader``.
    func readings(after seq: Int64, limit: Int, _ shift: ClockShift? = nil) throws(StoreFault) -> [JournalReading] {
        let readings = try reader.readings(after: seq, limit: limit, shift)
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
        trim.bind(end)
        try meter.delete(trim)
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
}

/// Readings that follow each other, and when their samples are from.
private struct Extent {
    /// So few that reading some of them back costs little more than what is wanted.
    private static let capacity: Int64 = 128

    let first: Int64
    private(set) var last: Int64
    private(set) var octets: Int
    private(set) var earliest: Int64
    private(set) var latest: Int64

    init(_ seq: Int64, _ time: Timestamp, _ octets: Int) {
        first = seq
        last = seq
        self.octets = octets
        earliest = time.microseconds
        latest = time.microseconds
    }

    /// False when the reading has to begin another one.
    mutating func add(_ seq: Int64, _ time: Timestamp, _ octets: Int) -> Bool {
        guard seq == last + 1, seq - first < Self.capacity else { return false }
        last = seq
        self.octets += octets
        earliest = min(earliest, time.microseconds)
        latest = max(latest, time.microseconds)
        return true
    }
}
