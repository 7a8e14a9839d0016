/// The views, which are a contract: those of the SQLite file, with the gateway in front.
enum FleetViews {
    static let sql = #"""
        CREATE OR REPLACE VIEW gattherd.history AS
        SELECT g.name AS gateway, s.seq, s.ts, gattherd.rfc3339(s.ts) AS time, q.device, q.profile, q.stream,
            q.metric, s.value,
            q.unit, q.source, s.element, q.kind, s.label, s.whole, j.epoch
        FROM gattherd.sample s
        JOIN gattherd.metric_series q ON q.id = s.series
        JOIN gattherd.journal j ON j.id = s.journal
        JOIN gattherd.gateway g ON g.id = j.gateway;

        -- All rows, as the gateways have them.
        CREATE OR REPLACE VIEW gattherd.gateway_history AS
        SELECT g.name AS gateway, s.seq, s.ts, gattherd.rfc3339(s.ts) AS time, q.device, q.profile, q.stream,
            q.metric, s.value,
            q.unit, q.source, s.element, q.kind, s.label, s.whole, j.epoch
        FROM (TABLE gattherd.sample UNION ALL TABLE gattherd.duplicate) AS s
        JOIN gattherd.metric_series q ON q.id = s.series
        JOIN gattherd.journal j ON j.id = s.journal
        JOIN gattherd.gateway g ON g.id = j.gateway;

        CREATE OR REPLACE VIEW gattherd.receptions AS
        SELECT g.name AS gateway, r.seq, r.ts, gattherd.rfc3339(r.ts) AS time, a.device, a.profile, a.stream, r.rssi,
            f.name AS reading_gateway, r.first_seq AS reading_seq, i.epoch AS reading_epoch, j.epoch
        FROM gattherd.reception r
        JOIN gattherd.air a ON a.id = r.air
        JOIN gattherd.journal j ON j.id = r.journal
        JOIN gattherd.gateway g ON g.id = j.gateway
        JOIN gattherd.journal i ON i.id = r.first_journal
        JOIN gattherd.gateway f ON f.id = i.gateway;

        -- One row for each metric of a stream of a gateway's device; of advertisements, that of the gateway which heard
        -- it last. A clock that is wrong by more than a minute is put right first. Times of the future were stored
        -- before a clock was set back, and count as older than all others.
        CREATE OR REPLACE VIEW gattherd.latest AS
        SELECT DISTINCT ON (l.owner, l.address, l.device, l.stream, l.metric) l.gateway, l.seq, l.ts, l.time, l.device,
            l.profile, l.stream, l.metric, l.value, l.unit, l.source, l.element, l.kind, l.label, l.whole, l.epoch
        FROM (
            SELECT DISTINCT ON (g.id, q.device, q.stream, q.metric) g.name AS gateway, h.seq, h.ts,
                gattherd.rfc3339(h.ts) AS time, q.device, q.profile, q.stream, q.metric, h.value, q.unit, q.source,
                h.element, q.kind, h.label, h.whole, j.epoch,
                CASE WHEN q.air IS NULL OR q.metric = 'rssi' THEN g.id END AS owner,
                coalesce(d.address,
                    (SELECT min(e.address) FROM gattherd.device e WHERE e.device = q.device)) AS address,
                c.moment, c.moment > extract(epoch FROM now()) * 1e6 + 6e7 AS is_ahead
            FROM gattherd.head h
            JOIN gattherd.metric_series q ON q.id = h.series
            JOIN gattherd.journal j ON j.id = h.journal
            JOIN gattherd.gateway g ON g.id = j.gateway
            LEFT JOIN gattherd.device d ON d.gateway = g.id AND d.device = q.device
            CROSS JOIN LATERAL (
                SELECT h.ts - CASE WHEN abs(g.clock_offset) > 60 THEN g.clock_offset * 1e6 ELSE 0 END AS moment
            ) AS c
            ORDER BY g.id, q.device, q.stream, q.metric, is_ahead, moment DESC, h.journal DESC, h.seq DESC
        ) AS l
        ORDER BY l.owner, l.address, l.device, l.stream, l.metric, l.is_ahead, l.moment DESC, l.gateway;

        CREATE OR REPLACE VIEW gattherd.series AS
        SELECT g.name AS gateway, q.device, q.profile, q.stream, q.metric, q.unit, q.kind,
            gattherd.rfc3339(min(q.first_ts)) AS first, gattherd.rfc3339(max(h.ts)) AS last,
            min(q.first_ts) AS first_ts, max(h.ts) AS last_ts
        FROM gattherd.metric_series q JOIN gattherd.gateway g ON g.id = q.gateway
            JOIN gattherd.head h ON h.series = q.id
        GROUP BY g.name, q.device, q.profile, q.stream, q.metric, q.unit, q.kind;

        CREATE OR REPLACE VIEW gattherd.history_minutes AS
        SELECT g.name AS gateway, m.ts, gattherd.rfc3339(m.ts) AS time, q.device, q.metric, q.unit, m.n, m.min,
            gattherd.mean(m.sum, m.n) AS mean, m.max, q.stream
        FROM gattherd.minute m JOIN gattherd.quantity q ON q.id = m.quantity
            JOIN gattherd.gateway g ON g.id = q.gateway;

        CREATE OR REPLACE VIEW gattherd.history_hours AS
        SELECT g.name AS gateway, m.ts, gattherd.rfc3339(m.ts) AS time, q.device, q.metric, q.unit, m.n, m.min,
            gattherd.mean(m.sum, m.n) AS mean, m.max, q.stream
        FROM gattherd.hour m JOIN gattherd.quantity q ON q.id = m.quantity
            JOIN gattherd.gateway g ON g.id = q.gateway;

        CREATE OR REPLACE VIEW gattherd.devices AS
        SELECT g.name AS gateway, w.device, d.address, d.name,
            coalesce(nullif(d.profiles, ''), s.profiles, '') AS profiles,
            gattherd.rfc3339(least(d.first_seen, s.first_ts)) AS first_seen,
            gattherd.rfc3339(greatest(d.last_seen, s.last_ts)) AS last_seen
        FROM (
            SELECT q.gateway, q.device FROM gattherd.metric_series q
            UNION SELECT d.gateway, d.device FROM gattherd.device d
        ) AS w
        JOIN gattherd.gateway g ON g.id = w.gateway
        LEFT JOIN gattherd.device d ON d.gateway = w.gateway AND d.device = w.device
        LEFT JOIN (
            SELECT q.gateway, q.device, string_agg(DISTINCT q.profile, ',') AS profiles, min(q.first_ts) AS first_ts,
                max(h.ts) AS last_ts
            FROM gattherd.metric_series q LEFT JOIN gattherd.head h ON h.series = q.id GROUP BY 1, 2
        ) AS s ON s.gateway = w.gateway AND s.device = w.device;

        CREATE OR REPLACE VIEW gattherd.events AS
        SELECT g.name AS gateway, e.ts, gattherd.rfc3339(e.ts) AS time, e.device, e.kind, e.detail
        FROM gattherd.event e JOIN gattherd.journal j ON j.id = e.journal JOIN gattherd.gateway g ON g.id = j.gateway;

        CREATE OR REPLACE VIEW gattherd.rejects AS
        SELECT g.name AS gateway, x.ts, gattherd.rfc3339(x.ts) AS time, x.device, x.characteristic,
            encode(x.octets, 'hex') AS bytes, x.reason
        FROM gattherd.reject x JOIN gattherd.journal j ON j.id = x.journal
            JOIN gattherd.gateway g ON g.id = j.gateway;

        CREATE OR REPLACE VIEW gattherd.gateways AS
        SELECT g.name AS gateway, g.version, g.last_seen, j.epoch, j.cursor, g.head, greatest(0,
            g.head - j.cursor) AS lag,
            g.clock_offset, g.errors,
            (SELECT count(DISTINCT q.device) FROM gattherd.metric_series q WHERE q.gateway = g.id) AS devices,
            (SELECT count(*) FROM gattherd.gap p JOIN gattherd.journal o ON o.id = p.journal
                WHERE o.gateway = g.id) AS gaps,
            coalesce(
                (SELECT 'removed' FROM pg_catalog.pg_roles o WHERE o.rolname = g.role AND NOT o.rolcanlogin),
                (SELECT 'several gateways have this name' FROM gattherd.run r
                    WHERE r.gateway = g.id AND r.since = 'infinity' AND r.seen
                        BETWEEN now() - interval '6 minutes' AND now() + interval '1 minute' LIMIT 1)) AS problem
        FROM gattherd.gateway g
        LEFT JOIN LATERAL (SELECT * FROM gattherd.journal j WHERE j.gateway = g.id
            ORDER BY j.since DESC, j.id DESC LIMIT 1) AS j ON true;

        CREATE OR REPLACE VIEW gattherd.gaps AS
        SELECT g.name AS gateway, j.epoch, p.after, p.through, p.reason, p.found
        FROM gattherd.gap p JOIN gattherd.journal j ON j.id = p.journal JOIN gattherd.gateway g ON g.id = j.gateway;
        """#
}
