/// Corrections of times, applied in steps.
enum FleetCorrections {
    static let sql = #"""
        CREATE OR REPLACE FUNCTION gattherd.shifted(ts bigint, shift bigint) RETURNS bigint
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT CASE WHEN ts BETWEEN -4600000000000000000 AND 4600000000000000000
                AND shift BETWEEN -4600000000000000000 AND 4600000000000000000 THEN ts + shift
            ELSE least(greatest(ts::numeric + shift, -9200000000000000000), 9200000000000000000)::bigint END
        $$;

        -- Summarises minutes again from their samples, and hours from their minutes.
        CREATE OR REPLACE FUNCTION gattherd.recount(quantities int[], minutes bigint[]) RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE
            near record;
            -- Limits for the planner, which would read all rows of the series otherwise.
            low bigint := (SELECT min(m) FROM unnest(minutes) AS m);
            high bigint := (SELECT max(m) + 60000000 FROM unnest(minutes) AS m);
        BEGIN
            SELECT * INTO near FROM gattherd.near();
            DELETE FROM gattherd.minute m USING unnest(quantities, minutes) AS w(quantity, ts)
            WHERE m.quantity = w.quantity AND m.ts = w.ts;
            INSERT INTO gattherd.minute (quantity, ts, n, sum, min, max, far)
            SELECT w.quantity, w.ts, count(*), sum(gattherd.bounded(s.value)), min(s.value), max(s.value),
                w.ts NOT BETWEEN near.low AND near.high
            FROM unnest(quantities, minutes) AS w(quantity, ts)
            JOIN gattherd.metric_series q ON q.quantity = w.quantity
            JOIN gattherd.sample s ON s.series = q.id AND s.ts >= w.ts AND s.ts < w.ts + 60000000
            WHERE s.value IS NOT NULL AND s.ts >= low AND s.ts < high GROUP BY 1, 2;
            PERFORM gattherd.recount_hours(quantities, minutes);
        END $$;

        -- Summarises the hours of these minutes again.
        CREATE OR REPLACE FUNCTION gattherd.recount_hours(quantities int[], minutes bigint[]) RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE
            low bigint := (SELECT gattherd.floored(min(m), 3600000000) FROM unnest(minutes) AS m);
            high bigint := (SELECT gattherd.floored(max(m), 3600000000) + 3600000000 FROM unnest(minutes) AS m);
        BEGIN
            WITH wanted AS MATERIALIZED (
                SELECT DISTINCT w.quantity, gattherd.floored(w.ts, 3600000000) AS ts
                    FROM unnest(quantities, minutes) AS w(quantity, ts)
            ), counted AS MATERIALIZED (
                SELECT w.quantity, w.ts, sum(m.n) AS n, sum(gattherd.bounded(m.sum)) AS sum, min(m.min) AS min,
                    max(m.max) AS max
                FROM wanted w LEFT JOIN gattherd.minute m
                    ON m.quantity = w.quantity AND m.ts >= w.ts AND m.ts < w.ts + 3600000000
                    AND m.ts >= low AND m.ts < high
                GROUP BY 1, 2
            ), emptied AS (
                DELETE FROM gattherd.hour h USING counted c WHERE h.quantity = c.quantity AND h.ts = c.ts
                    AND c.n IS NULL
            )
            INSERT INTO gattherd.hour AS old (quantity, ts, n, sum, min, max)
            SELECT c.quantity, c.ts, c.n, c.sum, c.min, c.max FROM counted c WHERE c.n IS NOT NULL
            ON CONFLICT ON CONSTRAINT hour_pkey DO UPDATE
            SET n = excluded.n, sum = excluded.sum, min = excluded.min, max = excluded.max;
        END $$;

        -- Subtracts the rows that leave minutes of which the retention has deleted samples: these cannot be counted
        -- again. Their minimum and maximum stay. Returns the minutes.
        CREATE OR REPLACE FUNCTION gattherd.subtract_minutes(
            moved int, after bigint, through bigint, INOUT quantities int[], INOUT minutes bigint[]
        ) LANGUAGE plpgsql AS $$
        DECLARE
            oldest bigint := gattherd.micros(gattherd.keep_from('samples'));
            low bigint := (SELECT min(m) FROM unnest(minutes) AS m);
            high bigint := least(oldest, (SELECT max(m) + 60000000 FROM unnest(minutes) AS m));
        BEGIN
            IF low < oldest THEN
                WITH leaving AS MATERIALIZED (
                    SELECT p.quantity, p.ts, count(*) AS present, count(*) FILTER (WHERE p.leaves) AS n,
                        sum(gattherd.bounded(p.value)) FILTER (WHERE p.leaves) AS sum
                    FROM (
                        SELECT w.quantity, w.ts, s.value, s.journal = moved AND s.seq > subtract_minutes.after
                            AND s.seq <= subtract_minutes.through AS leaves
                        FROM unnest(quantities, minutes) AS w(quantity, ts)
                        JOIN gattherd.metric_series q ON q.quantity = w.quantity
                        JOIN gattherd.sample s ON s.series = q.id AND s.ts >= w.ts AND s.ts < w.ts + 60000000
                        WHERE w.ts + 60000000 <= oldest AND s.value IS NOT NULL AND s.ts >= low AND s.ts < high
                    ) AS p GROUP BY 1, 2
                ), subtracted AS (
                    UPDATE gattherd.minute m SET n = m.n - l.n, sum = gattherd.total(m.sum, -coalesce(l.sum, 0))
                    FROM leaving l WHERE m.quantity = l.quantity AND m.ts = l.ts AND m.n > l.present
                    RETURNING m.quantity, m.ts
                )
                SELECT array_agg(s.quantity), array_agg(s.ts) INTO quantities, minutes FROM subtracted s;
                PERFORM gattherd.recount_hours(quantities, minutes);
            ELSE
                quantities := NULL;
                minutes := NULL;
            END IF;
        END $$;

        -- Adds shift to the times of the rows of one extent, and corrects the summaries.
        CREATE OR REPLACE FUNCTION gattherd.move_extent(
            owner int, moved int, after bigint, through bigint, shift bigint, from_ts bigint, to_ts bigint
        ) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            quantities int[];
            minutes bigint[];
            all_series int[];
            low bigint := gattherd.shifted(from_ts, shift);
            high bigint := gattherd.shifted(to_ts, shift);
            near record;
            worn record;
        BEGIN
            SELECT * INTO near FROM gattherd.near();
            SELECT array_agg(q.id) INTO all_series FROM gattherd.metric_series q WHERE q.gateway = owner;
            SELECT array_agg(d.quantity), array_agg(d.ts) INTO quantities, minutes FROM (
                SELECT DISTINCT q.quantity, gattherd.floored(s.ts, 60000000) AS ts
                FROM gattherd.sample s JOIN gattherd.metric_series q ON q.id = s.series
                WHERE s.series = ANY (all_series) AND s.ts BETWEEN from_ts AND to_ts AND s.journal = moved
                    AND s.seq > move_extent.after AND s.seq <= move_extent.through
            ) AS d;
            PERFORM gattherd.make_blocks(ARRAY(
                SELECT DISTINCT gattherd.floored(gattherd.shifted(m, shift) + x, 86400000000)
                FROM unnest(minutes) AS m, unnest(ARRAY[0, 60000000]) AS x));
            -- Locks in the order of append.
            LOCK TABLE gattherd.sample_other, gattherd.minute_other IN ROW EXCLUSIVE MODE;
            PERFORM gattherd.move_receptions(moved, after, through, shift, from_ts, to_ts);
            SELECT * INTO worn FROM gattherd.subtract_minutes(moved, after, through, quantities, minutes);
            IF worn.minutes IS NOT NULL THEN
                SELECT array_agg(w.quantity), array_agg(w.ts) INTO quantities, minutes
                FROM unnest(quantities, minutes) AS w(quantity, ts)
                WHERE NOT EXISTS (SELECT FROM unnest(worn.quantities, worn.minutes) AS k(quantity, ts)
                    WHERE k.quantity = w.quantity AND k.ts = w.ts);
            END IF;
            UPDATE gattherd.sample s SET ts = gattherd.shifted(s.ts, move_extent.shift),
                far = gattherd.shifted(s.ts, move_extent.shift) NOT BETWEEN near.low AND near.high
            WHERE s.series = ANY (all_series) AND s.ts BETWEEN from_ts AND to_ts AND s.journal = moved
                AND s.seq > move_extent.after AND s.seq <= move_extent.through;
            UPDATE gattherd.head h SET ts = gattherd.shifted(h.ts, move_extent.shift)
            WHERE h.series = ANY (all_series) AND h.journal = moved
                AND h.seq > move_extent.after AND h.seq <= move_extent.through;
            PERFORM gattherd.advance_heads(all_series, moved, after, through, low, high, greatest(high, to_ts));
            PERFORM gattherd.merge_receptions(owner, moved, after, through, low, high, from_ts, to_ts);
            PERFORM gattherd.recount(quantities, minutes);
            -- Minutes that the rows have come to, apart from those counted just now.
            WITH old AS MATERIALIZED (
                SELECT w.quantity, w.ts FROM unnest(quantities, minutes) AS w(quantity, ts)
            ), come AS MATERIALIZED (
                SELECT q.quantity, gattherd.floored(s.ts, 60000000) AS ts, count(*) AS n,
                    sum(gattherd.bounded(s.value)) AS sum,
                    min(s.value) AS min, max(s.value) AS max
                FROM gattherd.sample s JOIN gattherd.metric_series q ON q.id = s.series
                WHERE s.series = ANY (all_series) AND s.ts BETWEEN low AND high AND s.journal = moved
                    AND s.seq > move_extent.after AND s.seq <= move_extent.through AND s.value IS NOT NULL
                GROUP BY 1, 2
            ), added AS MATERIALIZED (
                SELECT c.* FROM come c WHERE NOT EXISTS (SELECT FROM old o WHERE o.quantity = c.quantity
                    AND o.ts = c.ts)
            ), minutes_added AS (
                INSERT INTO gattherd.minute AS old (quantity, ts, n, sum, min, max, far)
                SELECT a.quantity, a.ts, a.n, a.sum, a.min, a.max, a.ts NOT BETWEEN near.low AND near.high
                FROM added a
                ON CONFLICT ON CONSTRAINT minute_pkey DO UPDATE SET n = old.n + excluded.n,
                    sum = gattherd.total(old.sum, excluded.sum),
                    min = least(old.min, excluded.min), max = greatest(old.max, excluded.max)
            )
            INSERT INTO gattherd.hour AS old (quantity, ts, n, sum, min, max)
            SELECT a.quantity, gattherd.floored(a.ts, 3600000000), sum(a.n), sum(gattherd.bounded(a.sum)), min(a.min),
                max(a.max)
            FROM added a GROUP BY 1, 2
            ON CONFLICT ON CONSTRAINT hour_pkey DO UPDATE SET n = old.n + excluded.n,
                sum = gattherd.total(old.sum, excluded.sum),
                min = least(old.min, excluded.min), max = greatest(old.max, excluded.max);
        END $$;

        -- Divides the extent that has numbers up to this one and beyond.
        CREATE OR REPLACE FUNCTION gattherd.split_extent(divided int, place bigint) RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE
            span record;
        BEGIN
            SELECT * INTO span FROM gattherd.extent e WHERE e.journal = divided AND e.first <= place
            ORDER BY e.first DESC LIMIT 1;
            IF span.last > place THEN
                UPDATE gattherd.extent e SET last = place WHERE e.journal = divided AND e.first = span.first;
                INSERT INTO gattherd.extent (journal, first, last, first_ts, last_ts, came)
                VALUES (divided, place + 1, span.last, span.first_ts, span.last_ts, span.came);
            END IF;
        END $$;

        -- Does the next step of the oldest correction of a journal: the rows of one extent, with the events and rejects
        -- up to its end. If these are many, they are steps of their own. Returns true if more is to do.
        CREATE OR REPLACE FUNCTION gattherd.correct_journal(owner int, corrected int) RETURNS boolean
        LANGUAGE plpgsql AS $$
        DECLARE
            job record;
            span record;
            -- The end of a step without an extent; NULL if few events and rejects come before it.
            stop_seq bigint;
            last_seq bigint;
        BEGIN
            SELECT * INTO job FROM gattherd.correction c WHERE c.journal = corrected ORDER BY c.seq LIMIT 1;
            IF NOT FOUND THEN RETURN false; END IF;
            -- An extent with old and new times would have the rows of all times between them read.
            PERFORM gattherd.split_extent(corrected, job.place);
            PERFORM gattherd.split_extent(corrected, job.through);
            IF job.place = job.after THEN
                UPDATE gattherd.metric_series q SET first_ts = gattherd.shifted(q.first_ts, job.shift)
                WHERE q.gateway = owner AND EXISTS (
                    SELECT FROM gattherd.extent e WHERE e.journal = corrected AND e.first > job.after
                        AND e.first <= job.through AND q.first_ts BETWEEN e.first_ts AND e.last_ts
                );
            END IF;
            SELECT * INTO span FROM gattherd.extent e
            WHERE e.journal = corrected AND e.first > job.place AND e.first <= job.through ORDER BY e.first LIMIT 1;
            SELECT n.seq INTO stop_seq FROM (
                SELECT e.journal, e.seq FROM gattherd.event e UNION ALL SELECT x.journal, x.seq FROM gattherd.reject x
            ) AS n
            WHERE n.journal = corrected AND n.seq > job.place AND n.seq < coalesce(span.first, job.through)
            ORDER BY n.seq OFFSET 9999 LIMIT 1;
            last_seq := coalesce(stop_seq, span.last, job.through);
            UPDATE gattherd.event e SET ts = gattherd.shifted(e.ts, job.shift)
            WHERE e.journal = corrected AND e.seq > job.place AND e.seq <= last_seq;
            UPDATE gattherd.reject x SET ts = gattherd.shifted(x.ts, job.shift)
            WHERE x.journal = corrected AND x.seq > job.place AND x.seq <= last_seq;
            IF stop_seq IS NULL AND span.first IS NULL THEN
                DELETE FROM gattherd.correction c WHERE c.journal = corrected AND c.seq = job.seq;
                RETURN EXISTS (SELECT FROM gattherd.correction c WHERE c.journal = corrected);
            END IF;
            IF stop_seq IS NULL THEN
                PERFORM gattherd.move_extent(owner, corrected, span.first - 1, span.last, job.shift, span.first_ts,
                    span.last_ts);
                UPDATE gattherd.extent e SET first_ts = gattherd.shifted(e.first_ts, job.shift),
                    last_ts = gattherd.shifted(e.last_ts, job.shift)
                WHERE e.journal = corrected AND e.first = span.first;
            END IF;
            UPDATE gattherd.correction c SET place = last_seq WHERE c.journal = corrected AND c.seq = job.seq;
            RETURN true;
        END $$;

        -- Does the next step of the caller's corrections, also of a history that was replaced before they were
        -- complete. Returns true if more is to do.
        CREATE OR REPLACE FUNCTION gattherd.correct(epoch text) RETURNS boolean
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
        DECLARE
            mine record;
            due int;
        BEGIN
            SELECT * INTO mine FROM gattherd.lock_journal(epoch);
            SELECT c.journal INTO due FROM gattherd.correction c JOIN gattherd.journal j ON j.id = c.journal
            WHERE j.gateway = mine.gateway ORDER BY c.journal <> mine.journal, c.journal LIMIT 1;
            IF NOT FOUND THEN RETURN false; END IF;
            PERFORM FROM gattherd.journal j WHERE j.id = due FOR UPDATE;
            PERFORM gattherd.correct_journal(mine.gateway, due);
            RETURN EXISTS (SELECT FROM gattherd.correction c JOIN gattherd.journal j ON j.id = c.journal
                WHERE j.gateway = mine.gateway);
        END $$;
        """#
}
