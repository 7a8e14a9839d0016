extension Schema {
    /// What readers of any kind may rely on; ``rollups`` has made two of the views anew.
    ///
    /// `CROSS JOIN` keeps SQLite from reordering: samples are walked by time, their series are looked up.
    static let views = """
        CREATE VIEW history AS
        SELECT sample.seq, sample.ts, \(rfc3339("sample.ts")) AS time, stream.device, stream.profile, stream.stream,
            series.metric, sample.value, series.unit, series.source
        FROM sample CROSS JOIN series ON series.id = sample.series CROSS JOIN stream ON stream.id = series.stream;

        CREATE VIEW latest AS
        SELECT sample.seq, sample.ts, \(rfc3339("sample.ts")) AS time, newest.device, newest.profile, newest.stream,
            newest.metric, sample.value, newest.unit, newest.source
        FROM (
            SELECT stream.device, stream.profile, stream.stream, series.metric, series.unit, series.source,
                head.ts, head.seq, head.ix,
                row_number() OVER (PARTITION BY stream.device, series.metric ORDER BY head.seq DESC) AS rank
            FROM head JOIN series ON series.id = head.series JOIN stream ON stream.id = series.stream
        ) AS newest
        CROSS JOIN sample ON sample.ts = newest.ts AND sample.seq = newest.seq AND sample.ix = newest.ix
        WHERE newest.rank = 1;

        \(buckets("history_minutes", microseconds: 60_000_000))
        \(buckets("history_hours", microseconds: 3_600_000_000))
        CREATE VIEW devices AS
        SELECT device, address, name, profiles, \(rfc3339("first_seen")) AS first_seen,
            \(rfc3339("last_seen")) AS last_seen
        FROM (
            SELECT device, address, name, profiles, first_seen,
                max(last_seen, coalesce((
                    SELECT max(head.ts) FROM stream
                    JOIN series ON series.stream = stream.id JOIN head ON head.series = series.id
                    WHERE stream.device = device.device
                ), last_seen)) AS last_seen
            FROM device
        );

        CREATE VIEW events AS SELECT ts, \(rfc3339("ts")) AS time, device, kind, detail FROM event;

        CREATE VIEW rejects AS
        SELECT ts, \(rfc3339("ts")) AS time, device, characteristic, lower(hex(octets)) AS bytes, reason FROM reject;

        """

    /// The step to version 7: what was imported, which has numbers below zero, may be newer than what came live.
    ///
    /// Of what came live the last to arrive is the newest, whatever the clock did; its time counts for all of it.
    static let latestByTime = """
        DROP VIEW latest;
        CREATE VIEW latest AS
        SELECT sample.seq, sample.ts, \(rfc3339("sample.ts")) AS time, newest.device, newest.profile, newest.stream,
            newest.metric, sample.value, newest.unit, newest.source
        FROM (
            SELECT *, row_number() OVER (
                PARTITION BY device, metric ORDER BY iif(seq > 0, live, ts) DESC, seq DESC
            ) AS rank
            FROM (
                SELECT stream.device, stream.profile, stream.stream, series.metric, series.unit, series.source,
                    head.ts, head.seq, head.ix,
                    first_value(head.ts) OVER (
                        PARTITION BY stream.device, series.metric ORDER BY head.seq DESC
                    ) AS live
                FROM head JOIN series ON series.id = head.series JOIN stream ON stream.id = series.stream
            )
        ) AS newest
        CROSS JOIN sample ON sample.ts = newest.ts AND sample.seq = newest.seq AND sample.ix = newest.ix
        WHERE newest.rank = 1
        """

    /// Booleans are numbers here, 1 and 0; labels and unknown values are not counted.
    private static func buckets(_ name: String, microseconds: Int64) -> String {
        """
        CREATE VIEW \(name) AS
        SELECT ts, \(rfc3339("ts")) AS time, device, metric, unit, n, min, mean, max
        FROM (
            SELECT \(floored("sample.ts", to: microseconds)) AS ts, stream.device AS device, series.metric AS metric,
                series.unit AS unit, count(*) AS n, min(sample.value) AS min, avg(sample.value) AS mean,
                max(sample.value) AS max
            FROM sample CROSS JOIN series ON series.id = sample.series CROSS JOIN stream ON stream.id = series.stream
            WHERE typeof(sample.value) IN ('integer', 'real')
            GROUP BY 1, stream.device, series.metric, series.unit
        );

        """
    }

    /// `ts` as RFC 3339 in UTC with microseconds; NULL outside of the years 0 to 9999.
    static func rfc3339(_ ts: String) -> String {
        "strftime('%Y-%m-%dT%H:%M:%S', (\(floored(ts, to: 1_000_000))) / 1000000, 'unixepoch') "
            + "|| printf('.%06dZ', \(remainder(ts, of: 1_000_000)))"
    }

    static func floored(_ ts: String, to step: Int64) -> String {
        "\(ts) - \(remainder(ts, of: step))"
    }

    /// Never negative, unlike `%`, so that instants before 1970 are rounded down too.
    private static func remainder(_ ts: String, of step: Int64) -> String {
        "(\(ts) % \(step) + \(step)) % \(step)"
    }
}
