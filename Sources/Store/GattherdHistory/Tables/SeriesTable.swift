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
            "SELECT id FROM quantity WHERE device = ?1 AND stream = ?2 AND metric = ?3 AND unit IS ?4",
            on: connection
        )
        addQuantity = try Statement(
            "INSERT INTO quantity (device, stream, metric, unit) VALUES (?1, ?2, ?3, ?4) RETURNING id",
            on: connection
        )
    }

    /// Returns the key of a stream.
    func stream(_ name: String, device: String, profile: String) throws(StoreFault) -> Int64 {
        if let id = try findStream.firstInteger(binding: device, profile, name) { return id }
        return try addStream.firstInteger(binding: device, profile, name) ?? 0
    }

    /// Returns the keys of a metric of `stream`, whose name is `streamName`, from `source`.
    ///
    /// A new series begins with `first`.
    func series(
        _ metric: MetricDescriptor,
        of stream: Int64,
        named streamName: String,
        device: String,
        source: String,
        first: Timestamp
    ) throws(StoreFault) -> SeriesKey {
        let (name, unit, kind, isRepeated) = (metric.name, metric.unit, metric.kind.rawValue, metric.isRepeated)
        let quantity = try quantity(name, unit, of: streamName, device)
        let known = try findSeries.firstInteger(binding: stream, name, unit, kind, isRepeated, source, quantity)
        if let known { return SeriesKey(series: known, quantity: quantity) }
        let added = try addSeries.firstInteger(
            binding: stream,
            name,
            unit,
            kind,
            isRepeated,
            source,
            quantity,
            first.microseconds
        )
        return SeriesKey(series: added ?? 0, quantity: quantity)
    }

    private func quantity(
        _ metric: String,
        _ unit: String?,
        of stream: String,
        _ device: String
    ) throws(StoreFault) -> Int64 {
        if let id = try findQuantity.firstInteger(binding: device, stream, metric, unit) { return id }
        return try addQuantity.firstInteger(binding: device, stream, metric, unit) ?? 0
    }

    /// Records that a series has a sample at `time`, which may be its first.
    func recordSample(at time: Int64, inSeries id: Int64) throws(StoreFault) {
        try lowerFirst.run(binding: id, time)
    }

    /// Records that the series' 1 and 0 are booleans.
    func markBoolean(inSeries id: Int64) throws(StoreFault) {
        try markBoolean.run(binding: id)
    }
}
