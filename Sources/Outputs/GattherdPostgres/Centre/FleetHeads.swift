/// The newest row of each series, from which the view `latest` reads.
enum FleetHeads {
    static let sql = #"""
        -- Finds the newest rows of the series whose rows have moved to the times from low to high: a moved row may be
        -- newer than the head now, or a moved head older than another row, with a time up to newest.
        CREATE OR REPLACE FUNCTION gattherd.advance_heads(
            all_series int[], moved int, after bigint, through bigint, low bigint, high bigint, newest bigint
        ) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
        DECLARE
            -- Times of the future do not count against others.
            until bigint := least(newest, gattherd.micros(now() + interval '1 minute'));
            behind int[];
            since bigint;
        BEGIN
            SELECT array_agg(h.series), min(h.ts) INTO behind, since FROM gattherd.head h
            WHERE h.ts < until AND h.series IN (
                SELECT s.series FROM (TABLE gattherd.sample UNION ALL TABLE gattherd.duplicate) AS s
                WHERE s.series = ANY (all_series) AND s.ts BETWEEN low AND high AND s.journal = moved
                    AND s.seq > advance_heads.after AND s.seq <= advance_heads.through
            );
            IF behind IS NULL THEN RETURN; END IF;
            UPDATE gattherd.head h SET journal = n.journal, seq = n.seq, ts = n.ts, value = n.value,
                element = n.element, whole = n.whole, label = n.label
            FROM gattherd.head o CROSS JOIN LATERAL (
                SELECT s.* FROM (TABLE gattherd.sample UNION ALL TABLE gattherd.duplicate) AS s
                WHERE s.series = o.series AND s.ts > o.ts AND s.ts > since AND s.ts <= until
                ORDER BY s.ts DESC, s.journal DESC, s.seq DESC, s.element DESC NULLS LAST LIMIT 1
            ) AS n
            WHERE o.series = ANY (behind) AND h.series = o.series;
        END $$;
        """#
}
