import GattherdModel
import GattherdOutputs
import GattherdSync
import TestKit
import Testing

@testable import GattherdPostgres

/// Corrections and the retention of the centre that fail, or are late.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct CentreUpkeepTests {
    private static let blocks = "SELECT count(*) FROM pg_class WHERE relname ~ '^sample_[0-9]{8}$' AND relkind = 'r'"

    private static let correction = JournalEntry.correction(
        ClockCorrection(after: 0, through: 10, shift: .seconds(7)),
        seq: 11
    )

    /// A centre with readings of the last six days, of which half are too old.
    private static func oldCentre() async throws -> Centre {
        let centre = try await Centre()
        let now = try #require(Int64(try await centre.value("SELECT gattherd.micros(now())")))
        let entries = (1...6).map { seq in
            Entries.reading(seq, at: Timestamp(microseconds: now - (6 - seq) * 86_400_000_000), (0, .integer(seq)))
        }
        try await centre.sink(of: "attic").deliver(entries)
        _ = try await centre.rows(
            """
            UPDATE gattherd.extent SET came = came - interval '30 days';
            UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples';
            UPDATE gattherd.upkeep SET done = '-infinity'
            """
        )
        return centre
    }

    private static func maintain(_ centre: Centre) async throws {
        for _ in 0..<100 where try await centre.value("SELECT gattherd.maintain()") == "f" { return }
        Issue.record("the retention never ends")
    }

    @Test func `a gateway drops a partition that a reader held with its next call`() async throws {
        let centre = try await Self.oldCentre()
        let reader = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await reader.run("BEGIN")
        _ = try await reader.run("SELECT count(*) FROM gattherd.sample")
        let before = try #require(Int(try await centre.value(Self.blocks)))
        try await Self.maintain(centre)
        #expect(try await centre.value("SELECT claimed_by FROM gattherd.upkeep") == "postgres")
        _ = try await reader.run("ROLLBACK")
        reader.close()
        try await Self.maintain(centre)
        let after = try #require(Int(try await centre.value(Self.blocks)))
        #expect(after < before)
        #expect(try await centre.value("SELECT claimed_by IS NULL FROM gattherd.upkeep") == "t")
    }

    @Test func `a correction that fails is counted, and reported once`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let failures = Locked<[String]>([])
        let sink = PostgresSink(
            PostgresClient(try Centre.url(centre.server.port), user: credentials.role) { credentials.password },
            url: try Centre.url(centre.server.port),
            gateway: "attic",
            version: "1",
            upkeepFailed: { task, detail in failures.withLock { $0.append("\(task): \(detail)") } }
        )
        _ = try await centre.rows(
            """
            CREATE OR REPLACE FUNCTION gattherd.correct_journal(owner int, corrected int) RETURNS boolean
            LANGUAGE plpgsql AS $$ BEGIN RAISE 'it is broken'; END $$
            """
        )
        try await sink.deliver(Entries.numbered(1...10) + [Self.correction])
        await sink.continueCorrections()
        let texts = failures.withLock(\.self)
        #expect(texts.count == 1 && texts[0].hasPrefix("correction: ") && texts[0].contains("it is broken"))
        await sink.report()
        #expect(try await centre.value("SELECT errors >= 2 FROM gattherd.gateways") == "t")
    }

    @Test func `a text is reported again after an hour, and another one after a minute`() {
        var reports = UpkeepReports()
        let start = SuspendingClock.now
        let cases: [(CentreUpkeep, String, Int, Bool)] = [
            (.correction, "a", 0, true), (.correction, "a", 3599, false), (.correction, "a", 3600, true),
            (.correction, "b", 3659, false), (.correction, "b", 3660, true), (.retention, "b", 3661, true),
        ]
        for (task, detail, second, isDue) in cases {
            #expect(reports.isDue(task, detail, at: start + .seconds(second)) == isDue, "\(task) \(detail) \(second)")
        }
    }

    @Test func `corrections that newer entries have outlived for a day are overdue`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...10) + Entries.numbered(12...20))
        _ = try await centre.rows("INSERT INTO gattherd.correction VALUES (1, 11, 0, 10, 10000000, 0)")
        _ = try await centre.rows("SELECT gattherd.split_extent(1, 11)")
        #expect(try await centre.fleet.overdueWork().isEmpty)
        _ = try await centre.rows("UPDATE gattherd.extent SET came = came - interval '2 days'")
        let words = "1 clock corrections of the gateway 'attic' are not applied for more than a day"
        #expect(try await centre.fleet.overdueWork() == [words])
    }

    @Test func `partitions that the retention should have dropped a day ago are overdue`() async throws {
        let centre = try await Self.oldCentre()
        let words = try await centre.fleet.overdueWork()
        #expect(words.count == 1 && words[0].contains("older than the retention by more than a day"))
        try await Self.maintain(centre)
        #expect(try await centre.fleet.overdueWork().isEmpty)
    }

    @Test func `a role that only reads views is not told what is overdue`() async throws {
        let centre = try await Self.oldCentre()
        _ = try await centre.rows("CREATE ROLE reader LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA gattherd TO reader")
        let url = try Centre.url(centre.server.port, user: "reader")
        #expect(try await FleetDatabase(PostgresClient(url) { "x" }, url: url).overdueWork().isEmpty)
    }
}
