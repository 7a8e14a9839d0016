import GattherdSync
import TestKit
import Testing

@testable import GattherdPostgres

/// Upgrades of a centre with rows that have no partition.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetUpgradeTests {
    private static let stranded = "SELECT count(*) FROM gattherd.sample_other"
    private static let size = "SELECT pg_relation_size('gattherd.sample_other')"

    /// Inserts rows of past days, for which there are no partitions.
    private static func strand(_ centre: Centre, days: ClosedRange<Int>, rows: Int = 1) async throws {
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.sample_other (ts, seq, value, journal, series)
            SELECT gattherd.micros(now()) - day * 86400000000, n, day, 1, 1
            FROM generate_series(\(days.lowerBound), \(days.upperBound)) AS day, generate_series(1, \(rows)) AS n
            """
        )
    }

    @Test func `an upgrade that moves no row in its time has upgraded the schema`() async throws {
        let centre = try await Centre()
        try await Self.strand(centre, days: 11...40)
        let version = FleetDatabase.steps.count + 1
        let steps = FleetDatabase.steps + ["ALTER TABLE gattherd.gateway ADD place text"]
        let result = try await centre.fleet.install(isNew: false, steps: steps, limit: .zero)
        #expect(result.before == version - 1 && result.now == version && result.unmoved?.days == 30)
        #expect(try await centre.value("SELECT n FROM gattherd.version") == "\(version)")
        #expect(try await centre.value(Self.stranded) == "30")
    }

    @Test func `an upgrade keeps the days that it has moved, and continues when it is repeated`() async throws {
        let centre = try await Centre()
        try await Self.strand(centre, days: 11...40)
        _ = try await centre.rows(
            """
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too late'; END $$;
            CREATE TRIGGER fail BEFORE DELETE ON gattherd.sample_other FOR EACH ROW
                WHEN (old.value IN (20, 30)) EXECUTE FUNCTION fail()
            """
        )
        let moved = Locked<[Int]>([])
        let first = try await centre.fleet.install(
            isNew: false,
            progress: { count, all in moved.withLock { $0.append(count * 100 + all) } }
        )
        #expect(first.unmoved?.days == 2 && first.unmoved?.problem.contains("too late") == true)
        #expect(moved.withLock(\.self) == (1...28).map { $0 * 100 + 30 })
        #expect(try await centre.value(Self.stranded) == "2")
        _ = try await centre.rows("DROP TRIGGER fail ON gattherd.sample_other")
        #expect(try await centre.fleet.install(isNew: false).unmoved == nil)
        #expect(try await centre.value(Self.stranded) == "0")
        #expect(try await centre.value("SELECT count(DISTINCT value) FROM gattherd.sample") == "30")
    }

    @Test func `an upgrade moves rows that come while it moves others`() async throws {
        let centre = try await Centre()
        try await Self.strand(centre, days: 20...20, rows: 800_000)
        _ = try await centre.rows(
            """
            CREATE FUNCTION deliver() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO gattherd.sample_other (ts, seq, value, journal, series)
                VALUES (old.ts - 86400000000, 1, 21, 1, 1);
                RETURN NULL;
            END $$;
            CREATE TRIGGER deliver AFTER DELETE ON gattherd.sample_other FOR EACH ROW
                WHEN (old.value = 20 AND old.seq = 1) EXECUTE FUNCTION deliver()
            """
        )
        let moved = Locked<[Int]>([])
        let result = try await centre.fleet.install(
            isNew: false,
            progress: { count, all in moved.withLock { $0.append(count * 100 + all) } }
        )
        #expect(result.unmoved == nil && moved.withLock(\.self) == [101, 202])
        #expect(try await centre.value(Self.size) == "0")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.sample WHERE value = 21") == "1")
    }

    @Test func `an upgrade moves rows that have become older than 400 days`() async throws {
        let centre = try await Centre()
        try await Self.strand(centre, days: 500...502)
        #expect(try await centre.fleet.install(isNew: false).unmoved == nil)
        #expect(try await centre.value(Self.stranded) == "0")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.sample") == "3")
    }

    @Test func `an upgrade names a default partition that stays large with its rows`() async throws {
        let centre = try await Centre()
        try await Self.strand(centre, days: 20...20, rows: 800_000)
        let name = "to_char((now() - interval '20 days') AT TIME ZONE 'UTC', 'YYYYMMDD')"
        _ = try await centre.rows(
            "DO $$ BEGIN EXECUTE format('CREATE TABLE gattherd.%I ()', 'sample_' || \(name)); END $$"
        )
        let rows = try await centre.fleet.install(isNew: false).unmoved
        #expect(rows?.days == nil && rows?.problem.contains("gattherd.sample_other has rows") == true)
    }

    @Test func `an upgrade says which table without rows a query keeps large`() async throws {
        let centre = try await Centre()
        try await Self.strand(centre, days: 20...20, rows: 800_000)
        _ = try await centre.rows("DELETE FROM gattherd.sample_other")
        let reader = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await reader.run("BEGIN")
        _ = try await reader.run("SELECT count(*) FROM gattherd.sample_other")
        let rows = try await centre.fleet.install(isNew: false).unmoved
        let problem = "a query, or autovacuum, holds gattherd.sample_other"
        #expect(rows == FleetDatabase.UnmovedRows(days: nil, problem: problem))
        reader.close()
        #expect(try await centre.fleet.install(isNew: false).unmoved == nil)
        #expect(try await centre.value(Self.size) == "0")
    }

    @Test func `an upgrade says which table a query holds`() async throws {
        let centre = try await Centre()
        try await Self.strand(centre, days: 20...20)
        let reader = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await reader.run("BEGIN")
        _ = try await reader.run("SELECT count(*) FROM gattherd.sample_other")
        let rows = try await centre.fleet.install(isNew: false).unmoved
        #expect(rows?.days == 1 && rows?.problem == "a query, or autovacuum, holds gattherd.sample_other")
        reader.close()
    }

    @Test func `new partitions are made again once an upgrade has moved the rows of a large default partition`()
        async throws
    {
        let centre = try await Centre()
        try await Self.strand(centre, days: 20...20, rows: 800_000)
        let name = "to_char((now() + interval '1 day') AT TIME ZONE 'UTC', '\"gattherd.sample_\"YYYYMMDD')"
        let tomorrow = "SELECT to_regclass(\(name)) IS NOT NULL"
        _ = try await centre.rows("SELECT gattherd.maintain(), gattherd.maintain()")
        #expect(try await centre.value(tomorrow) == "f", "the file is too large")
        #expect(try await centre.fleet.install(isNew: false).unmoved == nil)
        #expect(try await centre.value(Self.size) == "0")
        _ = try await centre.rows("UPDATE gattherd.upkeep SET done = '-infinity'")
        while try await centre.value("SELECT gattherd.maintain()") == "t" {}
        #expect(try await centre.value(tomorrow) == "t")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.sample") == "800000")
    }

    @Test func `the retention shrinks the file of a default partition whose rows are deleted`() async throws {
        let centre = try await Centre()
        try await Self.strand(centre, days: 20...20, rows: 800_000)
        _ = try await centre.rows("DELETE FROM gattherd.sample_other")
        while try await centre.value("SELECT gattherd.maintain()") == "t" {}
        #expect(try await centre.value(Self.size) == "0")
    }
}
