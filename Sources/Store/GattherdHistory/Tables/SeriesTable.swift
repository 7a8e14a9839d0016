import GattherdModel

/// The rows that samples refer to: streams, series and quantities, made when they are first needed.
final class SeriesTable {
    private let findStream: Statement
    private let addStream: Statement
    private let findSeries: Statement
    private let addSeries: Statement
    private let noteBooleans: Statement
    private let noteFirst: Statement
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
        noteBooleans = try Statement(
            "UPDATE metric_series SET boolean = 1 WHERE id = ?1 AND NOT boolean",
            on: connection
        )
        noteFirst = try Statement(
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

    /// The key of a stream.
    func stream(_ name: String, device: String, profile: String) throws(StoreFault) -> Int64 {
        try Self.id(findStream, addStream) { statement in
            statement.bind(device, at: 1)
            statement.bind(profile, at: 2)
            statement.bind(name, at: 3)
        }
    }

    /// The keys of a metric of the stream `stream`, as `source` brings it; a new series begins with `first`.
    func series(
        _ metric: MetricDescriptor,
        of stream: Int64,
        device: String,
        source: String,
        first: Timestamp
    ) throws(StoreFault) -> SeriesKey {
        let quantity = try Self.id(findQuantity, addQuantity) { statement in
            statement.bind(device, at: 1)
            statement.bind(metric.name, at: 2)
            statement.bind(metric.unit, at: 3)
        }
        addSeries.bind(first.microseconds, at: 8)
        let series = try Self.id(findSeries, addSeries) { statement in
            statement.bind(stream, at: 1)
            statement.bind(metric.name, at: 2)
            statement.bind(metric.unit, at: 3)
            statement.bind(metric.kind.rawValue, at: 4)
            statement.bind(metric.isRepeated, at: 5)
            statement.bind(source, at: 6)
            statement.bind(quantity, at: 7)
        }
        return SeriesKey(series: series, quantity: quantity)
    }

    /// Remembers that a series has a sample from `time`, which may be its first one.
    func noteSample(at time: Int64, inSeries id: Int64) throws(StoreFault) {
        noteFirst.bind(id, at: 1)
        noteFirst.bind(time, at: 2)
        try noteFirst.run()
    }

    /// Remembers that 1 and 0 are booleans here.
    func noteBooleans(inSeries id: Int64) throws(StoreFault) {
        noteBooleans.bind(id, at: 1)
        try noteBooleans.run()
    }

    /// The key that `find` gives, or else the one that `add` makes.
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
