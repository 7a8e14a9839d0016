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

        CREATE OR REPLACE VIEW gattherd.latest AS
        SELECT DISTINCT ON (g.id, q.device, q.metric) g.name AS gateway, h.seq, h.ts,
            gattherd.rfc3339(h.ts) AS time, q.device,
            q.profile, q.stream, q.metric, h.value, q.unit, q.source, h.element, q.kind, h.label, h.whole, j.epoch
        FROM gattherd.head h
        JOIN gattherd.metric_series q ON q.id = h.series
        JOIN gattherd.journal j ON j.id = h.journal
        JOIN gattherd.gateway g ON g.id = j.gateway
        ORDER BY g.id, q.device, q.metric, h.journal DESC, h.seq DESC;

        CREATE OR REPLACE VIEW gattherd.series AS
        SELECT g.name AS gateway, q.device, q.profile, q.stream, q.metric, q.unit, q.kind,
            gattherd.rfc3339(min(q.first_ts)) AS first, gattherd.rfc3339(max(h.ts)) AS last,
            min(q.first_ts) AS first_ts, max(h.ts) AS last_ts
        FROM gattherd.metric_series q JOIN gattherd.gateway g ON g.id = q.gateway
            JOIN gattherd.head h ON h.series = q.id
        GROUP BY g.name, q.device, q.profile, q.stream, q.metric, q.unit, q.kind;

        CREATE OR REPLACE VIEW gattherd.history_minutes AS
        SELECT g.name AS gateway, m.ts, gattherd.rfc3339(m.ts) AS time, q.device, q.metric, q.unit, m.n, m.min,
            gattherd.mean(m.sum, m.n) AS mean, m.max
        FROM gattherd.minute m JOIN gattherd.quantity q ON q.id = m.quantity
            JOIN gattherd.gateway g ON g.id = q.gateway;

        CREATE OR REPLACE VIEW gattherd.history_hours AS
        SELECT g.name AS gateway, m.ts, gattherd.rfc3339(m.ts) AS time, q.device, q.metric, q.unit, m.n, m.min,
            gattherd.mean(m.sum, m.n) AS mean, m.max
        FROM gattherd.hour m JOIN gattherd.quantity q ON q.id = m.quantity
            JOIN gattherd.gateway g ON g.id = q.gateway;

        CREATE OR REPLACE VIEW gattherd.devices AS
        SELECT g.name AS gateway, q.device, NULL::text AS address, NULL::text AS name,
            string_agg(DISTINCT q.profile, ',') AS profiles, gattherd.rfc3339(min(q.first_ts)) AS first_seen,
            gattherd.rfc3339(max(h.ts)) AS last_seen
        FROM gattherd.metric_series q JOIN gattherd.gateway g ON g.id = q.gateway LEFT
            JOIN gattherd.head h ON h.series = q.id
        GROUP BY g.name, q.device;

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
                WHERE o.gateway = g.id) AS gaps
        FROM gattherd.gateway g
        LEFT JOIN LATERAL (SELECT * FROM gattherd.journal j WHERE j.gateway = g.id
            ORDER BY j.id DESC LIMIT 1) AS j ON true;

        CREATE OR REPLACE VIEW gattherd.gaps AS
        SELECT g.name AS gateway, j.epoch, p.after, p.through, p.reason, p.found
        FROM gattherd.gap p JOIN gattherd.journal j ON j.id = p.journal JOIN gattherd.gateway g ON g.id = j.gateway;
        """#
}
