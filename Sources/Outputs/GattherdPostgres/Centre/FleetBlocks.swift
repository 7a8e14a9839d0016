/// Partitions by time, made on demand.
enum FleetBlocks {
    static let sql = #"""
        -- The times that have partitions by day: those of clocks that are right, or wrong by a year at most.
        CREATE OR REPLACE FUNCTION gattherd.near(OUT low bigint, OUT high bigint) LANGUAGE sql STABLE AS $$
            SELECT (d.today - 400) * 86400000000, (d.today + 4) * 86400000000 - 1
            FROM (SELECT floor(extract(epoch FROM now()) / 86400)::bigint AS today) AS d
        $$;

        -- Makes the partition of a table for the block that contains a moment, and moves its rows out of the default
        -- partition. They stay there for now if the default partition has more bytes than may be read meanwhile, or
        -- if somebody holds it for long. Returns false in the latter case.
        CREATE OR REPLACE FUNCTION gattherd.make_block(parent text, moment bigint, most bigint) RETURNS boolean
        LANGUAGE plpgsql AS $$
        DECLARE
            length bigint := CASE parent WHEN 'minute' THEN 30 * 86400000000 ELSE 86400000000 END;
            start bigint := gattherd.floored(moment, length);
            near record;
            name text;
            patience text := current_setting('lock_timeout');
            is_free boolean := true;
        BEGIN
            SELECT * INTO near FROM gattherd.near();
            IF moment NOT BETWEEN near.low AND near.high + 11 * 86400000000 THEN RETURN true; END IF;
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

        -- Moves rows to partitions that could not be made when the rows came. PostgreSQL reads the default partition for
        -- each of them: receptions of wrong clocks, which are there too, must not let an upgrade take hours.
        CREATE OR REPLACE FUNCTION gattherd.move_stranded(most bigint) RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE
            parent text;
            size bigint;
            days bigint[];
            day bigint;
        BEGIN
            FOREACH parent IN ARRAY ARRAY['sample', 'minute', 'reception', 'duplicate'] LOOP
                size := CASE WHEN parent IN ('sample', 'minute') THEN most ELSE least(most, 268435456) END;
                CONTINUE WHEN pg_relation_size('gattherd.' || parent || '_other') > size;
                EXECUTE format('SELECT coalesce(array_agg(DISTINCT gattherd.floored(o.ts, 86400000000)), ''{}'') '
                    'FROM gattherd.%I o', parent || '_other') INTO days;
                FOREACH day IN ARRAY days LOOP
                    EXIT WHEN NOT gattherd.make_block(parent, day, size);
                END LOOP;
            END LOOP;
        END $$;
        """#
}
