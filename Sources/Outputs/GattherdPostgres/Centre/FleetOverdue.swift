/// Work at the centre that gateways should have done by now.
enum FleetOverdue {
    static let sql = #"""
        -- Corrections that a day of newer entries has not seen applied, and partitions that the retention should have
        -- dropped for a day. A correction is older than the rows that came after it.
        CREATE OR REPLACE FUNCTION gattherd.overdue() RETURNS TABLE (task text, subject text, count bigint)
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
            SELECT 'correction', g.name, count(*)
            FROM gattherd.correction c JOIN gattherd.journal j ON j.id = c.journal
                JOIN gattherd.gateway g ON g.id = j.gateway
            WHERE EXISTS (SELECT FROM gattherd.extent e WHERE e.journal = c.journal AND e.first > c.seq
                AND e.came < now() - interval '1 day')
            GROUP BY g.name
            UNION ALL
            SELECT 'retention', min(b.name), count(*) FROM gattherd.blocks() b
            CROSS JOIN LATERAL (SELECT gattherd.keep_from(b.kind) - interval '1 day' AS cutoff) AS k
            WHERE b.until <= gattherd.micros(k.cutoff)
                AND NOT (b.kind = 'samples' AND gattherd.has_arrivals(b.since, b.until, k.cutoff))
            HAVING count(*) > 0
            ORDER BY 1, 2
        $$;
        """#
}

extension FleetDatabase {
    /// Returns the overdue work in words; nothing for a role that may not call the function.
    package func overdueWork() async throws(Failure) -> [String] {
        let isAllowed = try await rows(
            """
            SELECT 1 FROM pg_catalog.pg_proc p WHERE p.pronamespace = pg_catalog.to_regnamespace('gattherd')::pg_catalog.oid
                AND p.proname = 'overdue' AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
            """
        )
        guard !isAllowed.isEmpty else { return [] }
        return try await rows("SELECT o.task, o.subject, o.count FROM gattherd.overdue() AS o").map { row in
            let texts = row.map { $0 ?? "?" }
            guard texts.count == 3 else { return "the answer is none of gattherd's" }
            return texts[0] == "correction"
                ? "\(texts[2]) clock corrections of the gateway '\(texts[1])' are not applied for more than a day"
                : "\(texts[2]) partitions are older than the retention by more than a day, from gattherd.\(texts[1])"
        }
    }
}
