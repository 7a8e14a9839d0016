extension Schema {
    /// Summaries of minutes and hours, which ``Rollup`` fills.
    ///
    /// The rows `minutes` and `hours` of `state` are the first instants that the tables do not cover.
    static let rollups = """
        \(summaries("minute"))
        \(summaries("hour"))
        INSERT INTO state (key, value) VALUES ('minutes', \(Int64.min)), ('hours', \(Int64.min));
        """

    /// The key begins with the time, like that of samples, so that spans of one time are stored together.
    private static func summaries(_ table: String) -> String {
        """
        CREATE TABLE \(table) (
            ts INTEGER NOT NULL, quantity INTEGER NOT NULL, n INTEGER NOT NULL, sum REAL, min ANY, max ANY,
            PRIMARY KEY (ts, quantity)
        ) STRICT, WITHOUT ROWID;
        """
    }

    /// The views of the summaries, with the rows that are not summarised yet.
    static var bucketViews: [(name: String, sql: String)] {
        [
            view("history_minutes", buckets(of: "minute", andNewer: newerMinutes)),
            view("history_hours", buckets(of: "hour", andNewer: newerHours)),
        ]
    }

    /// Booleans are numbers here, 1 and 0; labels and unknown values are not counted.
    private static func buckets(of table: String, andNewer newer: String) -> String {
        """
        SELECT bucket.ts, \(rfc3339("bucket.ts")) AS time, quantity.device, quantity.metric, quantity.unit,
            bucket.n, bucket.min, bucket.sum / bucket.n AS mean, bucket.max
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
