/// Partitions by time, made on demand.
enum FleetBlocks {
    static let sql = #"""
        -- Makes the partition of a table for the block that contains ts, and moves its rows out of the default
        -- partition.
        -- Returns false if it is far from now, or if a reader holds the default partition: rows then go there for
        -- now.
        CREATE OR REPLACE FUNCTION gattherd.make_block(parent text, moment bigint) RETURNS boolean
        LANGUAGE plpgsql AS $$
        DECLARE
            length bigint := CASE parent WHEN 'sample' THEN 86400000000 ELSE 30 * 86400000000 END;
            start bigint := gattherd.floored(moment, length);
            today bigint := floor(extract(epoch FROM now()) * 1000000);
            name text;
            patience text := current_setting('lock_timeout');
        BEGIN
            IF moment < today - 400 * 86400000000 OR moment > today + 3 * 86400000000 THEN RETURN false; END IF;
            name := parent || '_' || to_char(timestamp 'epoch' + start / 1000000 * interval '1 second', 'YYYYMMDD');
            IF to_regclass('gattherd.' || name) IS NOT NULL THEN RETURN true; END IF;
            PERFORM pg_advisory_xact_lock(1195463752, 1);
            -- The look-up above is cached; a query sees what another transaction has committed meanwhile.
            IF EXISTS (
                SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'gattherd' AND c.relname = name
            ) THEN
                RETURN true;
            END IF;
            PERFORM set_config('lock_timeout', '200ms', true);
            BEGIN
                EXECUTE format('LOCK TABLE gattherd.%I IN ACCESS EXCLUSIVE MODE', parent || '_other');
                EXECUTE format('CREATE TABLE gattherd.%I (LIKE gattherd.%I INCLUDING CONSTRAINTS, '
                    'CONSTRAINT block CHECK (ts >= %s AND ts < %s)) %s', name, parent, start, start + length,
                    CASE parent WHEN 'minute' THEN 'WITH (fillfactor = 70)' ELSE '' END);
                EXECUTE format('WITH moved AS (DELETE FROM gattherd.%I WHERE ts >= %s AND ts < %s RETURNING *) '
                    'INSERT INTO gattherd.%I SELECT * FROM moved', parent || '_other', start, start + length, name);
                EXECUTE format('ALTER TABLE gattherd.%I ATTACH PARTITION gattherd.%I FOR VALUES FROM (%s) TO (%s)',
                    parent, name, start, start + length);
                EXECUTE format('ALTER TABLE gattherd.%I DROP CONSTRAINT block', name);
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                PERFORM set_config('lock_timeout', patience, true);
                RETURN false;
            END;
            PERFORM set_config('lock_timeout', patience, true);
            RETURN true;
        END $$;

        CREATE OR REPLACE FUNCTION gattherd.make_blocks(moments bigint[]) RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE day bigint;
        BEGIN
            FOR day IN SELECT DISTINCT gattherd.floored(m, 86400000000) FROM unnest(moments) AS m LIMIT 500 LOOP
                PERFORM gattherd.make_block('sample', day);
                PERFORM gattherd.make_block('minute', day);
            END LOOP;
        END $$;
        """#
}
