import GattherdModel

/// The rows that samples refer to: streams, series and quantities, created when they are first needed.
final class SeriesTable {
    private let findStream: Statement
    private let addStream: Statement
    private let findSeries: Statement
    private let addSeries: Statement
    private let markBoolean: Statement
    private let lowerFirst: Statement
    private let findQuantity: Statement
    private let addQuantity: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        findStream = try Statement(
            "SELECT id FROM stream WHERE device = ?1 AND profile = ?2 AND stream = ?3",
            on: connection
        )
        addStream = try Statement(
            "INSERT INTO stream (device, profile, stream) VALUES (?1, ?2, ?3) RETURNING id",
            on: connection
        )
        findSeries = try Statement(
            """
            SELECT id FROM metric_series AS series
            WHERE stream = ?1 AND metric = ?2 AND unit IS ?3 AND kind = ?4 AND repeated = ?5 AND source = ?6
                AND quantity = ?7
            """,
            on: connection
        )
        addSeries = try Statement(
            """
            INSERT INTO metric_series (stream, metric, unit, kind, repeated, source, quantity, first)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id
            """,
            on: connection
        )
        markBoolean = try Statement(
            "UPDATE metric_series SET boolean = 1 WHERE id = ?1 AND NOT boolean",
            on: connection
        )
        lowerFirst = try Statement(
            "UPDATE metric_series SET first = ?2 WHERE id = ?1 AND coalesce(first, ?2 + 1) > ?2",
            on: connection
        )
        findQuantity = try Statement(
            "SELECT id FROM quantity WHERE device = ?1 AND metric = ?2 AND unit IS ?3",
            on: connection
        )
        addQuantity = try Statement(
            "INSERT INTO quantity (device, metric, unit) VALUES (?1, ?2, ?3) RETURNING id",
            on: connection
        )
    }

    /// Returns the key of a stream.
    func stream(_ name: String, device: String, profile: String) throws(StoreFault) -> Int64 {
        try Self.id(findStream, addStream) { statement in
            statement.bind(device, profile, name)
        }
    }

    /// Returns the keys of a metric of `stream` from `source`; a new series begins with `first`.
    func series(
        _ metric: MetricDescriptor,
        of stream: Int64,
        device: String,
        source: String,
        first: Timestamp
    ) throws(StoreFault) -> SeriesKey {
        let quantity = try Self.id(findQuantity, addQuantity) { statement in
            statement.bind(device, metric.name, metric.unit)
        }
        addSeries.bind(first.microseconds, at: 8)
        let series = try Self.id(findSeries, addSeries) { statement in
            statement.bind(stream, metric.name, metric.unit, metric.kind.rawValue, metric.isRepeated, source, quantity)
        }
        return SeriesKey(series: series, quantity: quantity)
    }

    /// Records that a series has a sample at `time`, which may be its first.
    func recordSample(at time: Int64, inSeries id: Int64) throws(StoreFault) {
        try lowerFirst.run(binding: id, time)
    }

    /// Records that the series' 1 and 0 are booleans.
    func markBoolean(inSeries id: Int64) throws(StoreFault) {
        try markBoolean.run(binding: id)
    }

    /// Returns the key that `find` finds, or else the key that `add` creates.
    private static func id(
        _ find: borrowing Statement,
        _ add: borrowing Statement,
        bind: (borrowing Statement) -> Void
    ) throws(StoreFault) -> Int64 {
        bind(find)
        defer { find.reset() }
        if try find.step() { return find.integer(0) }
        bind(add)
        defer { add.reset() }
        _ = try add.step()
        return add.integer(0)
    }
}
