/// Partitions ahead of time, and the retention of the centre.
enum FleetUpkeep {
    static let sql = #"""
        -- Makes partitions ahead, and drops what is older than the retention, at most once in 6 hours for the whole
        -- fleet.
        CREATE OR REPLACE FUNCTION gattherd.maintain() RETURNS void
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
        DECLARE
            now_ts bigint := floor(extract(epoch FROM clock_timestamp()) * 1000000);
            block record;
            days bigint[] := ARRAY[now_ts, now_ts + 86400000000, now_ts + 2 * 86400000000];
            oldest bigint;
        BEGIN
            PERFORM FROM gattherd.upkeep u WHERE u.task = 'retention' AND u.done < now() - interval '6 hours'
            FOR UPDATE SKIP LOCKED;
            IF NOT FOUND THEN RETURN; END IF;
            UPDATE gattherd.upkeep SET done = now() WHERE task = 'retention';
            PERFORM gattherd.make_blocks(days);
            FOR block IN
                SELECT c.relname AS name, r.kind,
                    floor(extract(epoch FROM now() - r.keep) * 1000000)::bigint AS keep_from,
                    floor(extract(epoch FROM to_timestamp(right(c.relname, 8), 'YYYYMMDD')) * 1000000)::bigint
                        + CASE r.kind WHEN 'samples' THEN 86400000000 ELSE 30 * 86400000000 END AS block_end
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                JOIN gattherd.retention r
                    ON r.kind = CASE WHEN c.relname ~ '^sample_[0-9]{8}$' THEN 'samples' ELSE 'minutes' END
                WHERE n.nspname = 'gattherd' AND c.relkind = 'r' AND c.relname ~ '^(sample|minute)_[0-9]{8}$'
                    AND r.keep IS NOT NULL
            LOOP
                CONTINUE WHEN block.block_end > block.keep_from;
                BEGIN
                    EXECUTE format('DROP TABLE gattherd.%I', block.name);
                EXCEPTION WHEN lock_not_available OR deadlock_detected THEN NULL;
                END;
            END LOOP;
            oldest := (SELECT floor(extract(epoch FROM now() - keep) * 1000000)
                FROM gattherd.retention WHERE kind = 'samples');
            DELETE FROM gattherd.sample_other WHERE ts < oldest;
            DELETE FROM gattherd.head WHERE ts < oldest;
            DELETE FROM gattherd.extent WHERE last_ts < oldest;
            oldest := (SELECT floor(extract(epoch FROM now() - keep) * 1000000)
                FROM gattherd.retention WHERE kind = 'minutes');
            DELETE FROM gattherd.minute_other WHERE ts < oldest;
            oldest := (SELECT floor(extract(epoch FROM now() - keep) * 1000000)
                FROM gattherd.retention WHERE kind = 'hours');
            DELETE FROM gattherd.hour WHERE ts < oldest;
            oldest := (SELECT floor(extract(epoch FROM now() - keep) * 1000000)
                FROM gattherd.retention WHERE kind = 'events');
            DELETE FROM gattherd.event WHERE ts < oldest;
            DELETE FROM gattherd.reject WHERE ts < oldest;
        END $$;
        """#
}
