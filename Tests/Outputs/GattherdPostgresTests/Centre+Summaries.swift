import Testing

extension Centre {
    /// The sums of minutes and hours that belong to the rows, to compare with the stored ones.
    private func difference(_ span: String, _ length: Int64) -> String {
        """
        WITH expected AS (
            SELECT gateway, gattherd.floored(ts, \(length)) AS ts, device, metric, count(*) AS n,
                min(value) AS min, max(value) AS max
            FROM gattherd.history WHERE value IS NOT NULL GROUP BY 1, 2, 3, 4
        ), stored AS (SELECT gateway, ts, device, metric, n, min, max FROM gattherd.history_\(span))
        SELECT count(*) FROM ((TABLE expected EXCEPT TABLE stored) UNION ALL (TABLE stored EXCEPT TABLE expected)) AS d
        """
    }

    func expectSummaries() async throws {
        #expect(try await value(difference("minutes", 60_000_000)) == "0")
        #expect(try await value(difference("hours", 3_600_000_000)) == "0")
        let means = """
            SELECT count(*) FROM gattherd.history_hours h WHERE abs(mean - (
                SELECT avg(value) FROM gattherd.history s WHERE s.gateway = h.gateway AND s.device = h.device
                    AND s.metric = h.metric AND s.ts >= h.ts AND s.ts < h.ts + 3600000000
            )) > 1e-9
            """
        #expect(try await value(means) == "0")
    }
}
