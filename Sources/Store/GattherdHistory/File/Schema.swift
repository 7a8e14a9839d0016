import GattherdModel

/// The tables of the file.
///
/// The views are the contract with readers; the tables may change. `PRAGMA user_version` counts the steps that a file
/// has had. After the first release a step is never edited, only followed by another one.
enum Schema {
    /// "GATH": distinguishes our files from other programs'.
    static let applicationID: Int64 = 0x4741_5448

    /// Step n takes a file from version n to version n + 1; the first one creates all tables.
    static let steps = [tables + journal + epochs + records + clock + lists + rollups]
    /// A column that files of version 1 from before the first release lack.
    static let newest = (table: "quantity", column: "stream")

    /// Runs the steps that the file has not had, each in its own transaction.
    static func migrate(_ connection: SQLiteConnection, steps: [String]) throws(StoreFault) {
        var version = Int(try connection.integer("PRAGMA user_version"))
        while version >= 0 && version < steps.count {
            let sql = steps[version]
            version += 1
            try connection.transaction { () throws(StoreFault) in
                try connection.execute(sql)
                try connection.execute("PRAGMA application_id = \(applicationID); PRAGMA user_version = \(version)")
            }
        }
    }

    /// Samples are stored in the order of their arrival.
    ///
    /// A commit therefore writes few pages, all at the end, for any number of devices. A key that begins with the
    /// series costs a page per series and commit, which wears out flash thirty times as fast.
    ///
    /// `metric_series` has the properties that are equal in all rows of a series. `first` is the time of its first
    /// sample. Booleans are stored as 1 and 0; `boolean` marks the series that have them. `head` is the position of
    /// the newest row of each series. Each commit writes it, so it is a small table of its own.
    ///
    /// A `quantity` is a metric of a device's stream in a unit, from any profile and source. `proven` devices have
    /// become ready once.
    private static let tables = """
        CREATE TABLE stream (
            id INTEGER PRIMARY KEY, device TEXT NOT NULL, profile TEXT NOT NULL, stream TEXT NOT NULL,
            UNIQUE (device, profile, stream)
        ) STRICT;
        CREATE TABLE quantity (
            id INTEGER PRIMARY KEY, device TEXT NOT NULL, stream TEXT NOT NULL, metric TEXT NOT NULL,
            unit TEXT
        ) STRICT;
        CREATE INDEX quantity_of_device ON quantity (device, stream, metric);
        CREATE TABLE metric_series (
            id INTEGER PRIMARY KEY, stream INTEGER NOT NULL REFERENCES stream, metric TEXT NOT NULL, unit TEXT,
            kind TEXT NOT NULL, repeated INTEGER NOT NULL, source TEXT NOT NULL, quantity INTEGER REFERENCES quantity,
            boolean INTEGER NOT NULL DEFAULT 0, first INTEGER
        ) STRICT;
        CREATE INDEX series_of_stream ON metric_series (stream, metric);
        CREATE TABLE head (
            series INTEGER PRIMARY KEY REFERENCES metric_series, ts INTEGER NOT NULL, seq INTEGER NOT NULL,
            ix INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE sample (
            ts INTEGER NOT NULL, seq INTEGER NOT NULL, ix INTEGER NOT NULL, series INTEGER NOT NULL, value ANY,
            PRIMARY KEY (ts, seq, ix)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE device (
            device TEXT PRIMARY KEY, address TEXT NOT NULL, name TEXT, profiles TEXT NOT NULL,
            first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE held (device TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
        CREATE TABLE enrolled (
            device TEXT PRIMARY KEY, address TEXT NOT NULL, rule TEXT NOT NULL, silence INTEGER NOT NULL,
            proven INTEGER NOT NULL DEFAULT 1
        ) STRICT, WITHOUT ROWID;

        """

    /// The cursors of the journal's consumers, and the unacknowledged readings.
    ///
    /// A row of `outbox` represents the undelivered readings numbered `first` to `last`. Their samples are from `ts` to
    /// `ts_last`; the last one arrived at `arrived`; the size of their payloads is `octets`. During a correction of
    /// timestamps, `ts` is the uncorrected time. `correction` has the completed corrections of clock spans: `shift` was
    /// added to the times of the entries above `after`, up to and including `through`. `state` has the values of
    /// ``StateTable``.
    private static let journal = """
        CREATE TABLE state (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE consumer (name TEXT PRIMARY KEY, cursor INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE outbox (
            first INTEGER PRIMARY KEY, last INTEGER NOT NULL, octets INTEGER NOT NULL,
            ts INTEGER NOT NULL, ts_last INTEGER NOT NULL, arrived INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE correction (
            id INTEGER PRIMARY KEY, after INTEGER NOT NULL, through INTEGER NOT NULL, shift INTEGER NOT NULL
        ) STRICT;

        """

    /// An epoch is a period in which the file only grew; its entries have higher numbers than `after`.
    ///
    /// The row of `rewind` is the scan for acknowledged readings that a consumer wants again; see ``RewindScan``.
    private static let epochs = """
        CREATE TABLE epoch (id INTEGER PRIMARY KEY, text TEXT NOT NULL, after INTEGER NOT NULL) STRICT;
        INSERT INTO epoch (text, after) VALUES (lower(hex(randomblob(16))), 0);
        CREATE TABLE rewind (
            id INTEGER PRIMARY KEY, after INTEGER NOT NULL, through INTEGER NOT NULL, ts INTEGER NOT NULL,
            seq INTEGER NOT NULL, correction INTEGER NOT NULL
        ) STRICT;

        """

    /// The position in the stored records of each stream; see ``RecordCursor``.
    ///
    /// The file of the readings has them, so that a restored or a new file downloads what it lacks. `span` is the clock
    /// span in which the row was written, and `shift` the correction of that span.
    private static let records = """
        CREATE TABLE record_cursor (
            device TEXT NOT NULL, profile TEXT NOT NULL, stream TEXT NOT NULL, address TEXT NOT NULL,
            number INTEGER, ts INTEGER, state TEXT NOT NULL, span INTEGER, shift INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (device, profile, stream)
        ) STRICT, WITHOUT ROWID;

        """

    /// Clock spans, in which the wall clock was not set, and the state of ``ClockTrust``.
    ///
    /// `offset` is the wall clock time at the machine's start; the entries of the span have numbers from `seq` to
    /// `seq_end`. `shift` is the correction once it is known; `phase` and `place` are its progress. `base` is the
    /// proven time of the machine's start.
    private static let clock = """
        CREATE TABLE clock (
            id INTEGER PRIMARY KEY, boot TEXT NOT NULL, offset INTEGER NOT NULL, time_end INTEGER,
            seq INTEGER NOT NULL, seq_end INTEGER, shift INTEGER,
            phase INTEGER NOT NULL DEFAULT 0, place INTEGER NOT NULL DEFAULT 0,
            place_seq INTEGER NOT NULL DEFAULT 0, place_ix INTEGER NOT NULL DEFAULT 0, uptime INTEGER, base INTEGER,
            earliest INTEGER
        ) STRICT;
        CREATE TABLE clock_mark (
            id INTEGER PRIMARY KEY, boot TEXT NOT NULL, uptime INTEGER NOT NULL, wall INTEGER NOT NULL, base INTEGER,
            base_uptime INTEGER NOT NULL, lag INTEGER NOT NULL, phase INTEGER NOT NULL, waited INTEGER NOT NULL,
            synchronised INTEGER NOT NULL, fresh INTEGER NOT NULL
        ) STRICT;

        """

    /// Events and rejects, with triggers that count the rows and bytes of each source, for ``BoundedRows``.
    private static let lists = """
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
        CREATE INDEX reject_of_device ON reject (device, ts);
        CREATE TABLE source (
            list TEXT NOT NULL, device TEXT NOT NULL, kind TEXT NOT NULL, n INTEGER NOT NULL, bytes INTEGER NOT NULL,
            PRIMARY KEY (list, device, kind)
        ) STRICT, WITHOUT ROWID;
        \(counted("event", device: "coalesce(row.device, '')", kind: "row.kind", bytes: "length(CAST(row.detail AS BLOB))"))
        \(counted("reject", device: "row.device", kind: "''", bytes: "length(row.octets) + length(row.reason)"))

        """

    /// The constants are the sizes of a row and its index entries without its texts.
    private static func counted(_ table: String, device: String, kind: String, bytes: String) -> String {
        let bytes = "(\(bytes) + 3 * length(\(device)) + length(\(kind)) + 96)"
        func of(_ row: String, _ expression: String) -> String { expression.replacing("row.", with: row + ".") }
        return """
            CREATE TRIGGER \(table)_added AFTER INSERT ON \(table) BEGIN
                INSERT INTO source (list, device, kind, n, bytes)
                VALUES ('\(table)', \(of("new", device)), \(of("new", kind)), 1, \(of("new", bytes)))
                ON CONFLICT (list, device, kind) DO UPDATE SET n = n + 1, bytes = bytes + excluded.bytes;
            END;
            CREATE TRIGGER \(table)_deleted AFTER DELETE ON \(table) BEGIN
                UPDATE source SET n = n - 1, bytes = bytes - \(of("old", bytes))
                WHERE list = '\(table)' AND device = \(of("old", device)) AND kind = \(of("old", kind));
                DELETE FROM source
                WHERE list = '\(table)' AND device = \(of("old", device)) AND kind = \(of("old", kind)) AND n < 1;
            END;

            """
    }

    /// Summaries of minutes and hours, which ``Rollup`` fills.
    ///
    /// The rows `minutes` and `hours` of `state` are the first instants that the tables do not cover.
    private static let rollups = """
        \(summaries("minute"))
        \(summaries("hour"))
        INSERT INTO state (key, value) VALUES ('minutes', \(Int64.min)), ('hours', \(Int64.min));
        """

    /// Returns the SQL of a table of summaries.
    ///
    /// The key begins with the time, like that of samples, so that spans of one time are stored together.
    private static func summaries(_ table: String) -> String {
        """
        CREATE TABLE \(table) (
            ts INTEGER NOT NULL, quantity INTEGER NOT NULL, n INTEGER NOT NULL, sum REAL, min ANY, max ANY,
            PRIMARY KEY (ts, quantity)
        ) STRICT, WITHOUT ROWID;
        """
    }
}
