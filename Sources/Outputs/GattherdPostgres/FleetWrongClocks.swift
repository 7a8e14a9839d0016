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
        CREATE INDEX ON gattherd.sample_other (journal, seq);
        ALTER TABLE gattherd.event ADD came timestamptz NOT NULL DEFAULT '-infinity';
        ALTER TABLE gattherd.event ALTER came SET DEFAULT now();
        ALTER TABLE gattherd.reject ADD came timestamptz NOT NULL DEFAULT '-infinity';
        ALTER TABLE gattherd.reject ALTER came SET DEFAULT now();

        -- The retention is applied in steps, by the role that has claimed it.
        ALTER TABLE gattherd.upkeep ADD claimed_by name;
        DROP FUNCTION IF EXISTS gattherd.maintain();
        """#
}
