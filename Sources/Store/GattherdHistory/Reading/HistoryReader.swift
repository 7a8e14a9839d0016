public import GattherdModel

/// A read-only connection to the history, with or without a running daemon.
///
/// One thread at a time may use a reader. Calls wait for the disk. Rows are read in slices, and no snapshot is held
/// between two slices. Slow callers therefore do not make the daemon's WAL grow.
public struct HistoryReader {
    /// The maximum size of the events or rejects in one response, in bytes.
    public static let longestAnswer = RecentRows.longestAnswer

    private let connection: SQLiteConnection

    /// Opens the history at `path`.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - isWanted: False once nobody waits for the rows; long reads then end with an error.
    /// - Throws: ``StoreFault`` if the history is missing, not ours, or of another version.
    public init(path: String, while isWanted: @escaping () -> Bool = { true }) throws(StoreFault) {
        connection = try HistoryDatabase.openForReading(path)
        connection.isWanted = isWanted
    }

    // MARK: - Samples

    /// Passes the queried samples to `body`, ordered by time, until `body` returns false.
    ///
    /// - Throws: ``StoreFault`` when the file cannot be read, or is damaged.
    public func rows(_ query: HistoryQuery, _ body: (HistoryRow) -> Bool) throws(StoreFault) {
        try SampleQuery(query, on: connection).run(body)
    }

    /// Passes summaries of the queried numbers to `body`, oldest span first, until `body` returns false.
    ///
    /// A span without a number is omitted; the first and the last span contain only the queried time range.
    /// Spans of whole minutes or hours are read from their summaries.
    ///
    /// - Parameters:
    ///   - query: The rows to summarise.
    ///   - step: The length of a span; at least a microsecond.
    ///   - body: A function that receives the span of one metric of a device's stream.
    /// - Throws: ``StoreFault`` when the file cannot be read, or is damaged.
    public func buckets(
        _ query: HistoryQuery,
        every step: Duration,
        _ body: (HistoryBucket) -> Bool
    ) throws(StoreFault) {
        try BucketQuery(query, on: connection).run(every: step, body)
    }

    /// Returns the times of the oldest and the newest sample, optionally including the starts of summaries.
    ///
    /// Returns `nil` for an empty history.
    public func extent(withSummaries: Bool) throws(StoreFault) -> ClosedRange<Timestamp>? {
        try TimeRangeQuery(on: connection).all(withSummaries: withSummaries)
    }

    /// Returns the times of the oldest and the newest queried numbers, as exactly as possible.
    public func extent(ofNumbers query: HistoryQuery) throws(StoreFault) -> ClosedRange<Timestamp>? {
        try TimeRangeQuery(on: connection).numbers(query)
    }

    /// Returns the newest row of each metric of each stream, of all devices or of one, by name.
    public func latest(device: String? = nil) throws(StoreFault) -> [HistoryRow] {
        try RecentRows(on: connection).samples(device: device)
    }

    // MARK: - Events and rejects

    /// Returns the newest events of a device, or of the gateway and all devices, oldest first.
    ///
    /// At most `limit`, and at most ``longestAnswer`` bytes.
    public func events(device: String? = nil, newest limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        try RecentRows(on: connection).events(device: device, limit: limit)
    }

    /// Returns the newest events of these `kinds`, of the gateway and its devices, at most `limit`, oldest first.
    public func events(kinds: [String], newest limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        try RecentRows(on: connection).events(kinds: kinds, limit: limit)
    }

    /// Returns the gateway's own newest events of these `kinds`, at most `limit`, oldest first.
    public func gatewayEvents(kinds: [String], newest limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        try RecentRows(on: connection).gatewayEvents(kinds: kinds, limit: limit)
    }

    /// Returns the events that raised an alert which no later event clears, at most `limit`, oldest first.
    public func raisedAlerts(newest limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        try RecentRows(on: connection).raisedAlerts(limit: limit)
    }

    /// Returns the newest rejected payloads of a device, or of all devices, oldest first.
    ///
    /// At most `limit`, and at most ``longestAnswer`` bytes in readable form.
    public func rejects(device: String? = nil, newest limit: Int) throws(StoreFault) -> [Reject] {
        try RecentRows(on: connection).rejects(device: device, limit: limit)
    }

    /// Passes rejected payloads to `body`, ordered by time, until `body` returns false.
    ///
    /// The query's stream and metric are ignored, because a reject has none.
    public func rejects(_ query: HistoryQuery, _ body: (Reject) -> Bool) throws(StoreFault) {
        try RejectQuery(query, on: connection).run(body)
    }

    // MARK: - Names

    /// Returns the devices in the history, by name.
    public func devices() throws(StoreFault) -> [String] {
        let sql = "SELECT device FROM stream UNION SELECT device FROM device UNION SELECT device FROM reject ORDER BY 1"
        return try Statement(sql, on: connection).rows { row in row.text(0) }
    }

    /// Returns the streams of one device, or of all, that have or had samples, by name.
    public func streams(device: String?) throws(StoreFault) -> [String] {
        let sql = "SELECT DISTINCT stream FROM quantity WHERE ?1 IS NULL OR device = ?1 ORDER BY 1"
        return try Statement(sql, on: connection).rows(binding: device) { row in row.text(0) }
    }

    /// Returns the metrics of one device, or of all, that have or had samples, by name.
    public func metrics(device: String?) throws(StoreFault) -> [String] {
        let sql = "SELECT DISTINCT metric FROM quantity WHERE ?1 IS NULL OR device = ?1 ORDER BY 1"
        return try Statement(sql, on: connection).rows(binding: device) { row in row.text(0) }
    }

    /// Returns the metrics of all streams whose kind is a gauge.
    public func gauges() throws(StoreFault) -> [HistoryGauge] {
        let sql = """
            SELECT DISTINCT stream.device, stream.stream, series.metric, series.unit
            FROM metric_series AS series JOIN stream ON stream.id = series.stream WHERE series.kind = 'gauge'
            """
        return try Statement(sql, on: connection).rows { row in
            HistoryGauge(device: row.text(0), stream: row.text(1), metric: row.text(2), unit: row.optionalText(3))
        }
    }

    /// Returns the records of devices, by name.
    public func deviceRecords() throws(StoreFault) -> [SeenDevice] {
        let sql = "SELECT device, address, name, profiles, first_seen, last_seen FROM device ORDER BY device"
        return try Statement(sql, on: connection).rows { row in
            let record = DeviceRecord(
                device: row.text(0),
                address: row.text(1),
                name: row.optionalText(2),
                profiles: row.text(3).split(separator: ",").map { String($0) }
            )
            let (first, last) = (row.integer(4), row.integer(5))
            return SeenDevice(record, first: Timestamp(microseconds: first), last: Timestamp(microseconds: last))
        }
    }

    /// Returns the enrolled devices, by name.
    public func enrolledDevices() throws(StoreFault) -> [EnrolledDevice] {
        try EnrolledTable(connection).devices()
    }

    // MARK: - The file

    /// Checks every page, row and reference, while the daemon continues.
    ///
    /// - Returns: The problems, at most a hundred; empty if there are none.
    /// - Throws: ``StoreFault`` if the file cannot be read.
    public func check() throws(StoreFault) -> [String] {
        try HistoryCheck(connection).findings()
    }

    /// Counts all rows, which reads the whole file.
    public func contents() throws(StoreFault) -> HistoryContents {
        try HistoryContents(of: connection)
    }

    /// Copies a snapshot of the history without free pages, while the daemon continues.
    ///
    /// The copy gets its name when it is complete and on the disk.
    ///
    /// - Parameter path: The copy, which must not exist yet.
    /// - Throws: ``StoreFault`` if the copy exists or cannot be written.
    public func backUp(to path: String) throws(StoreFault) {
        try Backup(of: connection).write(to: path)
    }
}
