/// Partitions ahead of time, and the retention of the centre.
enum FleetUpkeep {
    static let sql = #"""
        -- Does the next step of the retention: one transaction of limited work. Returns true if more is to do.
        -- A caller claims the retention for 6 hours by a transaction of its own, so that a step that fails is not
        -- repeated by the whole fleet. A claim of the future was made before the clock was set back, and has ended.
        -- Nothing is deleted for a gateway whose clock is a day behind: if the centre's clock is ahead instead, rows
        -- only look too old. After a week without other gateways the centre's clock is believed.
        CREATE OR REPLACE FUNCTION gattherd.maintain() RETURNS boolean
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
        DECLARE
            job record;
            -- The beginning of the time in which the clocks have differed.
            doubt timestamptz;
            is_dropped boolean;
        BEGIN
            -- A step must see the rows that arrive while it waits for a partition; see caller().
            IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
                RETURN false;
            END IF;
            IF EXISTS (SELECT FROM gattherd.gateway g WHERE g.role = session_user AND g.clock_offset < -86400) THEN
                INSERT INTO gattherd.upkeep AS u VALUES ('doubt', now()) ON CONFLICT (task) DO UPDATE
                SET done = least(u.done, now()) RETURNING u.done INTO doubt;
                IF doubt > now() - interval '7 days' THEN RETURN false; END IF;
            ELSE
                DELETE FROM gattherd.upkeep WHERE task = 'doubt';
            END IF;
            SELECT * INTO job FROM gattherd.upkeep u WHERE u.task = 'retention' FOR UPDATE SKIP LOCKED;
            IF job.done NOT BETWEEN now() - interval '6 hours' AND now() + interval '1 hour' THEN
                UPDATE gattherd.upkeep SET done = now(), claimed_by = session_user WHERE task = 'retention';
                RETURN true;
            END IF;
            IF job.claimed_by IS DISTINCT FROM session_user THEN RETURN false; END IF;
            IF gattherd.retire_extents() THEN RETURN true; END IF;
            is_dropped := gattherd.drop_block();
            IF is_dropped OR gattherd.delete_rows() THEN RETURN true; END IF;
            -- Last, because that may take longer than the caller waits.
            PERFORM gattherd.shrink_others(268435456);
            PERFORM gattherd.make_blocks_ahead();
            PERFORM gattherd.move_stranded(33554432);
            -- The claim stays for a partition that a reader holds: its gateway calls again in an hour.
            UPDATE gattherd.upkeep SET claimed_by = NULL WHERE task = 'retention' AND is_dropped IS NOT NULL;
            RETURN false;
        END $$;

        -- The time before which rows of a kind are too old; NULL if they are kept for ever, or for so long that
        -- PostgreSQL may have no such time.
        CREATE OR REPLACE FUNCTION gattherd.keep_from(kind text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
            SELECT now() - r.keep FROM gattherd.retention r
            WHERE r.kind = keep_from.kind AND r.keep < interval '1000 years'
        $$;

        CREATE OR REPLACE FUNCTION gattherd.micros(moment timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
            SELECT floor(extract(epoch FROM moment) * 1000000)::bigint
        $$;

        -- Partitions of receptions, too, because a reader may hold their default partition when a day begins. It also
        -- has the receptions of wrong clocks, which are read for each new partition. More of them are read here than
        -- for a batch: without partitions made ahead, the default partition would grow with all receptions.
        CREATE OR REPLACE FUNCTION gattherd.make_blocks_ahead() RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            today bigint := gattherd.micros(now());
            days bigint[] := ARRAY(SELECT today + n * 86400000000 FROM generate_series(0, 14) AS n);
            day bigint;
        BEGIN
            PERFORM gattherd.make_blocks(days);
            IF NOT EXISTS (SELECT FROM gattherd.air) THEN RETURN; END IF;
            FOREACH day IN ARRAY days[:3] LOOP
                EXIT WHEN NOT gattherd.make_block('reception', day, 268435456);
                EXIT WHEN NOT gattherd.make_block('duplicate', day, 268435456);
            END LOOP;
        END $$;

        -- Forgets the oldest arrivals, and deletes their rows that are in no partition by day: those of wrong clocks.
        -- If the centre's clock was behind, new rows have an old arrival, too, but times that are not too old.
        CREATE OR REPLACE FUNCTION gattherd.retire_extents() RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE
            cutoff timestamptz := gattherd.keep_from('samples');
            oldest bigint := gattherd.micros(cutoff);
            ahead bigint := (gattherd.near()).high;
            old record;
            any_retired boolean := false;
        BEGIN
            FOR old IN
                SELECT * FROM gattherd.extent e
                WHERE e.came < cutoff AND (e.last_ts < oldest OR e.first_ts > ahead) ORDER BY e.came LIMIT 1000
            LOOP
                any_retired := true;
                -- A step ends with the first rows that are deleted.
                EXIT WHEN gattherd.retire_rows(old.journal, old.first, old.last);
                DELETE FROM gattherd.extent e WHERE e.journal = old.journal AND e.first = old.first;
            END LOOP;
            RETURN any_retired;
        END $$;

        -- Deletes up to 10,000 rows with these numbers that are in no partition by day, with the minutes of those
        -- with wrong times. Returns true if there were any.
        CREATE OR REPLACE FUNCTION gattherd.retire_rows(retired int, from_seq bigint, to_seq bigint) RETURNS boolean
        LANGUAGE plpgsql AS $$
        DECLARE
            gone bigint;
        BEGIN
            DELETE FROM gattherd.sample_other WHERE ctid = ANY (ARRAY(
                SELECT s.ctid FROM gattherd.sample_other s
                WHERE s.journal = retired AND s.seq BETWEEN from_seq AND to_seq LIMIT 10000));
            IF FOUND THEN RETURN true; END IF;
            WITH deleted AS (
                DELETE FROM gattherd.sample_far WHERE ctid = ANY (ARRAY(
                    SELECT s.ctid FROM gattherd.sample_far s
                    WHERE s.journal = retired AND s.seq BETWEEN from_seq AND to_seq LIMIT 10000))
                RETURNING series, ts
            ), minutes AS (
                SELECT DISTINCT q.quantity, gattherd.floored(d.ts, 60000000) AS ts
                FROM deleted d JOIN gattherd.metric_series q ON q.id = d.series
            ), minutes_deleted AS (
                DELETE FROM gattherd.minute_far m USING minutes w WHERE m.quantity = w.quantity AND m.ts = w.ts
            )
            SELECT count(*) INTO gone FROM deleted;
            RETURN gone > 0;
        END $$;

        -- True if rows of these times have arrived since then.
        CREATE OR REPLACE FUNCTION gattherd.has_arrivals(from_ts bigint, to_ts bigint, cutoff timestamptz)
        RETURNS boolean LANGUAGE sql AS $$
            SELECT EXISTS (SELECT FROM gattherd.extent e
                WHERE e.first_ts < to_ts AND e.last_ts >= from_ts AND e.came >= cutoff)
        $$;

        -- Drops the oldest partition whose rows are all too old, and arrived too long ago. Returns false if there is
        -- none, and NULL if a reader holds it.
        CREATE OR REPLACE FUNCTION gattherd.drop_block() RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE
            cutoff timestamptz := gattherd.keep_from('samples');
            block record;
            parent text;
        BEGIN
            FOR block IN
                SELECT b.* FROM gattherd.blocks() b
                WHERE b.until <= gattherd.micros(gattherd.keep_from(b.kind)) ORDER BY b.since
            LOOP
                CONTINUE WHEN block.kind = 'samples' AND gattherd.has_arrivals(block.since, block.until, cutoff);
                -- The arrival of rows that are being inserted is known when their locks end. All locks that a drop
                -- takes are taken here, in the order of append: it has the default partition before it inserts.
                parent := split_part(block.name::text, '_', 1);
                EXECUTE format('LOCK TABLE gattherd.%I, ONLY gattherd.%I, gattherd.%I IN ACCESS EXCLUSIVE MODE',
                    parent || '_other',
                    CASE WHEN parent IN ('sample', 'minute') THEN parent || '_near' ELSE parent END, block.name);
                -- The next step passes over a partition with arrivals without these locks.
                IF block.kind = 'samples' AND gattherd.has_arrivals(block.since, block.until, cutoff) THEN
                    RETURN true;
                END IF;
                EXECUTE format('DROP TABLE gattherd.%I', block.name);
                RETURN true;
            END LOOP;
            RETURN false;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN RETURN NULL;
        END $$;

        -- The partitions with their times; not those that a person has detached to keep them.
        CREATE OR REPLACE FUNCTION gattherd.blocks()
        RETURNS TABLE (name name, kind text, since bigint, until bigint) LANGUAGE sql STABLE AS $$
            SELECT c.relname, k.kind, d.since, d.since + k.length
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'gattherd'
            JOIN (VALUES ('sample', 'samples', 86400000000), ('duplicate', 'samples', 86400000000),
                ('reception', 'samples', 86400000000), ('minute', 'minutes', 30 * 86400000000))
                AS k(parent, kind, length) ON c.relname ~ ('^' || k.parent || '_[0-9]{8}$')
            -- A timestamp without a time zone, because blocks begin at midnight UTC.
            CROSS JOIN LATERAL (SELECT extract(epoch FROM to_date(right(c.relname, 8), 'YYYYMMDD')::timestamp)::bigint
                * 1000000 AS since) AS d
            -- No foreign tables, which DROP TABLE refuses.
            WHERE c.relispartition AND c.relkind IN ('r', 'p')
        $$;

        -- Deletes up to 10,000 receptions, and later copies of readings, that are in no partition by day and whose
        -- arrivals are forgotten. Their times are too old, or ahead. All others of wrong clocks are read; each costs
        -- one look-up, however many arrivals there are.
        CREATE OR REPLACE FUNCTION gattherd.delete_receptions(oldest bigint) RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE
            ahead bigint := (gattherd.near()).high;
        BEGIN
            IF oldest IS NULL THEN RETURN false; END IF;
            DELETE FROM gattherd.duplicate_other WHERE ctid = ANY (ARRAY(
                SELECT d.ctid FROM gattherd.duplicate_other d WHERE (d.ts < oldest OR d.ts > ahead) AND (
                    SELECT e.last FROM gattherd.extent e WHERE e.journal = d.journal AND e.first <= d.seq
                    ORDER BY e.first DESC LIMIT 1
                ) >= d.seq IS NOT TRUE LIMIT 10000));
            IF FOUND THEN RETURN true; END IF;
            DELETE FROM gattherd.reception_other WHERE ctid = ANY (ARRAY(
                SELECT r.ctid FROM gattherd.reception_other r WHERE (r.ts < oldest OR r.ts > ahead) AND (
                    SELECT e.last FROM gattherd.extent e WHERE e.journal = r.journal AND e.first <= r.seq
                    ORDER BY e.first DESC LIMIT 1
                ) >= r.seq IS NOT TRUE LIMIT 10000));
            RETURN FOUND;
        END $$;

        -- Deletes up to 10,000 bids that were not repeated for 30 days, or leases without a bid that ended as long ago.
        -- Leases with a list of gateways stay. No epoch is given again, as epochs are at least the time.
        CREATE OR REPLACE FUNCTION gattherd.delete_leases() RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE
            oldest timestamptz := now() - interval '30 days';
        BEGIN
            DELETE FROM gattherd.lease_bid WHERE ctid = ANY (ARRAY(
                SELECT b.ctid FROM gattherd.lease_bid b WHERE b.updated < oldest LIMIT 10000));
            IF FOUND THEN RETURN true; END IF;
            DELETE FROM gattherd.lease WHERE ctid = ANY (ARRAY(
                SELECT l.ctid FROM gattherd.lease l WHERE l.expires < oldest AND l.gateways IS NULL AND NOT EXISTS (
                    SELECT FROM gattherd.lease_bid b WHERE b.address = l.address
                ) LIMIT 10000));
            RETURN FOUND;
        END $$;

        -- Deletes up to 10,000 rows of the first other table that has rows to delete.
        CREATE OR REPLACE FUNCTION gattherd.delete_rows() RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE
            ahead bigint := (gattherd.near()).high;
            cutoff timestamptz := gattherd.keep_from('samples');
            oldest bigint := gattherd.micros(cutoff);
        BEGIN
            DELETE FROM gattherd.head h WHERE (h.ts < oldest OR h.ts > ahead) AND (
                SELECT e.last FROM gattherd.extent e WHERE e.journal = h.journal AND e.first <= h.seq
                ORDER BY e.first DESC LIMIT 1
            ) >= h.seq IS NOT TRUE AND cutoff IS NOT NULL;
            IF FOUND THEN RETURN true; END IF;
            IF gattherd.delete_leases() THEN RETURN true; END IF;
            oldest := gattherd.micros(gattherd.keep_from('hours'));
            IF oldest IS NOT NULL THEN
                DELETE FROM gattherd.hour WHERE ctid = ANY (ARRAY(
                    SELECT o.ctid FROM gattherd.quantity q CROSS JOIN LATERAL (
                        SELECT h.ctid FROM gattherd.hour h WHERE h.quantity = q.id AND h.ts < oldest LIMIT 10000
                    ) AS o LIMIT 10000));
                IF FOUND THEN RETURN true; END IF;
            END IF;
            cutoff := gattherd.keep_from('events');
            oldest := gattherd.micros(cutoff);
            DELETE FROM gattherd.event WHERE ctid = ANY (ARRAY(
                SELECT e.ctid FROM gattherd.event e WHERE (e.ts < oldest OR e.ts > ahead) AND e.came < cutoff
                LIMIT 10000));
            IF FOUND THEN RETURN true; END IF;
            DELETE FROM gattherd.reject WHERE ctid = ANY (ARRAY(
                SELECT x.ctid FROM gattherd.reject x WHERE (x.ts < oldest OR x.ts > ahead) AND x.came < cutoff
                LIMIT 10000));
            IF FOUND THEN RETURN true; END IF;
            -- Many receptions of wrong clocks take long to read, which must not keep the other tables from shrinking.
            RETURN gattherd.delete_receptions(gattherd.micros(gattherd.keep_from('samples')));
        END $$;
        """#
}
