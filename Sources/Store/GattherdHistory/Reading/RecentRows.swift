import GattherdModel

/// The newest samples, events and rejects, in bounded lists.
struct RecentRows {
    /// The maximum size of the events or rejects in one response, in bytes.
    static let longestAnswer = 1 << 20

    private let connection: SQLiteConnection

    init(on connection: SQLiteConnection) {
        self.connection = connection
    }

    /// Returns the newest row of each metric of each stream, of all devices or of one, by name.
    func samples(device: String?) throws(StoreFault) -> [HistoryRow] {
        let select = try Statement(
            """
            SELECT latest.seq, latest.ts, latest.value, latest.device, latest.profile, latest.stream, latest.metric,
                latest.unit, latest.source, series.kind, series.repeated
            FROM latest JOIN head ON head.seq = latest.seq
            JOIN metric_series AS series ON series.id = head.series AND series.metric = latest.metric
            WHERE ?1 IS NULL OR latest.device = ?1 ORDER BY latest.device, latest.metric, latest.stream
            """,
            on: connection
        )
        return try select.rows(binding: device) { row in
            HistoryRow(
                seq: row.integer(0),
                time: Timestamp(microseconds: row.integer(1)),
                series: HistorySeries(row, from: 3),
                value: row.value(2)
            )
        }
    }

    /// Returns the newest events of a device, or of the gateway and all devices, oldest first.
    func events(device: String?, limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        try events(device == nil ? "" : "WHERE device = ?1", device, limit)
    }

    /// Returns the newest events of these `kinds`, of the gateway and its devices, oldest first.
    func events(kinds: [String], limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        try events("WHERE kind IN (SELECT value FROM json_each(?1))", Self.list(kinds), limit)
    }

    /// Returns the gateway's own newest events of these `kinds`, oldest first.
    func gatewayEvents(kinds: [String], limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        let condition = "WHERE device IS NULL AND kind IN (SELECT value FROM json_each(?1))"
        return try events(condition, Self.list(kinds), limit)
    }

    /// Returns the last event of each alert of each device, if it raised the alert, oldest first.
    ///
    /// The order of the events is that of their numbers, because the clock may have been set back.
    func raisedAlerts(limit: Int) throws(StoreFault) -> [LifecycleEvent] {
        try events(
            """
            WHERE id IN (
                SELECT max(id) FROM event WHERE kind = ?1 AND \(Self.member("alert")) IS NOT NULL
                GROUP BY device, \(Self.member("alert"))
            ) AND \(Self.member("state")) = 'raised'
            """,
            "alert",
            limit
        )
    }

    /// The SQL of a member of an event's detail; `NULL` if the detail is no JSON.
    private static func member(_ name: String) -> String {
        "CASE WHEN json_valid(detail) THEN json_extract(detail, '$.\(name)') END"
    }

    /// Returns the words as a JSON array.
    private static func list(_ words: [String]) -> String {
        JSONWriter.text { writer in
            writer.array(words) { $0.string($1) }
        }
    }

    private func events(
        _ condition: String,
        _ argument: String?,
        _ limit: Int
    ) throws(StoreFault) -> [LifecycleEvent] {
        let select = try Statement(
            "SELECT ts, device, kind, detail FROM event \(condition) ORDER BY ts DESC, id DESC LIMIT ?2",
            on: connection
        )
        select.bind(argument, Int64(max(0, limit)))
        return try Self.newest(select) { row in
            let event = LifecycleEvent(
                time: Timestamp(microseconds: row.integer(0)),
                device: row.optionalText(1),
                kind: row.text(2),
                detail: row.text(3)
            )
            return (event, event.detail.utf8.count + 128)
        }
    }

    /// Returns the newest rejected payloads of a device, or of all devices, oldest first.
    func rejects(device: String?, limit: Int) throws(StoreFault) -> [Reject] {
        let condition: StaticString = device == nil ? "" : "WHERE device = ?1"
        let select = try Statement(
            """
            SELECT ts, device, characteristic, octets, reason FROM reject \(condition)
            ORDER BY ts DESC, id DESC LIMIT ?2
            """,
            on: connection
        )
        select.bind(device, Int64(max(0, limit)))
        return try Self.newest(select) { row in
            let reject = Reject(row)
            return (reject, 2 * reject.payload.count + reject.reason.utf8.count + 160)
        }
    }

    /// Returns the selected rows in reverse order, at most ``longestAnswer`` bytes of them.
    private static func newest<Row>(
        _ select: borrowing Statement,
        decode: (borrowing Statement) -> (row: Row, size: Int)
    ) throws(StoreFault) -> [Row] {
        var rows: [Row] = []
        var bytes = 0
        while try select.step() {
            let (row, size) = decode(select)
            bytes += size
            guard bytes <= longestAnswer || rows.isEmpty else { break }
            rows.append(row)
        }
        return rows.reversed()
    }
}

extension Reject {
    /// Reads the columns `ts`, `device`, `characteristic`, `octets` and `reason`.
    init(_ row: borrowing Statement, from column: Int32 = 0) {
        self.init(
            time: Timestamp(microseconds: row.integer(column)),
            device: row.text(column + 1),
            characteristic: row.text(column + 2),
            payload: row.bytes(column + 3),
            reason: row.text(column + 4)
        )
    }
}

extension HistorySeries {
    /// Reads eight columns in the order of the properties.
    convenience init(_ row: borrowing Statement, from column: Int32) {
        self.init(
            device: row.text(column),
            profile: row.text(column + 1),
            stream: row.text(column + 2),
            metric: row.text(column + 3),
            unit: row.optionalText(column + 4),
            source: row.text(column + 5),
            kind: MetricKind(rawValue: row.text(column + 6)) ?? .gauge,
            isRepeated: row.integer(column + 7) != 0
        )
    }
}
