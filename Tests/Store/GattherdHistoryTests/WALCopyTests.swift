import CSQLite
import FoundationEssentials
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(1)))
struct WALCopyTests {
    private let folder: TemporaryFolder
    private let connection: SQLiteConnection

    init() throws {
        folder = try TemporaryFolder()
        connection = try HistoryDatabase.open(folder.database)
        try connection.execute("CREATE TABLE filler (x)")
    }

    /// Commits rows, each of ten pages.
    private func commit(_ count: Int) throws {
        for _ in 0..<count { try connection.execute("INSERT INTO filler VALUES (zeroblob(40000))") }
    }

    private func end(of copy: WALCopy) async {
        for await state in copy.state.watch() where !state.isRunning { return }
    }

    @Test func `another thread copies a large WAL, and the writer what came meanwhile`() async throws {
        var checkpointer = try WALCheckpointer(connection, pages: 8, large: 64)
        try commit(20)
        let pages = connection.walPages
        let reader = try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READONLY)
        try reader.execute("BEGIN; SELECT count(*) FROM filler")
        checkpointer.runIfDue()
        await end(of: checkpointer.background)
        #expect(checkpointer.background.state.state.copied == pages)
        // Without the reader, this commit would restart the WAL.
        try commit(1)
        #expect(connection.walPages > pages)
        try reader.execute("COMMIT")
        checkpointer.runIfDue()
        #expect(!checkpointer.background.state.state.isRunning)
        try commit(1)
        #expect(connection.walPages < pages)
        checkpointer.runIfDue()
        #expect(checkpointer.background.state.state.copied == 0)
        #expect(try connection.integer("SELECT count(*) FROM filler") == 22)
    }

    @Test func `a WAL that restarts after a copy at the start has nothing copied`() async throws {
        var checkpointer = try WALCheckpointer(connection, pages: 8, large: 64)
        try commit(20)
        checkpointer.copy()
        await end(of: checkpointer.background)
        #expect(checkpointer.background.state.state.copied == connection.walPages)
        try commit(1)
        checkpointer.runIfDue()
        #expect(checkpointer.background.state.state.copied == 0)
    }

    @Test func `an idle writer leaves a large WAL to another thread`() async throws {
        let checkpointer = try WALCheckpointer(connection, pages: 8, large: 64)
        try commit(20)
        checkpointer.flush()
        await end(of: checkpointer.background)
        #expect(checkpointer.background.state.state.copied == connection.walPages)
        checkpointer.flush()
        #expect(try folder.sizeOfWAL() == 0)
    }

    @Test(arguments: [(64, true), (65_536, false)])
    func `closing leaves a large WAL, and only a large one, for the next start`(large: Int, isLeft: Bool) throws {
        let other = try TemporaryFolder()
        do {
            let last = try HistoryDatabase.open(other.database)
            let checkpointer = try WALCheckpointer(last, pages: 8, large: large)
            try last.execute("CREATE TABLE filler (x)")
            for _ in 0..<20 { try last.execute("INSERT INTO filler VALUES (zeroblob(40000))") }
            checkpointer.close()
        }
        #expect(FileManager.default.fileExists(atPath: other.database + "-wal") == isLeft)
        #expect(try HistoryDatabase.open(other.database).integer("SELECT count(*) FROM filler") == 20)
    }

    @Test func `the WAL is not copied into a database that has replaced the writer's`() async throws {
        let copy = WALCopy(connection)
        try commit(20)
        let moved = folder.file("moved.db")
        try FileManager.default.moveItem(atPath: folder.database, toPath: moved)
        try FileManager.default.copyItem(atPath: moved, toPath: folder.database)
        let before = FileManager.default.contents(atPath: folder.database)
        copy.start()
        await end(of: copy)
        #expect(copy.state.state.copied == 0)
        #expect(FileManager.default.contents(atPath: folder.database) == before)
    }
}
