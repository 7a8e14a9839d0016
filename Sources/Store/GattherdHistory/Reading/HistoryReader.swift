public import GattherdModel

/// A read-only connection to the history, with or without a running daemon.
///
/// One thread at a time may use a reader. Calls wait for the disk. Rows are read in slices, and no snapshot is held
/// between two slices. Slow callers therefore do not make the daemon's WAL grow.
public struct HistoryReader {
    let connection: SQLiteConnection

    /// Opens the history at `path`.
    ///
    /// - Throws: ``StoreFault`` if the history is missing, not ours, or of another version.
    public init(path: String) throws(StoreFault) {
        try Schema.expectFile(path)
        connection = try Schema.openForReading(path)
    }

    /// Returns the newest row of each metric of each device, or of one device, by name.
    public func latest(device: String? = nil) throws(StoreFault) -> [HistoryRow] {
        let statement = try Statement(
            """
            SELECT latest.seq, latest.ts, latest.value, latest.device, latest.profile, latest.stream, latest.metric,
                latest.unit, latest.source, series.kind, series.repeated
            FROM latest JOIN head ON head.seq = latest.seq
            JOIN metric_series AS series ON series.id = head.series AND series.metric = latest.metric
            WHERE ?1 IS NULL OR latest.device = ?1 ORDER BY latest.device, latest.metric
            """,
            on: connection
        )
        statement.bind(device)
        var rows: [HistoryRow] = []
        while try statement.step() {
            rows.append(
                HistoryRow(
                    seq: statement.integer(0),
                    time: Timestamp(microseconds: statement.integer(1)),
                    series: HistorySeries(statement, from: 3),
                    value: statement.value(2)
                )
            )
        }
        return rows
    }

    /// The maximum size of the events or rejects in one response, in bytes.
    public static let longestAnswer = 1 << 20

    /// Returns the newest events of a device, or of the gateway and all devices, oldest first.
    ///
    /// At most `limit`, and at most ``longestAnswer`` bytes.
    public func events(device: String? = nil, newest limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        try events(device == nil ? "" : "WHERE device = ?1", device, newest: limit)
    }

    /// Returns the gateway's own newest events of these `kinds`, at most `limit`, oldest first.
    public func gatewayEvents(kinds: [String], newest limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        let list = JSONWriter.octets { writer in
            writer.beginArray()
            for kind in kinds { writer.string(kind) }
            writer.endArray()
        }
        let condition: StaticString = "WHERE device IS NULL AND kind IN (SELECT value FROM json_each(?1))"
        return try events(condition, String(decoding: list, as: UTF8.self), newest: limit)
    }

    private func events(
        _ condition: StaticString,
        _ argument: String?,
        newest limit: Int
    ) throws(StoreFault) -> [LifecycleEvent] {
        let statement = try Statement(
            "SELECT ts, device, kind, detail FROM event \(condition) ORDER BY ts DESC, id DESC LIMIT ?2",
            on: connection
        )
        statement.bind(argument, Int64(max(0, limit)))
        var events: [LifecycleEvent] = []
        var bytes = 0
        while try statement.step() {
            let event = LifecycleEvent(
                time: Timestamp(microseconds: statement.integer(0)),
                device: statement.optionalText(1),
                kind: statement.text(2),
                detail: statement.text(3)
            )
            bytes += event.detail.utf8.count + 128
            guard bytes <= Self.longestAnswer || events.isEmpty else { break }
            events.append(event)
        }
        return events.reversed()
    }
}

extension HistorySeries {
    /// Reads eight columns in the order of the properties.
    convenience init(_ statement: borrowing Statement, from column: Int32) {
        self.init(
            device: statement.text(column),
            profile: statement.text(column + 1),
            stream: statement.text(column + 2),
            metric: statement.text(column + 3),
            unit: statement.optionalText(column + 4),
            source: statement.text(column + 5),
            kind: MetricKind(rawValue: statement.text(column + 6)) ?? .gauge,
            isRepeated: statement.integer(column + 7) != 0
        )
    }
}
