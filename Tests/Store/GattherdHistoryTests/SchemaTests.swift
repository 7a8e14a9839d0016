import CSQLite
import FoundationEssentials
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(3)))
struct SchemaTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func connection() throws(StoreFault) -> SQLiteConnection {
        try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    }

    @Test(
        arguments: [
            ("journal_mode", "wal"), ("application_id", "1195463752"), ("user_version", "1"), ("auto_vacuum", "2"),
            ("page_size", "4096"),
        ]
    )
    func `the file has the required pragmas`(pragma: String, expected: String) async throws {
        let history = try await ReadingHistory.open(folder)
        #expect(try await folder.shell.value("PRAGMA \(pragma)") == expected)
        withExtendedLifetime(history) {}
    }

    @Test(
        arguments: [("synchronous", 2), ("secure_delete", 0), ("foreign_keys", 1), ("trusted_schema", 0)]
    )
    func `the writer's connection has the required pragmas`(pragma: String, expected: Int64) throws {
        #expect(try HistoryDatabase.open(folder.database).integer("PRAGMA \(pragma)") == expected)
    }

    @Test(arguments: [true, false])
    func `an empty file, or one of version 0, becomes one of this version`(isOurs: Bool) async throws {
        try folder.write("", to: "gattherd.db")
        if isOurs {
            _ = try await folder.shell.rows("PRAGMA application_id = \(Schema.applicationID)")
        }
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<1))
        #expect(try await folder.shell.value("SELECT value FROM history") == "0")
        #expect(try await folder.shell.value("PRAGMA auto_vacuum") == "2")
    }

    @Test func `a file runs the steps that it lacks once each and keeps its rows`() throws {
        let steps =
            Schema.steps + [
                "ALTER TABLE event ADD COLUMN extra TEXT", "UPDATE event SET extra = coalesce(extra, '') || 'x'",
            ]
        let connection = try connection()
        try Schema.migrate(connection, steps: Schema.steps)
        try connection.execute("INSERT INTO event (ts, kind, detail) VALUES (1, 'link', '{}')")
        for _ in 0..<2 { try Schema.migrate(connection, steps: steps) }
        #expect(try connection.integer("PRAGMA user_version") == Int64(steps.count))
        #expect(try connection.integer("SELECT count(*) FROM event WHERE extra = 'x'") == 1)
    }

    @Test(
        arguments: ["DROP VIEW history", "DROP VIEW latest; CREATE VIEW latest AS SELECT 1 AS seq", "DROP VIEW series"]
    )
    func `a missing or outdated view is recreated at the next start; others are not touched`(sql: String) async throws {
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

    @Test func `a failed step leaves the file at the previous version`() throws {
        let connection = try connection()
        let bad = "CREATE TABLE halfway (x); INSERT INTO nowhere VALUES (1)"
        #expect(throws: StoreFault.self) { try Schema.migrate(connection, steps: Schema.steps + [bad]) }
        #expect(try connection.integer("PRAGMA user_version") == Int64(Schema.steps.count))
        #expect(try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'halfway'") == 0)
        try Schema.migrate(connection, steps: Schema.steps + ["CREATE TABLE halfway (x)"])
    }

    @Test func `the WAL stays small during heavy writing, also after a blocking reader`() async throws {
        let history = try await ReadingHistory.open(folder)
        let reader = try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READONLY)
        try reader.execute("BEGIN; SELECT count(*) FROM sample")
        for _ in 0..<8 { try await history.append(.plain(integers: 0..<10_000)) }
        try reader.execute("COMMIT")
        for _ in 0..<8 { try await history.append(.plain(integers: 0..<10_000)) }
        #expect(try #require(try folder.sizeOfWAL()) < 30_000_000)
        for _ in 0..<8 { try await history.append(.plain(integers: 0..<10_000)) }
        #expect(try #require(try folder.sizeOfWAL()) < 30_000_000)
        try await history.close()
        #expect(try await folder.shell.value("PRAGMA integrity_check") == "ok")
        #expect(try await folder.shell.value("SELECT count(*) FROM history") == "240000")
    }

    @Test func `a WAL that a killed daemon left is copied into the database at the start`() async throws {
        do {
            let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
            try file.append(.plain(integers: 0..<1000))
            file.connection.keepsWALOnClose(true)
        }
        do {
            let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
            file.connection.keepsWALOnClose(true)
        }
        let copy = folder.file("without-wal.db")
        try FileManager.default.copyItem(atPath: folder.database, toPath: copy)
        #expect(try await SQLiteShell(copy).value("SELECT count(*) FROM history") == "1000")
    }

    @Test func `overlapping readers do not keep the WAL from restarting`() async throws {
        var options = HistoryOptions(
            path: folder.database,
            consumers: [],
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
            largest = max(largest, try folder.sizeOfWAL() ?? 0)
        }
        isOver.withLock { $0 = true }
        var iterator = ends.makeAsyncIterator()
        for _ in 0..<3 { await iterator.next() }
        try await history.close()
        #expect(largest < options.limits.walPages * 4120 * 8, "half of this is where readers are waited for")
    }
}
