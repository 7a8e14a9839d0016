/// The step of the schema for clocks that are wrong.
enum FleetWrongClocks {
    static let tables = #"""
        -- Extents that were recorded across a change of a clock are divided there.
        CREATE TABLE gattherd.wide AS
        SELECT * FROM gattherd.extent WHERE last_ts::numeric - first_ts > 86400000000;
        DELETE FROM gattherd.extent e USING gattherd.wide w WHERE e.journal = w.journal AND e.first = w.first;
        INSERT INTO gattherd.extent (journal, first, last, first_ts, last_ts)
        WITH stepped AS (
            SELECT w.journal, w.first, s.seq, s.ts, abs(s.ts::float8 - lag(s.ts)
                OVER (PARTITION BY w.journal, w.first ORDER BY s.seq)) > 3.6e9 AS is_step
            FROM gattherd.wide w JOIN gattherd.sample s ON s.journal = w.journal AND s.seq BETWEEN w.first AND w.last
        ), numbered AS (
            SELECT s.*, count(*) FILTER (WHERE s.is_step)
                OVER (PARTITION BY s.journal, s.first ORDER BY s.seq) AS run
            FROM stepped s
        )
        SELECT n.journal, min(n.seq), max(n.seq), min(n.ts), max(n.ts) FROM numbered n
        GROUP BY n.journal, n.first, n.run;
        DROP TABLE gattherd.wide;

        -- The arrival of rows, because a wrong clock makes new ones look old.
        ALTER TABLE gattherd.extent ADD came timestamptz NOT NULL DEFAULT now();
        UPDATE gattherd.extent SET came = to_timestamp(last_ts / 1e6)
        WHERE last_ts BETWEEN extract(epoch FROM now() - interval '400 days') * 1000000
            AND extract(epoch FROM now()) * 1000000;
        CREATE INDEX ON gattherd.extent (came);
        CREATE INDEX ON gattherd.extent (first_ts);
        ALTER TABLE gattherd.event ADD came timestamptz NOT NULL DEFAULT '-infinity';
        ALTER TABLE gattherd.event ALTER came SET DEFAULT now();
        ALTER TABLE gattherd.reject ADD came timestamptz NOT NULL DEFAULT '-infinity';
        ALTER TABLE gattherd.reject ALTER came SET DEFAULT now();

        -- Rows that are far from the time of their arrival have partitions of their own: a new partition has all rows
        -- of the default partition read.
        ALTER TABLE gattherd.sample RENAME TO sample_near;
        ALTER TABLE gattherd.sample_near ADD far boolean NOT NULL DEFAULT false CHECK (NOT far);
        CREATE TABLE gattherd.sample (LIKE gattherd.sample_near INCLUDING DEFAULTS) PARTITION BY LIST (far);
        ALTER TABLE gattherd.sample ATTACH PARTITION gattherd.sample_near FOR VALUES IN (false);
        CREATE TABLE gattherd.sample_far PARTITION OF gattherd.sample FOR VALUES IN (true);
        CREATE INDEX ON gattherd.sample (series, ts);
        CREATE INDEX ON gattherd.sample USING brin (ts) WITH (autosummarize = on);
        CREATE INDEX ON gattherd.sample_far (journal, seq);
        CREATE INDEX ON gattherd.sample_other (journal, seq);
        ALTER TABLE gattherd.minute RENAME TO minute_near;
        ALTER TABLE gattherd.minute_near ADD far boolean NOT NULL DEFAULT false CHECK (NOT far),
            DROP CONSTRAINT minute_pkey;
        CREATE TABLE gattherd.minute (
            LIKE gattherd.minute_near INCLUDING DEFAULTS, CONSTRAINT minute_pkey PRIMARY KEY (quantity, ts, far)
        ) PARTITION BY LIST (far);
        ALTER TABLE gattherd.minute ATTACH PARTITION gattherd.minute_near FOR VALUES IN (false);
        CREATE TABLE gattherd.minute_far PARTITION OF gattherd.minute FOR VALUES IN (true) WITH (fillfactor = 70);
        WITH moved AS (
            DELETE FROM gattherd.sample_other WHERE to_timestamp(ts / 1e6)
                NOT BETWEEN now() - interval '400 days' AND now() + interval '3 days' RETURNING *
        )
        INSERT INTO gattherd.sample (ts, seq, value, journal, series, element, whole, label, far)
        SELECT m.ts, m.seq, m.value, m.journal, m.series, m.element, m.whole, m.label, true FROM moved m;
        WITH moved AS (
            DELETE FROM gattherd.minute_other WHERE to_timestamp(ts / 1e6)
                NOT BETWEEN now() - interval '400 days' AND now() + interval '3 days' RETURNING *
        )
        INSERT INTO gattherd.minute (quantity, ts, n, sum, min, max, far)
        SELECT m.quantity, m.ts, m.n, m.sum, m.min, m.max, true FROM moved m;

        -- The retention is applied in steps, by the role that has claimed it.
        ALTER TABLE gattherd.upkeep ADD claimed_by name;
        DROP FUNCTION IF EXISTS gattherd.maintain(), gattherd.make_block(text, bigint);
        """#
}
