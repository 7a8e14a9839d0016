/// Advertisements that several gateways heard.
///
/// The samples of the first reception that arrives are in `sample`, as those of any reading. Those of the others are in
/// `duplicate`, so that history and summaries have one reading and cost nothing more.
enum FleetReceptions {
    static let sql = #"""
        -- A part of the fingerprint of a reading: equal for equal values, whoever heard them.
        CREATE OR REPLACE FUNCTION gattherd.print(
            metric text, element int, value double precision, whole bigint, label text
        ) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
            SELECT hashtextextended(concat_ws(chr(31), metric, element, label),
                coalesce(hashfloat8extended(value, coalesce(whole, 0)), 1))
        $$;

        -- Lets no other gateway add receptions of these streams until the end of the transaction.
        -- Returns false if one holds them for the caller's lock_timeout: none may keep all others from delivering.
        -- After a deadlock the whole batch fails and is tried again. Without the lock it would add second readings.
        CREATE OR REPLACE FUNCTION gattherd.lock_air(airs int[]) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM FROM gattherd.air a WHERE a.id = ANY (airs) ORDER BY a.id FOR NO KEY UPDATE;
            RETURN true;
        EXCEPTION WHEN lock_not_available THEN
            RETURN false;
        END $$;

        -- The first receptions, by other gateways, of advertisements that a gateway heard.
        -- A counter of the format is one of the values, and so part of the fingerprint. Without a counter, equal values
        -- are a new reading after a minute at a gateway; half of it, to both sides, belongs to one reading.
        CREATE OR REPLACE FUNCTION gattherd.match(
            owner int, seqs bigint[], times bigint[], airs int[], prints bigint[]
        ) RETURNS TABLE (seq bigint, first_journal int, first_seq bigint)
        LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan SET jit = off
        SET enable_hashjoin = off SET enable_mergejoin = off
        SET enable_bitmapscan = off SET enable_seqscan = off
        AS $$
        DECLARE
            reach bigint := 30000000;
            low bigint := (SELECT min(t) FROM unnest(times) AS t) - reach;
            high bigint := (SELECT max(t) FROM unnest(times) AS t) + reach;
        BEGIN
            RETURN QUERY
            -- Each subquery with OFFSET looks up its rows by the index, whatever the statistics say.
            WITH pair AS MATERIALIZED (
                SELECT m.seq, o.journal, o.seq AS first, abs(o.ts - m.ts) AS distance
                FROM unnest(seqs, times, airs, prints) AS m(seq, ts, air, print)
                CROSS JOIN LATERAL (
                    SELECT r.ts, r.seq, r.journal FROM gattherd.reception r
                    WHERE r.air = m.air AND r.print = m.print AND r.ts BETWEEN m.ts - reach AND m.ts + reach
                        AND r.ts BETWEEN low AND high AND r.first_journal = r.journal AND r.first_seq = r.seq
                    OFFSET 0
                ) AS o
                JOIN gattherd.journal j ON j.id = o.journal AND j.gateway <> owner
                WHERE NOT EXISTS (
                    SELECT FROM gattherd.reception c JOIN gattherd.journal k ON k.id = c.journal
                    WHERE c.air = m.air AND c.print = m.print AND c.ts BETWEEN o.ts - reach AND o.ts + reach
                        AND c.ts BETWEEN low - reach AND high + reach
                        AND c.first_journal = o.journal AND c.first_seq = o.seq AND k.gateway = owner
                    OFFSET 0
                ) AND NOT EXISTS (
                    SELECT FROM gattherd.air a
                    JOIN gattherd.device d ON d.gateway = owner AND d.device = a.device
                    JOIN gattherd.device e ON e.gateway = j.gateway AND e.device = a.device AND e.address <> d.address
                    WHERE a.id = m.air
                    OFFSET 0
                )
            ), nearest AS (
                SELECT DISTINCT ON (p.journal, p.first) p.* FROM pair p ORDER BY p.journal, p.first, p.distance, p.seq
            )
            SELECT DISTINCT ON (n.seq) n.seq, n.journal, n.first FROM nearest n
            ORDER BY n.seq, n.distance, n.journal, n.first;
        END $$;

        -- Stores the receptions of a batch. Returns the readings that another gateway has delivered before.
        CREATE OR REPLACE FUNCTION gattherd.receive(
            owner int, heard int, after bigint, airs int[], metrics text[], r_seq bigint[], r_ts bigint[],
            r_series int[], r_value double precision[], r_element int[], r_whole bigint[], r_label text[]
        ) RETURNS bigint[] LANGUAGE plpgsql AS $$
        DECLARE
            new record;
            found record;
        BEGIN
            SELECT array_agg(h.seq) AS seqs, array_agg(h.ts) AS times, array_agg(h.air) AS airs,
                array_agg(h.print) AS prints, array_agg(h.rssi) AS signals
            INTO new FROM (
                SELECT r.seq, r.ts, airs[r.series] AS air,
                    coalesce(bit_xor(gattherd.print(metrics[r.series], r.element, r.value, r.whole, r.label))
                        FILTER (WHERE metrics[r.series] <> 'rssi'), 0) AS print,
                    round(max(least(greatest(r.value, -128), 127)) FILTER (WHERE metrics[r.series] = 'rssi')) AS rssi
                FROM unnest(r_seq, r_ts, r_series, r_value, r_element, r_whole, r_label)
                    AS r(seq, ts, series, value, element, whole, label)
                WHERE r.seq > after AND airs[r.series] IS NOT NULL GROUP BY 1, 2, 3
            ) AS h;
            IF new.seqs IS NULL THEN RETURN '{}'; END IF;
            PERFORM gattherd.make_reception_blocks(new.times);
            LOCK TABLE gattherd.reception_other, gattherd.duplicate_other IN ROW EXCLUSIVE MODE;
            SELECT '{}'::bigint[] AS seqs, '{}'::int[] AS journals, '{}'::bigint[] AS firsts INTO found;
            IF gattherd.lock_air(new.airs) THEN
                SELECT coalesce(array_agg(m.seq), '{}') AS seqs, array_agg(m.first_journal) AS journals,
                    array_agg(m.first_seq) AS firsts
                INTO found FROM gattherd.match(owner, new.seqs, new.times, new.airs, new.prints) AS m;
            END IF;
            INSERT INTO gattherd.reception (ts, seq, print, first_seq, first_journal, journal, air, rssi)
            SELECT n.ts, n.seq, n.print, coalesce(f.first, n.seq), coalesce(f.journal, heard), heard, n.air, n.rssi
            FROM unnest(new.seqs, new.times, new.airs, new.prints, new.signals) AS n(seq, ts, air, print, rssi)
            LEFT JOIN unnest(found.seqs, found.journals, found.firsts) AS f(seq, journal, first) ON f.seq = n.seq;
            RETURN found.seqs;
        END $$;

        CREATE OR REPLACE FUNCTION gattherd.make_reception_blocks(moments bigint[]) RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE day bigint;
        BEGIN
            FOR day IN SELECT DISTINCT gattherd.floored(m, 86400000000) FROM unnest(moments) AS m LIMIT 500 LOOP
                EXIT WHEN NOT gattherd.make_block('reception', day, 33554432);
                EXIT WHEN NOT gattherd.make_block('duplicate', day, 33554432);
            END LOOP;
        END $$;

        -- Adds shift to the times of the receptions of one extent.
        CREATE OR REPLACE FUNCTION gattherd.move_receptions(
            moved int, after bigint, through bigint, shift bigint, from_ts bigint, to_ts bigint
        ) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE times bigint[];
        BEGIN
            SELECT array_agg(DISTINCT gattherd.floored(gattherd.shifted(r.ts, move_receptions.shift), 86400000000))
            INTO times FROM gattherd.reception r
            WHERE r.ts BETWEEN from_ts AND to_ts AND r.journal = moved AND r.seq > move_receptions.after
                AND r.seq <= move_receptions.through;
            IF times IS NULL THEN RETURN; END IF;
            PERFORM gattherd.make_reception_blocks(times);
            UPDATE gattherd.reception r SET ts = gattherd.shifted(r.ts, move_receptions.shift)
            WHERE r.ts BETWEEN from_ts AND to_ts AND r.journal = moved AND r.seq > move_receptions.after
                AND r.seq <= move_receptions.through;
            UPDATE gattherd.duplicate s SET ts = gattherd.shifted(s.ts, move_receptions.shift)
            WHERE s.ts BETWEEN from_ts AND to_ts AND s.journal = moved AND s.seq > move_receptions.after
                AND s.seq <= move_receptions.through;
        END $$;

        -- Finds the receptions of others for readings whose times were from old_low to old_high until now.
        -- Readings that others have joined before stay.
        CREATE OR REPLACE FUNCTION gattherd.merge_receptions(
            owner int, heard int, after bigint, through bigint, low bigint, high bigint, old_low bigint,
            old_high bigint
        ) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            reach bigint := 30000000;
            alone record;
            found record;
        BEGIN
            -- Without the lock, others could join the readings that are alone.
            IF NOT gattherd.lock_air(ARRAY(
                SELECT DISTINCT r.air FROM gattherd.reception r
                WHERE r.ts BETWEEN low AND high AND r.journal = heard AND r.seq > merge_receptions.after
                    AND r.seq <= merge_receptions.through
            )) THEN RETURN; END IF;
            SELECT array_agg(r.seq) AS seqs, array_agg(r.ts) AS times, array_agg(r.air) AS airs,
                array_agg(r.print) AS prints
            INTO alone FROM gattherd.reception r
            WHERE r.ts BETWEEN low AND high AND r.journal = heard AND r.seq > merge_receptions.after
                AND r.seq <= merge_receptions.through AND r.first_journal = r.journal AND r.first_seq = r.seq
                AND NOT EXISTS (
                    SELECT FROM gattherd.reception c WHERE c.air = r.air AND c.print = r.print
                        AND c.ts BETWEEN old_low - reach AND old_high + reach AND c.first_journal = r.journal AND c.first_seq = r.seq AND c.journal <> r.journal
                );
            IF alone.seqs IS NULL THEN RETURN; END IF;
            SELECT array_agg(m.seq) AS seqs, array_agg(m.first_journal) AS journals, array_agg(m.first_seq) AS firsts
            INTO found FROM gattherd.match(owner, alone.seqs, alone.times, alone.airs, alone.prints) AS m;
            IF found.seqs IS NULL THEN RETURN; END IF;
            UPDATE gattherd.reception r SET first_journal = f.journal, first_seq = f.first
            FROM unnest(found.seqs, found.journals, found.firsts) AS f(seq, journal, first)
            WHERE r.ts BETWEEN low AND high AND r.journal = heard AND r.seq = f.seq;
            WITH moved AS (
                DELETE FROM gattherd.sample s USING unnest(found.seqs) AS f(seq)
                WHERE s.series = ANY (ARRAY(SELECT q.id FROM gattherd.metric_series q
                        WHERE q.gateway = owner AND q.air IS NOT NULL AND q.metric <> 'rssi'))
                    AND s.ts BETWEEN low AND high AND s.journal = heard AND s.seq = f.seq
                RETURNING s.*
            )
            INSERT INTO gattherd.duplicate SELECT * FROM moved;
        END $$;

        -- The state of a gateway without entries, and its devices; NULL for those that have not changed.
        CREATE OR REPLACE FUNCTION gattherd.report(
            g_version text, g_head bigint, g_time bigint, g_errors bigint, d_device text[], d_address text[],
            d_name text[], d_profiles text[], d_first bigint[], d_last bigint[]
        ) RETURNS void
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
        DECLARE mine int := gattherd.caller();
        BEGIN
            UPDATE gattherd.gateway SET version = g_version, last_seen = clock_timestamp(), head = coalesce(g_head, head),
                clock_offset = g_time / 1e6 - extract(epoch FROM clock_timestamp()), errors = g_errors
            WHERE id = mine;
            IF d_device IS NULL THEN RETURN; END IF;
            DELETE FROM gattherd.device d WHERE d.gateway = mine AND NOT d.device = ANY (d_device);
            INSERT INTO gattherd.device AS old
            SELECT DISTINCT ON (n.device) mine, n.device, n.address, n.name, n.profiles, n.first, n.last
            FROM unnest(d_device, d_address, d_name, d_profiles, d_first, d_last)
                AS n(device, address, name, profiles, first, last)
            WHERE n.device IS NOT NULL AND n.profiles IS NOT NULL
            ORDER BY n.device LIMIT 10000
            ON CONFLICT ON CONSTRAINT device_pkey DO UPDATE SET address = excluded.address, name = excluded.name,
                profiles = excluded.profiles, first_seen = excluded.first_seen, last_seen = excluded.last_seen;
        END $$;
        """#
}
