import GattherdModel

/// The views, which are the contract with all readers.
///
/// The views hold no data. Missing or outdated views are recreated at each start, so that steps of the schema ignore
/// them. `CROSS JOIN` prevents SQLite from reordering the join: samples are read by time or by number, and their series
/// are looked up.
enum HistoryViews {
    private static let views =
        [
            view("history", history), view("latest", latest), view("series", series), view("devices", devices),
            view("events", "SELECT ts, \(rfc3339("ts")) AS time, device, kind, detail FROM event"),
            view("rejects", rejects),
        ] + bucketViews

    private static let history = """
        SELECT sample.seq, sample.ts, \(rfc3339("sample.ts")) AS time, stream.device, stream.profile, stream.stream,
            series.metric, sample.value, series.unit, series.source, \(element(of: "series")) AS element, series.kind
        FROM sample CROSS JOIN metric_series AS series ON series.id = sample.series
        CROSS JOIN stream ON stream.id = series.stream
        """

    /// The newest sample of each metric of a stream.
    ///
    /// Imported samples, numbered below zero, may be newer than live ones. Among live samples the last to arrive is the
    /// newest, whatever the clock did.
    private static let latest = """
        SELECT sample.seq, sample.ts, \(rfc3339("sample.ts")) AS time, newest.device, newest.profile, newest.stream,
            newest.metric, sample.value, newest.unit, newest.source, \(element(of: "newest")) AS element, newest.kind
        FROM (
            SELECT *, row_number() OVER (
                PARTITION BY device, stream, metric ORDER BY iif(seq > 0, live, ts) DESC, seq DESC
            ) AS rank
            FROM (
                SELECT stream.device, stream.profile, stream.stream, series.metric, series.unit, series.source,
                    series.kind, series.repeated, head.ts, head.seq, head.ix,
                    first_value(head.ts) OVER (
                        PARTITION BY stream.device, stream.stream, series.metric ORDER BY head.seq DESC
                    ) AS live
                FROM head JOIN metric_series AS series ON series.id = head.series
                JOIN stream ON stream.id = series.stream
            )
        ) AS newest
        CROSS JOIN sample ON sample.ts = newest.ts AND sample.seq = newest.seq AND sample.ix = newest.ix
        WHERE newest.rank = 1
        """

    /// A row for each metric of a stream, from any source.
    ///
    /// The first sample may have been deleted since.
    private static let series = """
        SELECT device, profile, stream, metric, unit, kind, \(rfc3339("first_ts")) AS first,
            \(rfc3339("last_ts")) AS last, first_ts, last_ts
        FROM (
            SELECT stream.device, stream.profile, stream.stream, series.metric, series.unit, series.kind,
                min(min(coalesce(series.first, head.ts), head.ts)) AS first_ts, max(head.ts) AS last_ts
            FROM stream JOIN metric_series AS series ON series.stream = stream.id
            JOIN head ON head.series = series.id
            GROUP BY stream.id, series.metric, series.unit, series.kind
        )
        """

    private static let devices = """
        SELECT device, address, name, profiles, \(rfc3339("first_seen")) AS first_seen,
            \(rfc3339("last_seen")) AS last_seen
        FROM (
            SELECT device, address, name, profiles, first_seen,
                max(last_seen, coalesce((
                    SELECT max(head.ts) FROM stream
                    JOIN metric_series AS series ON series.stream = stream.id JOIN head ON head.series = series.id
                    WHERE stream.device = device.device
                ), last_seen)) AS last_seen
            FROM device
        )
        """

    private static let rejects = """
        SELECT ts, \(rfc3339("ts")) AS time, device, characteristic, lower(hex(octets)) AS bytes, reason FROM reject
        """

    /// The position of a sample among those of its metric in its reading, from 0; NULL unless the metric is repeated.
    ///
    /// The count reads the adjacent rows of the reading, and only if a query selects the column.
    private static func element(of series: String) -> String {
        """
        iif(\(series).repeated, (
                SELECT count(*) FROM sample AS other
                WHERE other.ts = sample.ts AND other.seq = sample.seq AND other.ix < sample.ix
                    AND other.series = sample.series
            ), NULL)
        """
    }

    private static func view(_ name: String, _ query: String) -> (name: String, sql: String) {
        (name, "CREATE VIEW \(name) AS\n\(query)")
    }

    /// Recreates the views that are missing or of another version.
    ///
    /// - Returns: The names of the views that could not be created, because tables have these names.
    static func renew(_ connection: SQLiteConnection) throws(StoreFault) -> [String] {
        let stored = try Statement("SELECT type, sql FROM sqlite_schema WHERE name = ?1", on: connection)
        var (outdated, taken): ([(name: String, sql: String)], [String]) = ([], [])
        for view in views {
            stored.bind(view.name)
            defer { stored.reset() }
            guard try stored.step() else {
                outdated.append(view)
                continue
            }
            if stored.text(0) != "view" {
                taken.append(view.name)
            } else if stored.text(1) != view.sql {
                outdated.append(view)
            }
        }
        guard !outdated.isEmpty else { return taken }
        try connection.transaction { () throws(StoreFault) in
            for view in outdated { try connection.execute("DROP VIEW IF EXISTS \(view.name); \(view.sql)") }
        }
        return taken
    }

    /// `ts` as RFC 3339 in UTC with microseconds; NULL outside of the years 0 to 9999.
    private static func rfc3339(_ ts: String) -> String {
        "strftime('%Y-%m-%dT%H:%M:%S', (\(floored(ts, to: 1_000_000))) / 1000000, 'unixepoch') "
            + "|| printf('.%06dZ', \(remainder(ts, of: 1_000_000)))"
    }

    static func floored(_ ts: String, to step: Int64) -> String {
        "\(ts) - \(remainder(ts, of: step))"
    }

    /// Returns the SQL of a remainder that is never negative, unlike `%`, so that instants before 1970 round down too.
    private static func remainder(_ ts: String, of step: Int64) -> String {
        "(\(ts) % \(step) + \(step)) % \(step)"
    }
}

// MARK: - Summaries

extension HistoryViews {
    /// The views of the summaries, with the rows that are not summarised yet.
    private static var bucketViews: [(name: String, sql: String)] {
        [
            view("history_minutes", buckets(of: "minute", andNewer: newerMinutes)),
            view("history_hours", buckets(of: "hour", andNewer: newerHours)),
        ]
    }

    /// Booleans are numbers here, 1 and 0; labels and unknown values are not counted.
    private static func buckets(of table: String, andNewer newer: String) -> String {
        """
        SELECT bucket.ts, \(rfc3339("bucket.ts")) AS time, quantity.device, quantity.metric, quantity.unit,
            bucket.n, bucket.min, bucket.sum / bucket.n AS mean, bucket.max, quantity.stream
        FROM (SELECT ts, quantity, n, sum, min, max FROM \(table) UNION ALL \(newer)) AS bucket
        CROSS JOIN quantity ON quantity.id = bucket.quantity
        """
    }

    private static let newerMinutes = grouped(newerSamples(flooredTo: Resolution.minutes.length))

    private static let newerHours = grouped(
        """
        SELECT \(floored("ts", to: Resolution.hours.length)) AS ts, quantity, n, sum, min, max FROM minute
        WHERE ts >= (SELECT value FROM state WHERE key = 'hours')
        UNION ALL \(newerSamples(flooredTo: Resolution.hours.length))
        """
    )

    private static func newerSamples(flooredTo step: Int64) -> String {
        """
        SELECT \(floored("sample.ts", to: step)) AS ts, series.quantity AS quantity, 1 AS n,
            CAST(sample.value AS REAL) AS sum, sample.value AS min, sample.value AS max
        FROM sample CROSS JOIN metric_series AS series ON series.id = sample.series
        WHERE sample.ts >= (SELECT value FROM state WHERE key = 'minutes')
            AND typeof(sample.value) IN ('integer', 'real')
        """
    }

    private static func grouped(_ rows: String) -> String {
        """
        SELECT ts, quantity, sum(n) AS n, sum(sum) AS sum, min(min) AS min, max(max) AS max
        FROM (\(rows)) GROUP BY ts, quantity
        """
    }
}
