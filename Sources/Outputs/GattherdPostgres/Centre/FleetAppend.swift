/// The functions that gateways call: the cursor, and entries.
enum FleetAppend {
    static let sql = #"""
        -- The id of the gateway to which the connected role belongs.
        -- After waiting for a lock, a function must see what others have committed. With another isolation level, two
        -- gateways that hear one advertisement would add two readings.
        CREATE OR REPLACE FUNCTION gattherd.caller() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE id int;
        BEGIN
            IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
                RAISE EXCEPTION 'transactions are % here: run ALTER ROLE "%" SET default_transaction_isolation = '
                    '''read committed''', current_setting('transaction_isolation'), session_user
                USING ERRCODE = '25000';
            END IF;
            SELECT g.id INTO id FROM gattherd.gateway g WHERE g.role = session_user;
            IF id IS NULL THEN
                RAISE EXCEPTION 'the role "%" belongs to no gateway', session_user USING ERRCODE = '42501';
            END IF;
            RETURN id;
        END $$;

        -- The caller's journal with this epoch, locked until the end of the transaction.
        CREATE OR REPLACE FUNCTION gattherd.lock_journal(
            wanted_epoch text, OUT gateway int, OUT journal int, OUT cursor bigint
        ) LANGUAGE plpgsql AS $$
        BEGIN
            gateway := gattherd.caller();
            SELECT j.id, j.cursor INTO journal, cursor FROM gattherd.epoch e
                JOIN gattherd.journal j ON j.id = e.journal
            WHERE e.gateway = lock_journal.gateway AND e.epoch = wanted_epoch FOR UPDATE OF j;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the epoch % is not known', wanted_epoch USING ERRCODE = 'GH001';
            END IF;
        END $$;

        -- The cursor of a journal. An epoch that continues a known one belongs to the same journal, as its numbers
        -- go on. The earlier epochs are separated by commas, the newest first; the centre may know none, or only old
        -- ones, because it was away. The journal in use has the newest `since`, also after a return to an older file.
        CREATE OR REPLACE FUNCTION gattherd.position(epoch text, earlier text, gateway_name text) RETURNS bigint
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
        DECLARE
            caller int := gattherd.caller();
            expected text := (SELECT g.name FROM gattherd.gateway g WHERE g.id = caller);
            found_journal int;
            mine record;
        BEGIN
            IF expected <> gateway_name THEN
                RAISE EXCEPTION 'the role "%" is that of the gateway "%", not "%"', session_user, expected,
                    gateway_name
                USING ERRCODE = '42501';
            END IF;
            IF NOT EXISTS (
                SELECT FROM gattherd.epoch e WHERE e.gateway = caller AND e.epoch = position.epoch
            ) THEN
                -- New epochs are added one at a time. A known epoch must not lock the row: the lock would be held while
                -- a late batch has the journal, and that batch and the leases of this gateway need the row.
                PERFORM FROM gattherd.gateway g WHERE g.id = caller FOR NO KEY UPDATE;
                SELECT e.journal INTO found_journal
                FROM string_to_table(position.epoch || ',' || earlier, ',') WITH ORDINALITY AS p(epoch, place)
                JOIN gattherd.epoch e ON e.gateway = caller AND e.epoch = p.epoch ORDER BY p.place LIMIT 1;
                IF found_journal IS NULL THEN
                    INSERT INTO gattherd.journal (gateway, epoch) VALUES (caller, position.epoch)
                    RETURNING id INTO found_journal;
                END IF;
                INSERT INTO gattherd.epoch (gateway, epoch, journal) VALUES (caller, position.epoch, found_journal)
                ON CONFLICT DO NOTHING;
            END IF;
            SELECT * INTO mine FROM gattherd.lock_journal(position.epoch);
            UPDATE gattherd.journal j SET since = greatest(clock_timestamp(), l.since + interval '1 microsecond')
            FROM (SELECT n.id, n.since FROM gattherd.journal n WHERE n.gateway = caller
                ORDER BY n.since DESC, n.id DESC LIMIT 1) AS l
            WHERE j.id = mine.journal AND j.id <> l.id;
            RETURN mine.cursor;
        END $$;

        CREATE OR REPLACE FUNCTION gattherd.skip(epoch text, after bigint, through bigint, reason text) RETURNS bigint
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
        DECLARE
            mine record;
        BEGIN
            SELECT * INTO mine FROM gattherd.lock_journal(epoch);
            IF mine.cursor < after THEN
                RAISE EXCEPTION 'the cursor is at %, before %', mine.cursor, after USING ERRCODE = 'GH001';
            END IF;
            IF mine.cursor >= through THEN RETURN mine.cursor; END IF;
            INSERT INTO gattherd.gap (journal, after, through, reason)
            VALUES (mine.journal, greatest(after, mine.cursor), through, left(reason, 500));
            UPDATE gattherd.journal SET cursor = through WHERE id = mine.journal;
            RETURN through;
        END $$;

        -- The ids of series and their quantities, in the order of the arrays; new ones are inserted. Gateways send at
        -- most a MiB, and so fewer series than this limit.
        CREATE OR REPLACE FUNCTION gattherd.resolve(
            owner int, devices text[], profiles text[], streams text[], metrics text[], units text[], kinds text[],
            sources text[], firsts bigint[], OUT ids int[], OUT quantities int[], OUT airs int[]
        ) LANGUAGE plpgsql AS $$
        BEGIN
            IF cardinality(devices) > 100000 THEN
                RAISE EXCEPTION 'too many series' USING ERRCODE = '54000';
            END IF;
            FOR attempt IN 1..3 LOOP
                SELECT coalesce(array_agg(s.id ORDER BY w.place), '{}'),
                    coalesce(array_agg(s.quantity ORDER BY w.place), '{}'), array_agg(s.air ORDER BY w.place)
                INTO ids, quantities, airs
                FROM unnest(devices, profiles, streams, metrics, units, kinds, sources) WITH ORDINALITY
                    AS w(device, profile, stream, metric, unit, kind, source, place)
                LEFT JOIN gattherd.metric_series s ON s.gateway = owner AND s.device = w.device
                    AND s.stream = w.stream
                    AND s.metric = w.metric AND s.profile = w.profile AND s.source = w.source AND s.kind = w.kind
                    AND s.unit IS NOT DISTINCT FROM w.unit;
                EXIT WHEN array_position(ids, NULL) IS NULL;
                -- A row that conflicts uses up a number of the sequence, which all gateways share.
                INSERT INTO gattherd.quantity (gateway, device, stream, metric, unit)
                SELECT DISTINCT owner, w.device, w.stream, w.metric, w.unit
                FROM unnest(devices, streams, metrics, units, ids) AS w(device, stream, metric, unit, id)
                WHERE w.id IS NULL AND NOT EXISTS (
                    SELECT FROM gattherd.quantity q WHERE q.gateway = owner AND q.device = w.device
                        AND q.stream = w.stream AND q.metric = w.metric AND q.unit IS NOT DISTINCT FROM w.unit)
                ON CONFLICT DO NOTHING;
                INSERT INTO gattherd.air (device, profile, stream)
                SELECT DISTINCT w.device, w.profile, w.stream
                FROM unnest(devices, profiles, streams, sources, ids) AS w(device, profile, stream, source, id)
                WHERE w.id IS NULL AND w.source = 'advert' AND NOT EXISTS (
                    SELECT FROM gattherd.air a WHERE a.device = w.device AND a.profile = w.profile
                        AND a.stream = w.stream)
                ORDER BY 1, 2, 3
                ON CONFLICT DO NOTHING;
                INSERT INTO gattherd.metric_series
                    (gateway, device, profile, stream, metric, unit, kind, source, quantity, first_ts, air)
                SELECT owner, w.device, w.profile, w.stream, w.metric, w.unit, w.kind, w.source, q.id, min(w.first),
                    a.id
                FROM unnest(devices, profiles, streams, metrics, units, kinds, sources, firsts, ids)
                    AS w(device, profile, stream, metric, unit, kind, source, first, id)
                JOIN gattherd.quantity q ON q.gateway = owner AND q.device = w.device AND q.stream = w.stream
                    AND q.metric = w.metric AND q.unit IS NOT DISTINCT FROM w.unit
                LEFT JOIN gattherd.air a ON w.source = 'advert' AND a.device = w.device AND a.profile = w.profile
                    AND a.stream = w.stream
                WHERE w.id IS NULL AND (a.id IS NOT NULL OR w.source IS DISTINCT FROM 'advert')
                GROUP BY w.device, w.profile, w.stream, w.metric, w.unit, w.kind, w.source, q.id, a.id
                ON CONFLICT DO NOTHING;
            END LOOP;
            -- A sequence that was set back gives numbers that are in use, and passes over them with each attempt.
            IF array_position(ids, NULL) IS NOT NULL THEN
                RAISE EXCEPTION 'the numbers for new series are in use' USING ERRCODE = '2200H';
            END IF;
        END $$;

        -- Divides rows where their times change by more than an hour: there the clock was set.
        CREATE OR REPLACE FUNCTION gattherd.runs(numbers bigint[], times bigint[], after bigint)
        RETURNS TABLE (first bigint, last bigint, first_ts bigint, last_ts bigint) LANGUAGE sql STABLE AS $$
            WITH stepped AS (
                SELECT r.seq, r.ts, abs(r.ts::float8 - lag(r.ts) OVER (ORDER BY r.seq)) > 3.6e9 AS is_step
                FROM unnest(numbers, times) AS r(seq, ts) WHERE r.seq > after
            ), numbered AS (
                SELECT s.seq, s.ts, count(*) FILTER (WHERE s.is_step) OVER (ORDER BY s.seq) AS run FROM stepped s
            )
            SELECT min(n.seq), max(n.seq), min(n.ts), max(n.ts) FROM numbered n GROUP BY n.run ORDER BY 1
        $$;

        -- Records what a run of rows covers, so that a correction finds its rows without an index by number.
        -- A correction moves one extent at a time, so an extent has few numbers: a reading may have dozens of rows.
        CREATE OR REPLACE FUNCTION gattherd.cover(
            covered int, from_seq bigint, to_seq bigint, from_ts bigint, to_ts bigint
        ) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE gattherd.extent e
            SET last = to_seq, first_ts = least(e.first_ts, from_ts), last_ts = greatest(e.last_ts, to_ts)
            WHERE e.journal = covered AND e.first = (SELECT max(x.first)
                FROM gattherd.extent x WHERE x.journal = covered)
                AND e.last - e.first < 2000 AND e.came > now() - interval '1 day' AND from_ts::numeric > e.first_ts::numeric - 3600000000
                AND to_ts::numeric < e.last_ts::numeric + 3600000000;
            IF NOT FOUND THEN
                INSERT INTO gattherd.extent (journal, first, last, first_ts, last_ts)
                VALUES (covered, from_seq, to_seq, from_ts, to_ts) ON CONFLICT DO NOTHING;
            END IF;
        END $$;

        CREATE OR REPLACE FUNCTION gattherd.append(
            epoch text, after bigint, through bigint,
            s_device text[], s_profile text[], s_stream text[], s_metric text[], s_unit text[], s_kind text[],
                s_source text[],
            s_first bigint[],
            r_seq bigint[], r_ts bigint[], r_series int[], r_value double precision[], r_element int[],
                r_whole bigint[],
            r_label text[],
            e_seq bigint[], e_ts bigint[], e_device text[], e_kind text[], e_detail text[],
            x_seq bigint[], x_ts bigint[], x_device text[], x_characteristic text[], x_octets bytea[],
                x_reason text[],
            c_seq bigint[], c_after bigint[], c_through bigint[], c_shift bigint[],
            g_version text, g_head bigint, g_time bigint, g_errors bigint
        ) RETURNS bigint
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
        DECLARE
            mine record;
            known record;
            run record;
            near record;
            copies bigint[];
        BEGIN
            SELECT * INTO mine FROM gattherd.lock_journal(epoch);
            IF mine.cursor < after THEN
                RAISE EXCEPTION 'the cursor is at %, before %', mine.cursor, after USING ERRCODE = 'GH001';
            END IF;
            IF mine.cursor >= through THEN RETURN mine.cursor; END IF;
            IF cardinality(r_seq) > 0 THEN
                PERFORM gattherd.make_blocks(ARRAY(SELECT DISTINCT gattherd.floored(t, 86400000000)
                    FROM unnest(r_ts) AS t));
                -- No partition is made from now on, which would make a row violate the default partition's constraint.
                -- The lock comes before those of streams: who makes a partition has it, and then waits for them.
                LOCK TABLE gattherd.sample_other, gattherd.minute_other IN ROW EXCLUSIVE MODE;
                SELECT * INTO known FROM gattherd.resolve(
                    mine.gateway, s_device, s_profile, s_stream, s_metric, s_unit, s_kind, s_source, s_first);
                -- The newest row of a series has the latest time; of equal times, it is the last to arrive. Times ahead
                -- of the gateway's clock were stored before it was set back, and do not count against later rows.
                INSERT INTO gattherd.head AS old (series, journal, seq, ts, value, element, whole, label)
                SELECT DISTINCT ON ((known.ids)[r.series])
                    (known.ids)[r.series], mine.journal, r.seq, r.ts, r.value, r.element, r.whole, r.label
                FROM unnest(r_ts, r_seq, r_value, r_series, r_element, r_whole, r_label) WITH ORDINALITY
                    AS r(ts, seq, value, series, element, whole, label, place)
                WHERE r.seq > mine.cursor
                ORDER BY (known.ids)[r.series], r.ts > g_time, r.ts DESC, r.seq DESC, r.place DESC
                ON CONFLICT ON CONSTRAINT head_pkey DO UPDATE SET journal = excluded.journal, seq = excluded.seq,
                    ts = excluded.ts, value = excluded.value, element = excluded.element, whole = excluded.whole,
                    label = excluded.label
                WHERE (excluded.ts <= g_time, excluded.ts, excluded.journal, excluded.seq)
                    >= (old.ts <= g_time, old.ts, old.journal, old.seq);
                FOR run IN SELECT * FROM gattherd.runs(r_seq, r_ts, mine.cursor) LOOP
                    PERFORM gattherd.cover(mine.journal, run.first, run.last, run.first_ts, run.last_ts);
                END LOOP;
                IF EXISTS (SELECT FROM unnest(known.airs) AS a WHERE a IS NOT NULL) THEN
                    copies := gattherd.receive(mine.gateway, mine.journal, mine.cursor, known.airs, s_metric, r_seq,
                        r_ts, r_series, r_value, r_element, r_whole, r_label);
                END IF;
                IF cardinality(copies) > 0 THEN
                    INSERT INTO gattherd.duplicate (ts, seq, value, journal, series, element, whole, label)
                    SELECT r.ts, r.seq, r.value, mine.journal, (known.ids)[r.series], r.element, r.whole, r.label
                    FROM unnest(r_ts, r_seq, r_value, r_series, r_element, r_whole, r_label)
                        AS r(ts, seq, value, series, element, whole, label)
                    JOIN unnest(copies) AS c(seq) ON c.seq = r.seq WHERE s_metric[r.series] <> 'rssi';
                    SELECT array_agg(r.ts), array_agg(r.seq), array_agg(r.value), array_agg(r.series),
                        array_agg(r.element), array_agg(r.whole), array_agg(r.label)
                    INTO r_ts, r_seq, r_value, r_series, r_element, r_whole, r_label
                    FROM unnest(r_ts, r_seq, r_value, r_series, r_element, r_whole, r_label)
                        AS r(ts, seq, value, series, element, whole, label)
                    LEFT JOIN unnest(copies) AS c(seq) ON c.seq = r.seq
                    WHERE c.seq IS NULL OR s_metric[r.series] = 'rssi';
                END IF;
                SELECT * INTO near FROM gattherd.near();
                INSERT INTO gattherd.sample (ts, seq, value, journal, series, element, whole, label, far)
                SELECT r.ts, r.seq, r.value, mine.journal, (known.ids)[r.series], r.element, r.whole, r.label,
                    r.ts NOT BETWEEN near.low AND near.high
                FROM unnest(r_ts, r_seq, r_value, r_series, r_element, r_whole, r_label)
                    AS r(ts, seq, value, series, element, whole, label)
                WHERE r.seq > mine.cursor;
                WITH minutes AS MATERIALIZED (
                    SELECT (known.quantities)[r.series] AS quantity, gattherd.floored(r.ts, 60000000) AS ts,
                        count(*) AS n,
                        sum(gattherd.bounded(r.value)) AS sum, min(r.value) AS min, max(r.value) AS max
                    FROM unnest(r_ts, r_seq, r_value, r_series) AS r(ts, seq, value, series)
                    WHERE r.seq > mine.cursor AND r.value IS NOT NULL GROUP BY 1, 2
                ), added AS (
                    INSERT INTO gattherd.minute AS old (quantity, ts, n, sum, min, max, far)
                    SELECT m.quantity, m.ts, m.n, m.sum, m.min, m.max, m.ts NOT BETWEEN near.low AND near.high
                    FROM minutes m ORDER BY 1, 2
                    ON CONFLICT ON CONSTRAINT minute_pkey DO UPDATE SET n = old.n + excluded.n,
                        sum = gattherd.total(old.sum, excluded.sum),
                        min = least(old.min, excluded.min), max = greatest(old.max, excluded.max)
                )
                INSERT INTO gattherd.hour AS old (quantity, ts, n, sum, min, max)
                SELECT m.quantity, gattherd.floored(m.ts, 3600000000), sum(m.n), sum(gattherd.bounded(m.sum)),
                    min(m.min),
                    max(m.max)
                FROM minutes m GROUP BY 1, 2 ORDER BY 1, 2
                ON CONFLICT ON CONSTRAINT hour_pkey DO UPDATE SET n = old.n + excluded.n,
                    sum = gattherd.total(old.sum, excluded.sum),
                    min = least(old.min, excluded.min), max = greatest(old.max, excluded.max);
            END IF;
            IF cardinality(e_seq) > 0 THEN
                INSERT INTO gattherd.event (journal, seq, ts, device, kind, detail)
                SELECT mine.journal, e.seq, e.ts, e.device, e.kind, e.detail
                FROM unnest(e_seq, e_ts, e_device, e_kind, e_detail) AS e(seq, ts, device, kind, detail)
                WHERE e.seq > mine.cursor;
            END IF;
            IF cardinality(x_seq) > 0 THEN
                INSERT INTO gattherd.reject (journal, seq, ts, device, characteristic, octets, reason)
                SELECT mine.journal, x.seq, x.ts, x.device, x.characteristic, x.octets, x.reason
                FROM unnest(x_seq, x_ts, x_device, x_characteristic, x_octets, x_reason)
                    AS x(seq, ts, device, characteristic, octets, reason)
                WHERE x.seq > mine.cursor;
            END IF;
            IF cardinality(c_seq) > 0 THEN
                INSERT INTO gattherd.correction (journal, seq, after, through, shift, place)
                SELECT mine.journal, c.seq, c.after, c.through, c.shift, c.after
                FROM unnest(c_seq, c_after, c_through, c_shift) AS c(seq, after, through, shift)
                WHERE c.seq > mine.cursor;
            END IF;
            UPDATE gattherd.journal SET cursor = through WHERE id = mine.journal;
            UPDATE gattherd.gateway SET version = g_version, last_seen = clock_timestamp(), head = g_head,
                clock_offset = g_time / 1e6 - extract(epoch FROM clock_timestamp()), errors = g_errors
            WHERE id = mine.gateway;
            RETURN through;
        END $$;
        """#
}
