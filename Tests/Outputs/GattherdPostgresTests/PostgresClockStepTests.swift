import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

/// Clocks that are set while a gateway records, as those without a battery are at each start.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct PostgresClockStepTests {
    private static let hour: Int64 = 3_600_000_000
    /// A minute after the beginning of the clock.
    private static let boot = Timestamp(microseconds: 60_000_000)
    private static let shift: Int64 = 1_795_230_000_000_000

    private static func correction(_ seq: Int64, after: Int64, through: Int64) -> JournalEntry {
        .correction(ClockCorrection(after: after, through: through, shift: .microseconds(shift)), seq: seq)
    }

    /// Stores a month of readings, one each second for the series 1, numbered from -1 downwards.
    private static func fill(_ centre: Centre, with count: Int) async throws {
        _ = try await centre.rows(
            """
            SELECT gattherd.make_blocks(ARRAY(SELECT \(Entries.time.microseconds) - n * 86400000000::bigint
                FROM generate_series(0, \(count / 86_400 + 1)) AS n));
            INSERT INTO gattherd.sample (ts, seq, value, journal, series)
            SELECT \(Entries.time.microseconds) - n * 1000000::bigint, -n, n, 1, 1 FROM generate_series(1, \(count)) AS n
            """
        )
    }

    /// Returns the rows of samples that the steps of all corrections read.
    private static func readsOfSettling(_ centre: Centre) async throws -> Int {
        let answer = try await centre.rows(
            """
            BEGIN;
            DO $$ BEGIN WHILE gattherd.correct_journal(1, 1) LOOP END LOOP; END $$;
            SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname LIKE 'sample%';
            COMMIT
            """
        )
        return try #require(answer.first?.first.flatMap { Int($0) })
    }

    @Test func `a correction reads only the rows that it moves, not the years in between`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let entries =
            Entries.numbered(1...300, from: Self.boot) + Entries.numbered(301...1000, from: Entries.time)
        try await sink.deliver(entries, batch: 500)
        try await Self.fill(centre, with: 1_000_000)
        #expect(try await centre.value("SELECT max(last_ts - first_ts) < \(Self.hour) FROM gattherd.extent") == "t")
        _ = try await centre.rows(
            "INSERT INTO gattherd.correction VALUES (1, 1001, 0, 300, \(Self.shift), 0)"
        )
        #expect(try await Self.readsOfSettling(centre) < 5000)
        let moved = try await centre.value(
            "SELECT count(*) FROM gattherd.history WHERE seq BETWEEN 1 AND 300 AND ts > 1795000000000000"
        )
        #expect(moved == "300")
    }

    @Test func `a part of an extent that is moved by years leaves the others narrow`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        var entries = Entries.numbered(1...900, from: Self.boot)
        entries.append(Self.correction(901, after: 300, through: 600))
        try await sink.deliver(entries, batch: 1000)
        let extents = try await centre.rows("SELECT first, last FROM gattherd.extent ORDER BY 1")
        #expect(extents == [["1", "300"], ["301", "600"], ["601", "900"]])
        #expect(try await centre.value("SELECT max(last_ts - first_ts) < \(Self.hour) FROM gattherd.extent") == "t")
        let times = try await centre.rows("SELECT count(*) FROM gattherd.history GROUP BY ts > 1e15 ORDER BY 1")
        #expect(times == [["300"], ["600"]])
    }

    @Test func `an extent has few numbers, so that a step of a correction moves few rows`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...12_000), batch: 1000)
        #expect(try await centre.value("SELECT max(last - first) < 3000 FROM gattherd.extent") == "t")
    }

    @Test func `a step of a correction moves few events and rejects`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver([Entries.reading(1, at: Self.boot, (0, .integer(1)))])
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.reject SELECT 1, n, 0, 'd', 'c', '', '' FROM generate_series(2, 15001) AS n;
            INSERT INTO gattherd.event SELECT 1, n, 0, NULL, 'daemon', '' FROM generate_series(20001, 30000) AS n;
            INSERT INTO gattherd.correction VALUES (1, 40000, 0, 30000, \(Self.shift), 0)
            """
        )
        let moved = """
            SELECT (SELECT count(*) FROM gattherd.event WHERE ts = \(Self.shift))
                + (SELECT count(*) FROM gattherd.reject WHERE ts = \(Self.shift))
            """
        var (before, isLeft) = (0, true)
        while isLeft {
            isLeft = try await centre.value("SELECT gattherd.correct_journal(1, 1)") == "t"
            let now = try #require(Int(try await centre.value(moved)))
            #expect(now - before <= 10_000)
            before = now
        }
        #expect(before == 25_000)
        let time = Self.boot.microseconds + Self.shift
        #expect(try await centre.value("SELECT ts FROM gattherd.history") == "\(time)")
    }

    @Test func `a correction of many rows does not hold up the batches for long`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        _ = try await sink.cursor(in: .test)
        // A correction without end, whose steps take half a second.
        _ = try await centre.rows(
            """
            CREATE TABLE gattherd.step (n int);
            CREATE OR REPLACE FUNCTION gattherd.correct(epoch text) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS $$
                INSERT INTO gattherd.step VALUES (1); SELECT pg_sleep(0.5); SELECT true
            $$
            """
        )
        try await sink.write(Entries.numbered(1...10), after: 0, through: 10)
        #expect(try await centre.value("SELECT count(*) BETWEEN 1 AND 10 FROM gattherd.step") == "t")
    }

    @Test func `a correction that cannot be applied does not stop the entries`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...100, from: Self.boot))
        _ = try await centre.rows(
            """
            ALTER FUNCTION gattherd.move_extent RENAME TO moved_extent;
            CREATE FUNCTION gattherd.move_extent(int, int, bigint, bigint, bigint, bigint, bigint) RETURNS void
            LANGUAGE plpgsql AS $$ BEGIN RAISE 'the disk is slow'; END $$
            """
        )
        let more = [Self.correction(101, after: 0, through: 100)] + Entries.numbered(102...200)
        #expect(try await sink.deliver(more).isEmpty)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "199")
        _ = try await centre.rows(
            """
            DROP FUNCTION gattherd.move_extent; ALTER FUNCTION gattherd.moved_extent RENAME TO move_extent
            """
        )
        #expect(try await sink.deliver(Entries.numbered(201...210)).isEmpty)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history WHERE ts < 1795000000000000") == "0")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.correction") == "0")
    }
}
