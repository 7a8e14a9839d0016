import GattherdModel

/// The table `outbox`: the positions of readings that some consumer has not acknowledged.
final class ExtentTable {
    /// The number of extents deleted at once, so that no commit waits for the deletion of a day's backlog.
    private static let chunk = 5000

    private let insert: Statement
    private let selectOverlapping: Statement
    private let selectBounds: Statement
    private let selectCount: Statement
    private let selectChunkEnd: Statement
    private let deleteThrough: Statement
    private let deleteBetween: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        insert = try Statement(
            "INSERT INTO outbox (first, last, octets, ts, ts_last, arrived) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            on: connection
        )
        selectOverlapping = try Statement(
            "SELECT first, last FROM outbox WHERE first > ?1 AND first <= ?2 AND last >= ?3",
            on: connection
        )
        selectBounds = try Statement(
            "SELECT seq FROM clock UNION SELECT seq_end FROM clock WHERE seq_end IS NOT NULL",
            on: connection
        )
        selectCount = try Statement(
            """
            SELECT sum(min(last, ?2) - max(first, ?1 + 1) + 1) FROM outbox
            WHERE first > ?1 - \(Extent.capacity) AND last > ?1 AND first <= ?2
            """,
            on: connection
        )
        selectChunkEnd = try Statement(
            "SELECT max(last) FROM (SELECT last FROM outbox ORDER BY first LIMIT \(Self.chunk))",
            on: connection
        )
        // Without the condition on `first`, the key, the whole table would be read.
        deleteThrough = try Statement(
            "DELETE FROM outbox WHERE first <= ?1 AND last <= ?1 RETURNING first, octets",
            on: connection
        )
        deleteBetween = try Statement(
            """
            DELETE FROM outbox WHERE first > ?1 - \(Extent.capacity) AND last > ?1 AND last <= ?2
            RETURNING first, octets
            """,
            on: connection
        )
    }

    /// The number of readings with these numbers that are not acknowledged.
    func count(after start: Int64, through end: Int64) throws(StoreFault) -> Int64 {
        try selectCount.firstInteger(binding: start, end) ?? 0
    }

    /// The last number of the extents that may be deleted at once; `nil` without extents.
    func chunkEnd() throws(StoreFault) -> Int64? { try selectChunkEnd.firstInteger() }

    /// Deletes the extents that end at or before a number; only in a transaction.
    func delete(through end: Int64, _ meter: BacklogMeter) throws(StoreFault) {
        deleteThrough.bind(end)
        try meter.delete(deleteThrough)
    }

    /// Deletes the extents that end after `start`, at or before `end`; only in a transaction.
    func delete(after start: Int64, through end: Int64, _ meter: BacklogMeter) throws(StoreFault) {
        deleteBetween.bind(start, end)
        try meter.delete(deleteBetween)
    }

    func insert(_ extent: Extent) throws(StoreFault) {
        let bytes = Int64(extent.bytes)
        try insert.run(binding: extent.first, extent.last, bytes, extent.earliest, extent.latest, extent.arrived)
    }

    /// Inserts readings, in the order of their numbers, that no extent has yet; only in a transaction.
    ///
    /// No extent crosses the start or the end of a clock span: a correction moves extents as a whole.
    ///
    /// - Returns: Their bytes.
    func insertMissing(_ readings: [Extent]) throws(StoreFault) -> Int {
        var rest = readings[...]
        let bounds = Set(try selectBounds.rows { row in row.integer(0) })
        var bytes = 0
        while let first = rest.first?.first {
            let near = rest.prefix { $0.first - first < Extent.capacity }
            rest = rest.dropFirst(near.count)
            bytes += try insertMissing(near, from: first, bounds)
        }
        return bytes
    }

    /// Inserts the readings that no extent covers; they span one extent at most.
    private func insertMissing(
        _ readings: ArraySlice<Extent>,
        from first: Int64,
        _ bounds: Set<Int64>
    ) throws(StoreFault) -> Int {
        let known = try selectOverlapping.rows(
            binding: first - Extent.capacity,
            first + Extent.capacity,
            first
        ) { row in row.integer(0)...max(row.integer(0), row.integer(1)) }
        var (extent, bytes) = (Extent?.none, 0)
        for reading in readings where !known.contains(where: { $0.contains(reading.first) }) {
            bytes += reading.bytes
            if !bounds.contains(reading.first - 1), extent?.add(reading) == true { continue }
            if let extent { try insert(extent) }
            extent = reading
        }
        if let extent { try insert(extent) }
        return bytes
    }
}

/// Consecutive readings and the time range of their samples.
struct Extent {
    /// The maximum number of readings, small enough that reading back a whole extent is cheap.
    static let capacity: Int64 = 128
    /// The longest time range in microseconds, for the same reason: two days.
    private static let longest: Int64 = 172_800_000_000

    let first: Int64
    private(set) var last: Int64
    private(set) var bytes: Int
    private(set) var earliest: Int64
    private(set) var latest: Int64
    /// The time at which the last reading arrived.
    private(set) var arrived: Int64

    /// The extent of one reading.
    init(first: Int64, bytes: Int, ts: Int64, arrived: Int64) {
        (self.first, last, self.bytes, earliest, latest) = (first, first, bytes, ts, ts)
        self.arrived = arrived
    }

    init(_ reading: JournalReading, at now: Int64) {
        let ts = reading.time.microseconds
        self.init(first: reading.seq, bytes: reading.size, ts: ts, arrived: max(ts, now))
    }

    /// Adds the readings that follow; returns false if they need a new extent.
    mutating func add(_ next: Extent) -> Bool {
        guard next.first == last + 1, next.last - first < Self.capacity, fits(next) else { return false }
        last = next.last
        bytes += next.bytes
        earliest = min(earliest, next.earliest)
        latest = max(latest, next.latest)
        arrived = max(arrived, next.arrived)
        return true
    }

    /// Returns the number of readings of a row that begins with `first` and `last`, whatever a damaged row has.
    static func count(_ row: borrowing Statement) -> Int64 {
        min(max(1, row.integer(1) &- row.integer(0) &+ 1), capacity)
    }

    /// Returns the bytes in a column, within bounds in which sums do not overflow.
    static func bytes(_ row: borrowing Statement, _ column: Int32) -> Int64 {
        min(max(0, row.integer(column)), 1 << 40)
    }

    /// True if the time range stays short; stored records of a device may be much older than its values.
    private func fits(_ next: Extent) -> Bool {
        let (range, overflow) = max(latest, next.latest).subtractingReportingOverflow(min(earliest, next.earliest))
        return !overflow && range <= Self.longest
    }
}
