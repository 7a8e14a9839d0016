/// Partitions by time, made on demand.
enum FleetBlocks {
    static let sql = #"""
        -- The times that have partitions by day: those of clocks that are right, or wrong by a year at most.
        CREATE OR REPLACE FUNCTION gattherd.near(OUT low bigint, OUT high bigint) LANGUAGE sql STABLE AS $$
            SELECT (d.today - 400) * 86400000000, (d.today + 4) * 86400000000 - 1
            FROM (SELECT floor(extract(epoch FROM now()) / 86400)::bigint AS today) AS d
        $$;

        -- Makes the partition of a table for the block that contains a moment, if its time has partitions by day.
        CREATE OR REPLACE FUNCTION gattherd.make_block(parent text, moment bigint, most bigint) RETURNS boolean
        LANGUAGE plpgsql AS $$
        DECLARE
            near record;
        BEGIN
            SELECT * INTO near FROM gattherd.near();
            IF moment NOT BETWEEN near.low AND near.high + 11 * 86400000000 THEN RETURN true; END IF;
            RETURN gattherd.fill_block(parent, moment, most);
        END $$;

        -- Makes the partition of a table for the block that contains a moment, and moves its rows out of the default
        -- partition. They stay there for now if the default partition has more bytes than may be read meanwhile, or
        -- if somebody holds it for long. Returns false in the latter case.
        CREATE OR REPLACE FUNCTION gattherd.fill_block(parent text, moment bigint, most bigint) RETURNS boolean
        LANGUAGE plpgsql AS $$
        DECLARE
            length bigint := CASE parent WHEN 'minute' THEN 30 * 86400000000 ELSE 86400000000 END;
            start bigint := gattherd.floored(moment, length);
            name text;
            patience text := current_setting('lock_timeout');
            is_free boolean := true;
        BEGIN
            name := parent || '_' || to_char(timestamp 'epoch' + start / 1000000 * interval '1 second', 'YYYYMMDD');
            IF to_regclass('gattherd.' || name) IS NOT NULL THEN RETURN true; END IF;
            PERFORM set_config('lock_timeout', '200ms', true);
            BEGIN
                IF pg_relation_size('gattherd.' || parent || '_other') <= most THEN
                    PERFORM pg_advisory_xact_lock(1195463752, 1);
                    PERFORM gattherd.attach_block(parent, name, start, start + length);
                END IF;
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN is_free := false;
            END;
            PERFORM set_config('lock_timeout', patience, true);
            RETURN is_free;
        END $$;

        CREATE OR REPLACE FUNCTION gattherd.attach_block(parent text, block text, since bigint, until bigint)
        RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            container text := CASE WHEN parent IN ('sample', 'minute') THEN parent || '_near' ELSE parent END;
        BEGIN
            -- The caller's look-up is cached; a query sees what another transaction has committed meanwhile.
            IF EXISTS (
                SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'gattherd' AND c.relname = block
            ) THEN
                RETURN;
            END IF;
            EXECUTE format('LOCK TABLE gattherd.%I IN ACCESS EXCLUSIVE MODE', parent || '_other');
            EXECUTE format('CREATE TABLE gattherd.%I (LIKE gattherd.%I INCLUDING CONSTRAINTS, '
                'CONSTRAINT block CHECK (ts >= %s AND ts < %s)) %s', block, container, since, until,
                CASE parent WHEN 'minute' THEN 'WITH (fillfactor = 70)' ELSE '' END);
            EXECUTE format('WITH moved AS (DELETE FROM gattherd.%I WHERE ts >= %s AND ts < %s RETURNING *) '
                'INSERT INTO gattherd.%I SELECT * FROM moved', parent || '_other', since, until, block);
            EXECUTE format('ALTER TABLE gattherd.%I ATTACH PARTITION gattherd.%I FOR VALUES FROM (%s) TO (%s)',
                container, block, since, until);
            EXECUTE format('ALTER TABLE gattherd.%I DROP CONSTRAINT block', block);
        END $$;

        CREATE OR REPLACE FUNCTION gattherd.make_blocks(moments bigint[]) RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE day bigint;
        BEGIN
            FOR day IN SELECT DISTINCT gattherd.floored(m, 86400000000) FROM unnest(moments) AS m LIMIT 500 LOOP
                -- Waiting once is enough: the others would be held up, too.
                EXIT WHEN NOT gattherd.make_block('sample', day, 33554432);
                EXIT WHEN NOT gattherd.make_block('minute', day, 33554432);
            END LOOP;
        END $$;

        -- The days of rows whose partitions could not be made when the rows came, with the size up to which a default
        -- partition is read for each of them. PostgreSQL reads it for each: receptions of wrong clocks, which are there
        -- too, must not let an upgrade take hours. Samples and minutes were near when they came, so they are listed
        -- however old they are by now: the default partition would stay large with them.
        CREATE OR REPLACE FUNCTION gattherd.stranded(most bigint) RETURNS TABLE (parent text, day bigint, size bigint)
        LANGUAGE plpgsql AS $$
        DECLARE
            near record;
            low bigint;
        BEGIN
            SELECT * INTO near FROM gattherd.near();
            FOREACH parent IN ARRAY ARRAY['sample', 'minute', 'reception', 'duplicate'] LOOP
                size := CASE WHEN parent IN ('sample', 'minute') THEN most ELSE least(most, 268435456) END;
                low := CASE WHEN parent IN ('sample', 'minute') THEN 0 ELSE near.low END;
                CONTINUE WHEN pg_relation_size('gattherd.' || parent || '_other') > size;
                FOR day IN EXECUTE format('SELECT DISTINCT gattherd.floored(o.ts, 86400000000) FROM gattherd.%I o '
                    'WHERE o.ts BETWEEN $1 AND $2 ORDER BY 1 DESC', parent || '_other')
                    USING low, near.high + 11 * 86400000000
                LOOP
                    RETURN NEXT;
                END LOOP;
            END LOOP;
        END $$;

        -- Moves these rows to partitions; not those of a default partition that somebody holds for long.
        CREATE OR REPLACE FUNCTION gattherd.move_stranded(most bigint) RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE
            stray record;
            held text := '';
        BEGIN
            FOR stray IN SELECT * FROM gattherd.stranded(most) LOOP
                CONTINUE WHEN stray.parent = held;
                IF NOT gattherd.fill_block(stray.parent, stray.day, stray.size) THEN held := stray.parent; END IF;
            END LOOP;
        END $$;

        -- Shrinks the files of default partitions without rows, up to this size: no partitions are made while they are
        -- large, and DELETE leaves their pages. A query that sees rows where they were before a move must have locked
        -- the table by now, so this comes in a later transaction than the move.
        CREATE OR REPLACE FUNCTION gattherd.shrink_others(most bigint) RETURNS void
        LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
        DECLARE
            other text;
            is_used boolean;
        BEGIN
            FOREACH other IN ARRAY ARRAY['sample_other', 'minute_other', 'reception_other', 'duplicate_other'] LOOP
                CONTINUE WHEN pg_relation_size('gattherd.' || other) NOT BETWEEN 16777216 AND most;
                EXECUTE format('SELECT EXISTS (SELECT FROM gattherd.%I)', other) INTO is_used;
                CONTINUE WHEN is_used;
                EXECUTE format('LOCK TABLE gattherd.%I IN ACCESS EXCLUSIVE MODE', other);
                EXECUTE format('SELECT EXISTS (SELECT FROM gattherd.%I)', other) INTO is_used;
                IF NOT is_used THEN EXECUTE format('TRUNCATE gattherd.%I', other); END IF;
            END LOOP;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN RETURN;
        END $$;

        -- The default partitions whose files keep new partitions from being made. Receptions of wrong clocks may fill
        -- theirs for good, so these count only without rows.
        CREATE OR REPLACE FUNCTION gattherd.large_others() RETURNS TABLE (other text, mib bigint, is_used boolean)
        LANGUAGE plpgsql AS $$
        BEGIN
            FOREACH other IN ARRAY ARRAY['sample_other', 'minute_other', 'reception_other', 'duplicate_other'] LOOP
                CONTINUE WHEN pg_relation_size('gattherd.' || other) <= 33554432;
                mib := pg_relation_size('gattherd.' || other) / 1048576;
                EXECUTE format('SELECT EXISTS (SELECT FROM gattherd.%I)', other) INTO is_used;
                CONTINUE WHEN is_used AND other IN ('reception_other', 'duplicate_other');
                RETURN NEXT;
            END LOOP;
        END $$;
        """#
}
