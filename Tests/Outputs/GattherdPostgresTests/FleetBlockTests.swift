import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetBlockTests {
    private static let day: Int64 = 86_400_000_000

    /// A time twenty days ago, for which there is no partition yet.
    private static func past(_ centre: Centre) async throws -> Int64 {
        let now = try await centre.value("SELECT floor(extract(epoch FROM now()) * 1000000)")
        return try #require(Int64(now)) - 20 * day
    }

    /// Makes the partitions of a day and returns the rows that were read for it.
    private static func readsOfMaking(_ centre: Centre, _ time: Int64) async throws -> Int {
        let answer = try await centre.rows(
            """
            BEGIN; DO $$ BEGIN PERFORM gattherd.make_blocks(ARRAY[\(time)]); END $$;
            SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables
            WHERE relname LIKE 'sample%' OR relname LIKE 'minute%'; COMMIT
            """
        )
        return try #require(answer.first?.first.flatMap { Int($0) })
    }

    private static func hasBlock(_ centre: Centre, _ time: Int64) async throws -> Bool {
        let name = "to_char(to_timestamp(\(time) / 1e6) AT TIME ZONE 'UTC', '\"gattherd.sample_\"YYYYMMDD')"
        return try await centre.value("SELECT to_regclass(\(name)) IS NOT NULL") == "t"
    }

    @Test func `rows of a clock that is years ahead do not slow down new partitions`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver([
            Entries.reading(1, at: Timestamp(microseconds: 4_000_000_000_000_000), (0, .integer(1)))
        ])
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.sample SELECT (r).* FROM (SELECT s AS r FROM gattherd.sample s) x,
                generate_series(1, 300000)
            """
        )
        let past = try await Self.past(centre)
        #expect(try await Self.readsOfMaking(centre, past) < 1000)
        #expect(try await Self.hasBlock(centre, past))
    }

    @Test func `a default partition that has grown is not split`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let past = try await Self.past(centre)
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.sample_other (ts, seq, value, journal, series)
            SELECT \(past), n, n, 1, 1 FROM generate_series(1, 800000) AS n
            """
        )
        #expect(try await sink.deliver(Entries.numbered(1...10, from: Timestamp(microseconds: past))).isEmpty)
        #expect(try await !Self.hasBlock(centre, past))
        #expect(try await Self.readsOfMaking(centre, past) < 1000)
    }

    @Test func `an upgrade moves receptions whose partition could not be made`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let past = try await Self.past(centre)
        #expect(try await sink.deliver([Entries.heard(1, at: Timestamp(microseconds: 0), 20)]).isEmpty)
        try await Self.insertFarReceptions(centre)
        #expect(try await sink.deliver([Entries.heard(2, at: Timestamp(microseconds: past), 20)]).isEmpty)
        let stranded = "SELECT count(*) FROM gattherd.reception_other WHERE ts = \(past)"
        #expect(try await centre.value(stranded) == "1")
        _ = try await centre.fleet.install(isNew: false)
        #expect(try await centre.value(stranded) == "0")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.receptions WHERE ts = \(past)") == "1")
    }

    /// Inserts 46 MB of receptions whose times are wrong, which no retention deletes any more.
    private static func insertFarReceptions(_ centre: Centre) async throws {
        _ = try await centre.rows("UPDATE gattherd.retention SET keep = NULL")
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.reception_other (ts, seq, print, first_seq, first_journal, journal, air)
            SELECT n, n, n, n, 1, 1, 1 FROM generate_series(1, 600000) AS n
            """
        )
    }

    /// Maintains the centre, and returns whether there are partitions of receptions for tomorrow.
    private static func hasReceptionBlocksOfTomorrow(_ centre: Centre) async throws -> [[String]] {
        _ = try await centre.rows("UPDATE gattherd.upkeep SET done = '-infinity'")
        while try await centre.value("SELECT gattherd.maintain()") == "t" {}
        let tomorrow = "to_char((now() + interval '1 day') AT TIME ZONE 'UTC', 'YYYYMMDD')"
        return try await centre.rows(
            """
            SELECT to_regclass('gattherd.reception_' || \(tomorrow)) IS NOT NULL,
                to_regclass('gattherd.duplicate_' || \(tomorrow)) IS NOT NULL
            """
        )
    }

    @Test func `partitions of receptions are made ahead once a gateway hears advertisements`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let time = Timestamp(microseconds: try await Self.past(centre))
        try await sink.deliver([Entries.reading(1, at: time, (0, .integer(1)))])
        #expect(try await Self.hasReceptionBlocksOfTomorrow(centre) == [["f", "f"]])
        try await sink.deliver([Entries.heard(2, at: time, 20)])
        #expect(try await Self.hasReceptionBlocksOfTomorrow(centre) == [["t", "t"]])
    }

    @Test func `partitions of receptions are made ahead although many receptions have wrong times`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver([Entries.heard(1, at: Timestamp(microseconds: try await Self.past(centre)), 20)])
        try await Self.insertFarReceptions(centre)
        #expect(try await Self.hasReceptionBlocksOfTomorrow(centre) == [["t", "t"]])
    }

    @Test func `a gateway does not wait for one that makes partitions`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let other = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await other.run("SELECT pg_advisory_lock(1195463752, 1)")
        let past = try await Self.past(centre)
        // Rows of 200 days: waiting for each partition would take longer than a call may.
        let entries = Entries.numbered(1...200, from: Timestamp(microseconds: past), step: .seconds(-86_400))
        #expect(try await sink.deliver(entries, batch: 200).isEmpty)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.sample_other") == "200")
        other.close()
    }

    @Test(arguments: [false, true])
    func `a gateway that waits for a new partition locks no row that the maker of the partition needs`(
        isCorrection: Bool
    ) async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let time = Timestamp(microseconds: try await Self.past(centre))
        try await sink.deliver([Entries.heard(1, at: time, 20)])
        // A gateway that makes a partition of samples, or of minutes, and then delivers the same stream.
        let maker = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await maker.run("BEGIN")
        let table = isCorrection ? "minute_other" : "sample_other"
        _ = try await maker.run("LOCK TABLE gattherd.\(table) IN ACCESS EXCLUSIVE MODE")
        let correction = ClockCorrection(after: 0, through: 1, shift: .seconds(7))
        let entries = isCorrection ? [.correction(correction, seq: 2)] : [Entries.heard(2, at: time, 21)]
        async let faults = sink.deliver(entries)
        while try await centre.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {}
        _ = try await maker.run("SELECT id FROM gattherd.air FOR NO KEY UPDATE NOWAIT")
        _ = try await maker.run("ROLLBACK")
        #expect(try await faults.isEmpty)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.correction") == "0")
        maker.close()
    }
}
