extension Schema {
    /// The step to version 2: summaries of minutes and hours, which ``Rollup`` fills.
    ///
    /// A `quantity` is a metric of a device in a unit, whichever way it came. `state` has `minutes` and `hours`,
    /// the first instants that the tables do not cover: a file of version 1 is summed up bit by bit, and
    /// meanwhile the views are as right, and as slow, as before.
    static let rollups = """
        CREATE TABLE quantity (
            id INTEGER PRIMARY KEY, device TEXT NOT NULL, metric TEXT NOT NULL, unit TEXT
        ) STRICT;
        CREATE INDEX quantity_of_device ON quantity (device, metric);
        INSERT INTO quantity (device, metric, unit)
        SELECT DISTINCT stream.device, series.metric, series.unit
        FROM series JOIN stream ON stream.id = series.stream ORDER BY series.id;
        ALTER TABLE series ADD COLUMN quantity INTEGER REFERENCES quantity;
        UPDATE series SET quantity = (
            SELECT quantity.id FROM quantity JOIN stream ON stream.device = quantity.device
            WHERE stream.id = series.stream AND quantity.metric = series.metric AND quantity.unit IS series.unit
        );

        \(summaries("minute"))
        \(summaries("hour"))
        INSERT INTO state (key, value) VALUES ('minutes', \(Int64.min)), ('hours', \(Int64.min));
        """

    /// Ordered by time first, as samples are: what is over at the same time lies together.
    private static func summaries(_ table: String) -> String {
        """
        CREATE TABLE \(table) (
            ts INTEGER NOT NULL, quantity INTEGER NOT NULL, n INTEGER NOT NULL, sum REAL, min ANY, max ANY,
            PRIMARY KEY (ts, quantity)
        ) STRICT, WITHOUT ROWID;
        """
    }

    /// The views of the summaries, with the rows that are not summed up yet.
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
