import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetUpkeepTests {
    private static let day: Int64 = 86_400_000_000
    private static let blocks = "SELECT count(*) FROM pg_class WHERE relname ~ '^sample_[0-9]{8}$' AND relkind = 'r'"

    private static func now(_ centre: Centre) async throws -> Int64 {
        try #require(Int64(try await centre.value("SELECT floor(extract(epoch FROM now()) * 1000000)")))
    }

    /// Delivers a reading for each of the last days.
    private static func deliverDays(_ count: Int64, to centre: Centre) async throws {
        let now = try await now(centre)
        let entries = (1...count).map { seq in
            Entries.reading(seq, at: Timestamp(microseconds: now - (count - seq) * day), (0, .integer(seq)))
        }
        try await centre.sink(of: "attic").deliver(entries)
    }

    /// Lets everything have arrived a long time ago, and the retention be due.
    private static func age(_ centre: Centre, by days: Int) async throws {
        _ = try await centre.rows(
            """
            UPDATE gattherd.extent SET came = came - interval '\(days) days';
            UPDATE gattherd.event SET came = came - interval '\(days) days';
            UPDATE gattherd.reject SET came = came - interval '\(days) days';
            UPDATE gattherd.upkeep SET done = '-infinity'
            """
        )
    }

    private static func maintain(_ centre: Centre) async throws -> Bool {
        try await centre.value("SELECT gattherd.maintain()") == "t"
    }

    /// Takes all steps of the retention.
    private static func maintainAll(_ centre: Centre) async throws {
        _ = try await centre.rows("UPDATE gattherd.upkeep SET done = '-infinity'")
        for _ in 0..<200 where try await !maintain(centre) { return }
        Issue.record("the retention never ends")
    }

    @Test func `a partition into which old rows are just being inserted is not dropped`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        _ = try await centre.rows("UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples'")
        let names = "SELECT relname FROM pg_class WHERE relname ~ '^sample_[0-9]{8}$' ORDER BY 1 LIMIT 1"
        let oldest = try await centre.value(names)
        let gateway = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await gateway.run("BEGIN")
        let time = try await Self.now(centre) - 5 * Self.day
        _ = try await gateway.run("INSERT INTO gattherd.extent VALUES (1, 100, 100, \(time), \(time))")
        _ = try await gateway.run("INSERT INTO gattherd.sample VALUES (\(time), 100, 1, 1, 1)")
        async let isDropped = centre.value("SELECT gattherd.drop_block()")
        while try await centre.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {}
        _ = try await gateway.run("COMMIT")
        #expect(try await isDropped == "t", "more is to do")
        #expect(try await centre.value(names) == oldest)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history WHERE seq = 100") == "1")
        gateway.close()
    }

    @Test(arguments: ["REPEATABLE READ", "SERIALIZABLE"])
    func `the retention does nothing in a transaction that does not see what arrives`(level: String) async throws {
        let centre = try await Centre()
        let client = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await client.run("BEGIN ISOLATION LEVEL \(level)")
        #expect(try await client.run("SELECT gattherd.maintain()") == [["f"]])
        _ = try await client.run("COMMIT")
        #expect(try await client.run("SELECT gattherd.maintain()") == [["t"]], "it is due")
        client.close()
    }

    @Test func `the retention does not deadlock with a gateway that is about to insert`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        _ = try await centre.rows("UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples'")
        let count = try #require(Int(try await centre.value(Self.blocks)))
        let gateway = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await gateway.run("BEGIN")
        _ = try await gateway.run("LOCK TABLE gattherd.sample_other IN ROW EXCLUSIVE MODE")
        async let isDropped = centre.value("SELECT gattherd.drop_block()")
        while try await centre.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {}
        let time = try await Self.now(centre)
        _ = try await gateway.run("INSERT INTO gattherd.sample VALUES (\(time), 100, 1, 1, 1)")
        _ = try await gateway.run("COMMIT")
        #expect(try await isDropped == "t")
        #expect(try await centre.value(Self.blocks) == "\(count - 1)")
        gateway.close()
    }

    @Test func `rows that are kept for a million years do not stop the retention of others`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        _ = try await centre.rows(
            """
            UPDATE gattherd.retention
            SET keep = CASE kind WHEN 'samples' THEN interval '3 days' ELSE '1000000 years' END
            """
        )
        try await Self.maintainAll(centre)
        #expect(try await centre.value("SELECT count(*) <= 4 FROM gattherd.history") == "t")
        #expect(try await centre.value("SELECT sum(n) FROM gattherd.history_minutes") == "6")
        _ = try await centre.rows("UPDATE gattherd.retention SET keep = '1000000 years'")
        try await Self.maintainAll(centre)
    }

    @Test func `the retention leaves a partition that a person has detached`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        let days = try await centre.rows(
            "SELECT relname FROM pg_class WHERE relname ~ '^sample_[0-9]{8}$' ORDER BY 1 LIMIT 2"
        )
        let (detached, next) = (try #require(days.first?.first), try #require(days.last?.first))
        _ = try await centre.rows(
            """
            ALTER TABLE gattherd.sample_near DETACH PARTITION gattherd.\(detached);
            UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples'
            """
        )
        try await Self.maintainAll(centre)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.\(detached)") == "1")
        #expect(try await centre.value("SELECT to_regclass('gattherd.\(next)') IS NULL") == "t")
    }

    @Test func `the retention passes over a foreign table in place of a partition`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        let days = try await centre.rows(
            "SELECT relname FROM pg_class WHERE relname ~ '^sample_[0-9]{8}$' ORDER BY 1 LIMIT 2"
        )
        let (foreign, next) = (try #require(days.first?.first), try #require(days.last?.first))
        let bounds = "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = '\(foreign)'"
        let span = try await centre.value(bounds)
        _ = try await centre.rows(
            """
            CREATE FOREIGN DATA WRAPPER archive;
            CREATE SERVER archive FOREIGN DATA WRAPPER archive;
            DROP TABLE gattherd.\(foreign);
            CREATE FOREIGN TABLE gattherd.\(foreign) PARTITION OF gattherd.sample_near \(span) SERVER archive;
            UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples'
            """
        )
        try await Self.maintainAll(centre)
        #expect(try await centre.value("SELECT to_regclass('gattherd.\(next)') IS NULL") == "t")
    }

    @Test func `one gateway claims the retention before it deletes`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        _ = try await centre.rows("UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples'")
        var clients: [PostgresClient] = []
        for name in ["attic", "cellar"] {
            let credentials = try await centre.fleet.add(gateway: name)
            let url = try Centre.url(centre.server.port)
            clients.append(PostgresClient(url, user: credentials.role) { credentials.password })
        }
        let before = try await centre.value(Self.blocks)
        let call = "SELECT gattherd.maintain()"
        #expect(try await clients[0].run(call) == [["t"]])
        #expect(try await centre.value(Self.blocks) == before)
        #expect(try await centre.value("SELECT done > now() - interval '1 hour' FROM gattherd.upkeep") == "t")
        #expect(try await clients[1].run(call) == [["f"]])
        while try await clients[0].run(call) == [["t"]] {}
        #expect(try await centre.value("SELECT count(*) <= 4 FROM gattherd.history") == "t")
        #expect(try await clients[0].run(call) == [["f"]])
    }

    @Test func `the retention deletes also if making partitions ahead fails`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        _ = try await centre.rows(
            """
            UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples';
            CREATE OR REPLACE FUNCTION gattherd.make_blocks_ahead() RETURNS void LANGUAGE plpgsql AS
                'BEGIN RAISE EXCEPTION ''too late''; END'
            """
        )
        while (try? await Self.maintain(centre)) == true {}
        #expect(try await centre.value("SELECT count(*) <= 4 FROM gattherd.history") == "t")
    }

    @Test func `each step drops one partition or deletes a limited number of rows`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.event SELECT 1, n, n, NULL, 'daemon', '' FROM generate_series(100, 25100) AS n;
            INSERT INTO gattherd.reject SELECT 1, n, n, 'd', 'c', '', '' FROM generate_series(100, 25100) AS n;
            INSERT INTO gattherd.hour SELECT 1, n * 3600000000, 1, 1, 1, 1 FROM generate_series(1, 25000) AS n;
            UPDATE gattherd.retention SET keep = '3 days'
            """
        )
        try await Self.age(centre, by: 30)
        let state = """
            SELECT (\(Self.blocks)), (SELECT count(*) FROM gattherd.event), (SELECT count(*) FROM gattherd.reject),
                (SELECT count(*) FROM gattherd.hour)
            """
        var before: [Int]?
        var isLeft = true
        while isLeft {
            isLeft = try await Self.maintain(centre)
            let now = try await centre.rows(state).joined().compactMap { Int($0) }
            if let before, now.first ?? 0 <= before.first ?? 0 {
                let changes = zip(before, now).map { $0 - $1 }
                #expect(changes[0] <= 1 && changes[1...].allSatisfy { $0 <= 10_000 }, "\(changes)")
                #expect(changes.count { $0 > 0 } <= 1, "\(changes)")
            }
            before = now
        }
        #expect(before?[1] == 0 && before?[2] == 0)
        #expect(try await centre.value("SELECT min(ts) > 25000 * 3600000000 FROM gattherd.hour") == "t")
    }

    @Test func `a step reads only the rows that it deletes`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        let now = try await Self.now(centre)
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.extent SELECT 2, n * 10, n * 10 + 9, \(now) - n * 1000, \(now) - n * 1000
            FROM generate_series(1, 300000) AS n;
            INSERT INTO gattherd.hour SELECT 1, \(now) / 3600000000 * 3600000000 - n * 3600000000, 1, 1, 1, 1
            FROM generate_series(1000, 300000) AS n;
            UPDATE gattherd.retention SET keep = '100 years' WHERE kind = 'hours'; ANALYZE gattherd.extent, gattherd.hour
            """
        )
        _ = try await centre.rows("UPDATE gattherd.upkeep SET done = '-infinity'")
        let reads = try await centre.rows(
            """
            BEGIN; DO $$ BEGIN PERFORM gattherd.maintain(); PERFORM gattherd.maintain(); END $$;
            SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables
            WHERE relname IN ('extent', 'hour', 'event', 'reject') OR relname LIKE 'sample%'; COMMIT
            """
        )
        let count = try #require(reads.first?.first.flatMap { Int($0) })
        #expect(count < 50_000)
    }

    @Test func `partitions end at midnight UTC in each time zone of the session`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        // The retention reaches to 23:00 UTC of the day three days ago.
        _ = try await centre.rows(
            """
            UPDATE gattherd.retention SET keep = now() - (date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
                - interval '2 days 1 hour') WHERE kind = 'samples';
            ALTER DATABASE fleet SET timezone = 'Pacific/Kiritimati'
            """
        )
        try await Self.maintainAll(centre)
        let days = "SELECT count(DISTINCT floor(ts / \(Self.day))) FROM gattherd.history"
        #expect(try await centre.value(days) == "4")
    }

    @Test func `gateways delete until nothing is left`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(9, to: centre)
        try await Self.age(centre, by: 30)
        _ = try await centre.rows("UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples'")
        let cellar = try await centre.sink(of: "cellar")
        let old = "SELECT count(*) > 4 FROM gattherd.history WHERE gateway = 'attic'"
        for end in 1...100 where try await centre.value(old) == "t" {
            try await cellar.deliver(Entries.numbered(1...Int64(end)))
        }
        #expect(try await centre.value(old) == "f")
    }

    @Test func `a centre whose clock is ahead of the gateway's deletes nothing for a week`() async throws {
        let centre = try await Centre()
        try await Self.deliverDays(6, to: centre)
        try await Self.age(centre, by: 30)
        _ = try await centre.rows("UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples'")
        let credentials = try await centre.fleet.add(gateway: "attic")
        let client = PostgresClient(try Centre.url(centre.server.port), user: credentials.role) { credentials.password }
        func maintain(_ offset: Int) async throws -> String? {
            _ = try await centre.rows("UPDATE gattherd.gateway SET clock_offset = \(offset)")
            return try await client.run("SELECT gattherd.maintain()").first?.first ?? nil
        }
        let done = "SELECT done > now() - interval '1 hour' FROM gattherd.upkeep WHERE task = 'retention'"
        #expect(try await maintain(-90_000) == "f")
        #expect(try await maintain(5) == "t")
        #expect(try await centre.value(done) == "t")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.upkeep") == "1")
        try await Self.age(centre, by: 0)
        #expect(try await maintain(-90_000) == "f")
        #expect(try await centre.value(done) == "f")
        _ = try await centre.rows("UPDATE gattherd.upkeep SET done = now() - interval '8 days' WHERE task = 'doubt'")
        #expect(try await maintain(-90_000) == "t", "the clocks have differed for a week")
    }

    @Test func `the retention is due again after the clock of the centre was set back`() async throws {
        let centre = try await Centre()
        _ = try await centre.rows("UPDATE gattherd.upkeep SET done = now() + interval '1 year', claimed_by = 'other'")
        #expect(try await Self.maintain(centre))
        #expect(try await centre.value("SELECT done <= now() FROM gattherd.upkeep") == "t")
    }

    @Test func `leases without bids for a month are deleted, except those with a list of gateways`() async throws {
        let centre = try await Centre()
        _ = try await centre.fleet.add(gateway: "attic")
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.lease (address, device, owner, expires, gateways) VALUES
                ('old', 'a', 1, now() - interval '31 days', NULL), ('silent', 'b', 1, now() - interval '31 days', NULL),
                ('listed', 'c', NULL, 'epoch', '{attic}'), ('heard', 'd', NULL, 'epoch', NULL),
                ('owned', 'e', 1, now(), NULL);
            INSERT INTO gattherd.lease_bid (address, gateway, device, standing, updated) VALUES
                ('silent', 1, 'b', 'gone', now() - interval '31 days'), ('heard', 1, 'd', 'steady', now())
            """
        )
        try await Self.maintainAll(centre)
        let left = try await centre.rows("SELECT address FROM gattherd.lease ORDER BY 1")
        #expect(left == [["heard"], ["listed"], ["owned"]])
        #expect(try await centre.value("SELECT count(*) FROM gattherd.lease_bid") == "1")
    }

    @Test func `rows of a wrong clock wait for their correction`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let now = try await Self.now(centre)
        let far = Timestamp(microseconds: 1_600_000_000_000_000)
        let near = Timestamp(microseconds: now - 380 * Self.day)
        let shifts: [Duration] = [.microseconds(now - 1_600_000_000_000_000), .microseconds(380 * Self.day)]
        var entries = Entries.numbered(1...100, from: far)
        entries += [
            .event(LifecycleEvent(time: far, device: nil, kind: "daemon", detail: "{}"), seq: 101),
            .reject(
                Reject(time: far, device: "strap", characteristic: "2a37", payload: [0], reason: "short"),
                seq: 102
            ),
        ]
        entries += Entries.numbered(103...200, from: near)
        try await sink.deliver(entries)
        try await Self.maintainAll(centre)
        try await sink.deliver([
            .correction(ClockCorrection(after: 0, through: 102, shift: shifts[0]), seq: 201),
            .correction(ClockCorrection(after: 102, through: 200, shift: shifts[1]), seq: 202),
        ])
        let recent = "ts BETWEEN \(now) AND \(now) + 10000000"
        for (view, count) in [("history", "198"), ("events", "1"), ("rejects", "1"), ("latest", "1")] {
            #expect(try await centre.value("SELECT count(*) FROM gattherd.\(view) WHERE \(recent)") == count, "\(view)")
        }
        try await Self.maintainAll(centre)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "198")
        #expect(try await centre.value("SELECT sum(n) FROM gattherd.history_minutes") == "198")
    }

    @Test func `rows that came while the clock of the centre was behind stay as long as others`() async throws {
        let centre = try await Centre()
        let start = Timestamp(microseconds: try await Self.now(centre) - 5 * Self.day)
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...300, from: start))
        // By that clock their times were far ahead.
        _ = try await centre.rows("UPDATE gattherd.sample SET far = true")
        for (keep, count) in [("10 days", "300"), ("3 days", "0")] {
            _ = try await centre.rows("UPDATE gattherd.retention SET keep = '\(keep)' WHERE kind = 'samples'")
            try await Self.age(centre, by: 30)
            try await Self.maintainAll(centre)
            #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == count)
        }
    }

    @Test(arguments: [1_600_000_000_000_000, 4_000_000_000_000_000] as [Int64])
    func `rows of a wrong clock are deleted when their arrival is too old`(start: Int64) async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let time = Timestamp(microseconds: start)
        try await sink.deliver(
            Entries.numbered(1...300, from: time) + [
                .event(LifecycleEvent(time: time, device: nil, kind: "daemon", detail: "{}"), seq: 301)
            ]
        )
        for days in [364, 2] {
            try await Self.age(centre, by: days)
            try await Self.maintainAll(centre)
            let left = days == 364
            for view in ["history", "history_minutes", "events", "latest"] {
                let isThere = try await centre.value("SELECT count(*) > 0 FROM gattherd.\(view)")
                #expect(isThere == (left ? "t" : "f"), "\(view)")
            }
        }
        #expect(try await centre.value("SELECT count(*) FROM gattherd.extent") == "0")
    }

    @Test(arguments: [1_600_000_000_000_000, 4_000_000_000_000_000] as [Int64])
    func `receptions of a wrong clock are deleted when their arrival is too old`(start: Int64) async throws {
        let centre = try await Centre()
        for gateway in ["attic", "cellar"] {
            let sink = try await centre.sink(of: gateway)
            try await sink.deliver([Entries.heard(1, at: Timestamp(microseconds: start), 20)])
        }
        for (days, counts) in [(364, ["2", "1"]), (2, ["0", "0"])] {
            try await Self.age(centre, by: days)
            try await Self.maintainAll(centre)
            let tables = "(SELECT count(*) FROM gattherd.reception), (SELECT count(*) FROM gattherd.duplicate)"
            #expect(try await centre.rows("SELECT \(tables)") == [counts])
        }
    }
}
