import GattherdModel

/// The undelivered readings, and the cursor: the last reading that the broker has acknowledged.
///
/// The readings themselves are in history; the journal only has the positions of their samples, a row for each extent.
/// Only readings committed while delivery is on enter the journal. Turning delivery on thus publishes no old readings.
final class Journal {
    /// The number of extents deleted at once, so that no commit waits for the deletion of a day's backlog.
    private static let chunk = 5000
    /// The maximum number of bytes that the next transaction is expected to add.
    private static let kept = 1 << 16
    /// The number of acknowledged readings that stay, because deleting a few with each commit costs many page writes.
    private static let tolerated = 1000

    /// The number of readings that a crash may repeat while the cursor waits to be saved with another commit.
    private static let repeated: Int64 = 250

    /// The progress that is not in the file yet.
    struct Progress {
        /// The cursor in the file.
        var saved: Int64
        /// The last deleted reading.
        var trimmed: Int64
    }

    private(set) var cursor: Int64
    /// The last reading that was handed over.
    var handedOver: Int64 { max(read, tail.handedOver) }
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

    /// True if the next commit should save the cursor, or delete readings that it has passed.
    var isSaveDue: Bool { cursor != progress.saved || cursor - progress.trimmed > Self.tolerated }

    /// True if the cursor has passed so many readings that a crash should not repeat them.
    var isSaveUrgent: Bool { cursor - progress.saved >= Self.repeated }

    /// True if there is nothing left to do.
    var isTidy: Bool { cursor == progress.saved && cursor == progress.trimmed }

    /// Reads the cursor; without undelivered readings it is at `head`, the newest reading.
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

    /// Adds a reading that is in history already; only in a transaction, with ``flush()`` after the last reading.
    func append(_ reading: Reading, seq: Int64, samples: [Sample]) throws(StoreFault) {
        let start = payloads.bytes.count
        reading.writeJSON(seq: seq, samples: samples, to: &payloads)
        payloads.endDocument()
        let end = payloads.bytes.count
        if extent?.add(seq, reading.time, end - start) != true {
            try flush()
            extent = Extent(seq, reading.time, end - start)
        }
        meter.add(end - start)
        added.append((reading.stream, seq, end))
    }

    /// Writes the current extent.
    func flush() throws(StoreFault) {
        guard let extent else { return }
        self.extent = nil
        try insert.run(binding: extent.first, extent.last, Int64(extent.bytes), extent.earliest, extent.latest)
    }

    /// Hands the committed readings between these two numbers over to delivery.
    func release(after start: Int64, through end: Int64) {
        let bytes = payloads.bytes
        var place = 0
        let readings = added.map { reading in
            defer { place = reading.end }
            let (stream, payload) = (reading.stream, bytes[place..<reading.end])
            return JournalReading(seq: reading.seq, device: stream.device, stream: stream.stream, payload: payload)
        }
        tail.append(readings, after: start, through: end)
        discardAdded()
    }

    /// Discards the added readings, because they are not committed or already handed over.
    func discardAdded() {
        added.removeAll(keepingCapacity: true)
        payloads = JSONWriter(reserving: min(payloads.bytes.count, Self.kept))
        extent = nil
    }

    /// Reads back undelivered readings after `seq`, at most `limit`; see ``JournalReader``.
    func readings(after seq: Int64, limit: Int, _ shift: ClockShift? = nil) throws(StoreFault) -> [JournalReading] {
        let readings = try reader.readings(after: seq, limit: limit, shift)
        read = max(read, readings.last?.seq ?? 0)
        return readings
    }

    /// Moves the cursor forward, never back.
    func acknowledge(through seq: Int64) {
        cursor = max(cursor, seq)
    }

    /// Writes the cursor and deletes some of the readings that it has passed; only in a transaction.
    ///
    /// - Parameter tidily: Deletes even if there is little to delete.
    /// - Returns: The progress, for ``didSave(_:)`` after the commit.
    /// - Throws: ``StoreFault`` if the file cannot be written.
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

    /// Records that the result of ``save(tidily:)`` is committed.
    func didSave(_ progress: Progress) {
        self.progress = progress
    }

    /// The last reading that may be deleted now.
    private func chunkEnd() throws(StoreFault) -> Int64 {
        try selectChunkEnd.firstInteger().map { min(cursor, $0) } ?? cursor
    }
}

/// Consecutive readings and the time range of their samples.
private struct Extent {
    /// The maximum number of readings, small enough that reading back a whole extent is cheap.
    private static let capacity: Int64 = 128

    let first: Int64
    private(set) var last: Int64
    private(set) var bytes: Int
    private(set) var earliest: Int64
    private(set) var latest: Int64

    init(_ seq: Int64, _ time: Timestamp, _ bytes: Int) {
        first = seq
        last = seq
        self.bytes = bytes
        earliest = time.microseconds
        latest = time.microseconds
    }

    /// Adds a reading; returns false if the reading needs a new extent.
    mutating func add(_ seq: Int64, _ time: Timestamp, _ bytes: Int) -> Bool {
        guard seq == last + 1, seq - first < Self.capacity else { return false }
        last = seq
        self.bytes += bytes
        earliest = min(earliest, time.microseconds)
        latest = max(latest, time.microseconds)
        return true
    }
}
