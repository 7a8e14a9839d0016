import GattherdModel

/// The tables and views of the file, and the way from every earlier version to this one.
///
/// The views are the contract with readers, the tables are ours to change. `PRAGMA user_version` counts
/// the steps that a file has taken; a step that has been released is never edited, only followed.
enum Schema {
    /// "GATH": tells our files from other programs'.
    static let applicationID: Int64 = 0x4741_5448

    /// Step n takes a file from version n to version n + 1.
    static let steps = [tables, rollups, backlogTimes, clock, outbox, enrolled, nothing, clockMark, sources + series]

    /// The step to version 7, which changed a view: views are no part of the steps any more, see ``views``.
    private static let nothing = ""

    /// The rest of the step to version 9: `series` is the name of a view from now on, and knows when each series began,
    /// or the hour or the minute of it where its first sample is older than this version.
    ///
    /// Somebody may have made views of their own, which must not keep the table from its new name.
    private static let series = """
        DROP VIEW IF EXISTS history;
        DROP VIEW IF EXISTS latest;
        DROP VIEW IF EXISTS history_minutes;
        DROP VIEW IF EXISTS history_hours;
        DROP VIEW IF EXISTS devices;
        ALTER TABLE enrolled ADD COLUMN proven INTEGER NOT NULL DEFAULT 1;
        PRAGMA legacy_alter_table = ON;
        ALTER TABLE series RENAME TO metric_series;
        PRAGMA legacy_alter_table = OFF;
        ALTER TABLE metric_series ADD COLUMN first INTEGER;
        UPDATE metric_series SET first = earliest.ts
            FROM (SELECT quantity, min(ts) AS ts FROM hour GROUP BY quantity) AS earliest
            WHERE earliest.quantity = metric_series.quantity;
        UPDATE metric_series SET first = earliest.ts
            FROM (SELECT quantity, min(ts) AS ts FROM minute GROUP BY quantity) AS earliest
            WHERE earliest.quantity = metric_series.quantity AND first IS NULL;
        """

    /// The step to version 3: when a reading that waits for delivery is from; not known of older ones.
    private static let backlogTimes = "ALTER TABLE log ADD COLUMN ts INTEGER"

    /// The step to version 4: stretches of time in which the wall clock was not set.
    ///
    /// `offset` is what it said when the machine was started, `seq` to `reject_end` what was stored in the stretch,
    /// `shift` what is to be added to the times, once that is known; then `phase` and `place` tell how far it is.
    private static let clock = """
        CREATE TABLE clock (
            id INTEGER PRIMARY KEY, boot TEXT NOT NULL, offset INTEGER NOT NULL, time_end INTEGER,
            seq INTEGER NOT NULL, event INTEGER NOT NULL, reject INTEGER NOT NULL,
            seq_end INTEGER, event_end INTEGER, reject_end INTEGER, shift INTEGER,
            phase INTEGER NOT NULL DEFAULT 0, place INTEGER NOT NULL DEFAULT 0,
            place_seq INTEGER NOT NULL DEFAULT 0, place_ix INTEGER NOT NULL DEFAULT 0
        ) STRICT
        """

    /// The step to version 5: of what has not been delivered only the place is kept, for its samples are there already.
    ///
    /// A row is for the readings numbered `first` to `last`; their samples are from `ts` to `ts_last`, their payloads
    /// have `octets`. Booleans are stored as 1 and 0, so that `boolean` has to say where they are. Readings that are
    /// just being given other times may have been moved already: until that is done `ts` is from before. Where a
    /// payload is damaged it is not asked; only what has its time nowhere else is not delivered then.
    private static let outbox = """
        CREATE TABLE outbox (
            first INTEGER PRIMARY KEY, last INTEGER NOT NULL, octets INTEGER NOT NULL,
            ts INTEGER NOT NULL, ts_last INTEGER NOT NULL
        ) STRICT;
        UPDATE log SET payload = CAST('{}' AS BLOB) WHERE NOT json_valid(CAST(payload AS TEXT));
        UPDATE log SET ts = unixepoch(time) * 1000000 + CAST(substr(time, 21, 6) AS INTEGER)
            FROM (SELECT seq AS untimed, CAST(payload AS TEXT) ->> 'ts' AS time FROM log WHERE ts IS NULL)
            WHERE seq = untimed;
        UPDATE log SET ts = log.ts - shift FROM clock
            WHERE log.seq > clock.seq AND log.seq <= seq_end AND log.ts NOT BETWEEN offset AND time_end
                AND shift IS NOT NULL;
        INSERT INTO outbox SELECT seq, seq, length(payload), ts, ts FROM log WHERE ts IS NOT NULL;
        ALTER TABLE series ADD COLUMN boolean INTEGER NOT NULL DEFAULT 0;
        UPDATE series SET boolean = 1 WHERE (stream, metric) IN (
            SELECT log.stream, key FROM log, json_each(CAST(payload AS TEXT)) WHERE type IN ('true', 'false')
        );
        DROP TABLE log
        """

    /// The step to version 6: the devices that a rule has made, by which rule, and for how many seconds nobody has heard of
    /// them while somebody listened.
    private static let enrolled = """
        CREATE TABLE enrolled (
            device TEXT PRIMARY KEY, address TEXT NOT NULL, rule TEXT NOT NULL, silence INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID
        """

    /// The step to version 8: what is known of the clocks, and since when a stretch lasts.
    ///
    /// `base` is what the clock should have said when the machine was started, as far as that is proven.
    private static let clockMark = """
        CREATE TABLE clock_mark (
            id INTEGER PRIMARY KEY, boot TEXT NOT NULL, uptime INTEGER NOT NULL, wall INTEGER NOT NULL, base INTEGER,
            base_uptime INTEGER NOT NULL, lag INTEGER NOT NULL, phase INTEGER NOT NULL, waited INTEGER NOT NULL,
            synchronised INTEGER NOT NULL, fresh INTEGER NOT NULL
        ) STRICT;
        ALTER TABLE clock ADD COLUMN uptime INTEGER;
        ALTER TABLE clock ADD COLUMN base INTEGER
        """

    /// The samples lie in the order in which they arrive.
    ///
    /// So a commit writes few pages, at the end, however many devices there are: a key that begins with the
    /// series costs a page per series and commit, which wears flash out thirty times as fast.
    /// What does not change from row to row is in `series`, later `metric_series`. `head`, the place of each series'
    /// newest row, is apart from it for the same reason: it is written with each commit, and has to stay small.
    ///
    /// `log` was what had not been delivered, until version 5. `state` has `seq`, the highest number that may have
    /// been given to a reading, and `cursor`, the last one that the broker has acknowledged.
    private static let tables = """
        CREATE TABLE stream (
            id INTEGER PRIMARY KEY, device TEXT NOT NULL, profile TEXT NOT NULL, stream TEXT NOT NULL,
            UNIQUE (device, profile, stream)
        ) STRICT;
        CREATE TABLE series (
            id INTEGER PRIMARY KEY, stream INTEGER NOT NULL REFERENCES stream, metric TEXT NOT NULL, unit TEXT,
            kind TEXT NOT NULL, repeated INTEGER NOT NULL, source TEXT NOT NULL
        ) STRICT;
        CREATE INDEX series_of_stream ON series (stream, metric);
        CREATE TABLE head (
            series INTEGER PRIMARY KEY REFERENCES series, ts INTEGER NOT NULL, seq INTEGER NOT NULL, ix INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE sample (
            ts INTEGER NOT NULL, seq INTEGER NOT NULL, ix INTEGER NOT NULL, series INTEGER NOT NULL, value ANY,
            PRIMARY KEY (ts, seq, ix)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE log (seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;
        CREATE TABLE state (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE device (
            device TEXT PRIMARY KEY, address TEXT NOT NULL, name TEXT, profiles TEXT NOT NULL,
            first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE held (device TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
        CREATE TABLE event (
            id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, device TEXT, kind TEXT NOT NULL, detail TEXT NOT NULL
        ) STRICT;
        CREATE INDEX event_of_device ON event (device, ts);
        CREATE INDEX event_by_time ON event (ts);
        CREATE TABLE reject (
            id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, device TEXT NOT NULL, characteristic TEXT NOT NULL,
            octets BLOB NOT NULL, reason TEXT NOT NULL
        ) STRICT;
        CREATE INDEX reject_by_time ON reject (ts);

        """
}
