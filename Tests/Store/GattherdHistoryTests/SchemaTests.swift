import CSQLite
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdHistory

@Suite("Schema", .timeLimit(.minutes(3)))
struct SchemaTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func connection() throws(StoreFault) -> SQLiteConnection {
        try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    }

    @Test(
        "the file is set up as it must be",
        arguments: [
            ("journal_mode", "wal"), ("application_id", "1195463752"), ("user_version", "9"), ("auto_vacuum", "2"),
            ("page_size", "4096"),
        ]
    )
    func file(pragma: String, expected: String) async throws {
        let history = try await ReadingHistory.open(folder)
        #expect(try await folder.shell.value("PRAGMA \(pragma)") == expected)
        withExtendedLifetime(history) {}
    }

    @Test(
        "the writer's connection is set up as it must be",
        arguments: [("synchronous", 2), ("secure_delete", 0), ("foreign_keys", 1), ("trusted_schema", 0)]
    )
    func writer(pragma: String, expected: Int64) throws {
        #expect(try Schema.open(folder.database).integer("PRAGMA \(pragma)") == expected)
    }

    @Test("an empty file, or one of version 0, becomes one of this version", arguments: [true, false])
    func fromZero(isOurs: Bool) async throws {
        try folder.write("", to: "gattherd.db")
        if isOurs {
            _ = try await folder.shell.rows("PRAGMA application_id = \(Schema.applicationID)")
        }
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<1))
        #expect(try await folder.shell.value("SELECT value FROM history") == "0")
        #expect(try await folder.shell.value("PRAGMA auto_vacuum") == "2")
    }

    @Test("a file takes the steps that it has not taken, once each, and keeps its rows")
    func steps() throws {
        let steps =
            Schema.steps + [
                "ALTER TABLE event ADD COLUMN extra TEXT", "UPDATE event SET extra = coalesce(extra, '') || 'x'",
            ]
        let connection = try connection()
        try Schema.migrate(connection, steps: Array(steps.prefix(1)))
        try connection.execute("INSERT INTO event (ts, kind, detail) VALUES (1, 'link', '{}')")
        for _ in 0..<2 { try Schema.migrate(connection, steps: steps) }
        #expect(try connection.integer("PRAGMA user_version") == Int64(steps.count))
        #expect(try connection.integer("SELECT count(*) FROM event WHERE extra = 'x'") == 1)
    }

    @Test(
        "what waits for delivery in a file of version 4 is delivered as it would have been",
        arguments: [false, true]
    )
    func outboxStep(isBeingMoved: Bool) async throws {
        var batch = ReadingBatch.plain([.integer(1), .integer(0)])
        batch.add(Fixture.heartRate(), (0, .integer(61)), (1, .boolean(true)))
        let expected = try await logAsInVersion4(batch)
        if isBeingMoved { try moveHalf() }
        let file = try HistoryFile(path: folder.database, keepsLog: true, log: .silent)
        let found = try file.readings(after: 0, limit: 9)
        #expect(found.map(\.seq) == [1, 2, 3])
        #expect(found == expected || isBeingMoved, "those have other times")
        while file.isUpkeepDue { try file.upkeep() }
        #expect(try file.readings(after: 0, limit: 9).count == expected.count)
        #expect(try HistoryReader(path: folder.database).check().isEmpty)
        #expect(try await folder.shell.value("SELECT value FROM mine") == "61")
    }

    @Test("a file of version 4 opens with damaged payloads, and needs none that has its time elsewhere")
    func damagedOutboxStep() async throws {
        let expected = try await logAsInVersion4(.plain([.integer(1), .integer(0), .integer(2)]))
        try connection().execute("UPDATE log SET payload = X'7BFF' WHERE seq <> 2")
        let file = try HistoryFile(path: folder.database, keepsLog: true, log: .silent)
        #expect(try file.readings(after: 0, limit: 9) == Array(expected.prefix(2)))
        #expect(try HistoryReader(path: folder.database).check().isEmpty)
    }

    /// Makes a file with the table that there was; the time of the last reading is not in it.
    private func logAsInVersion4(_ batch: ReadingBatch) async throws -> [JournalReading] {
        let history = try await ReadingHistory.open(folder)
        try await history.append(batch)
        let readings = try await history.readings(after: 0, limit: 9)
        try await history.close()
        let connection = try connection()
        try connection.execute(
            """
            CREATE TABLE log (seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, payload BLOB NOT NULL, ts INTEGER) STRICT;
            DROP VIEW history; DROP VIEW latest; DROP VIEW series; DROP VIEW devices; DROP VIEW history_minutes;
            DROP VIEW history_hours; DROP INDEX reject_of_device; DROP TRIGGER event_added; DROP TRIGGER event_deleted;
            DROP TRIGGER reject_added; DROP TRIGGER reject_deleted; DROP TABLE source;
            ALTER TABLE metric_series DROP COLUMN first; ALTER TABLE metric_series DROP COLUMN boolean;
            ALTER TABLE metric_series RENAME TO series;
            DROP TABLE clock_mark; ALTER TABLE clock DROP COLUMN uptime; ALTER TABLE clock DROP COLUMN base;
            DROP TABLE enrolled; DROP TABLE outbox; PRAGMA user_version = 4;
            CREATE VIEW history AS SELECT seq, metric, value FROM sample JOIN series ON series.id = sample.series;
            CREATE VIEW mine AS SELECT metric, value FROM history WHERE value > 1
            """
        )
        for reading in readings {
            let payload = String(decoding: reading.payload, as: UTF8.self)
            try connection.execute(
                """
                INSERT INTO log SELECT seq, stream, CAST('\(payload)' AS BLOB), iif(seq = 3, NULL, ts)
                FROM sample JOIN series ON series.id = series WHERE seq = \(reading.seq) AND ix = 0
                """
            )
        }
        return readings
    }

    /// As a daemon leaves it that ends while it gives the three readings the times of a day later, the last ones first.
    private func moveHalf() throws {
        let start = Fixture.epoch.microseconds
        try connection().execute(
            """
            UPDATE sample SET ts = ts + 86400000000 WHERE seq > 1;
            UPDATE log SET ts = ts + 86400000000 WHERE seq = 2;
            UPDATE log SET payload = CAST(replace(CAST(payload AS TEXT), '2026-11-21', '2026-11-22') AS BLOB) WHERE seq = 3;
            INSERT INTO clock (
                boot, offset, time_end, seq, event, reject, seq_end, event_end, reject_end, shift, phase, place, place_seq
            ) VALUES ('', \(start), \(start + 9), 0, 0, 0, 3, 0, 0, 86400000000, 2, \(start + 1), 2)
            """
        )
    }

    @Test(
        "a view that is missing or of another version is made anew at the next start; the others are not touched",
        arguments: ["DROP VIEW history", "DROP VIEW latest; CREATE VIEW latest AS SELECT 1 AS seq", "DROP VIEW series"]
    )
    func missingView(sql: String) async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<1))
        try await history.close()
        let views = """
            SELECT name, replace(sql, char(10), ' ') FROM sqlite_schema
            WHERE type = 'view' AND name <> 'mine' ORDER BY name
            """
        let before = try await folder.shell.rows(views)
        _ = try await folder.shell.rows("\(sql); CREATE VIEW mine AS SELECT count(*) AS n FROM history")
        let again = try await ReadingHistory.open(folder)
        try await again.close()
        #expect(try await folder.shell.rows(views) == before)
        #expect(try await folder.shell.value("SELECT n FROM mine") == "1")
        let version = try await folder.shell.value("PRAGMA schema_version")
        let third = try await ReadingHistory.open(folder)
        try await third.close()
        #expect(try await folder.shell.value("PRAGMA schema_version") == version)
    }

    @Test("a step that fails leaves the file at the version before, whole")
    func failingStep() throws {
        let connection = try connection()
        let bad = "CREATE TABLE halfway (x); INSERT INTO nowhere VALUES (1)"
        #expect(throws: StoreFault.self) { try Schema.migrate(connection, steps: Schema.steps + [bad]) }
        #expect(try connection.integer("PRAGMA user_version") == Int64(Schema.steps.count))
        #expect(try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'halfway'") == 0)
        try Schema.migrate(connection, steps: Schema.steps + ["CREATE TABLE halfway (x)"])
    }

    @Test("the write-ahead log stays small while a lot is written, also when a reader was in the way")
    func checkpoints() async throws {
        let history = try await ReadingHistory.open(folder)
        let reader = try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READONLY)
        try reader.execute("BEGIN; SELECT count(*) FROM sample")
        for _ in 0..<8 { try await history.append(.plain(integers: 0..<10_000)) }
        try reader.execute("COMMIT")
        for _ in 0..<8 { try await history.append(.plain(integers: 0..<10_000)) }
        #expect(try #require(try folder.sizeOfLog()) < 30_000_000)
        for _ in 0..<8 { try await history.append(.plain(integers: 0..<10_000)) }
        #expect(try #require(try folder.sizeOfLog()) < 30_000_000)
        try await history.close()
        #expect(try await folder.shell.value("PRAGMA integrity_check") == "ok")
        #expect(try await folder.shell.value("SELECT count(*) FROM history") == "240000")
    }

    @Test("readers that take turns without a pause do not keep the write-ahead log from beginning anew")
    func turns() async throws {
        var options = HistoryOptions(
            path: folder.database,
            keepsLog: false,
            clock: GatewayClock(now: { Fixture.epoch })
        )
        options.limits.maxSize = 4_000_000
        let history = try await ReadingHistory.open(options, log: .silent)
        let isOver = Locked(false)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        for _ in 0..<3 {
            _ = NamedThread(name: "reader") { [path = folder.database] in
                let reader = try? SQLiteConnection(path: path, flags: SQLITE_OPEN_READONLY)
                while !isOver.withLock({ $0 }) {
                    try? reader?.execute("BEGIN; SELECT count(*) FROM sample; COMMIT")
                }
                end.yield()
            }
        }
        var largest = 0
        for batch in 0..<100 {
            let time = Fixture.epoch.advanced(by: .seconds(batch))
            try await history.append(.plain((0..<1000).map { .integer($0) }, at: time))
            largest = max(largest, try folder.sizeOfLog() ?? 0)
        }
        isOver.withLock { $0 = true }
        var iterator = ends.makeAsyncIterator()
        for _ in 0..<3 { await iterator.next() }
        try await history.close()
        #expect(largest < options.limits.logPages * 4120 * 8, "half of this is where readers are waited for")
    }
}
