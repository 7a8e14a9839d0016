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
        """#
}
