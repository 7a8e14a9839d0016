import FoundationEssentials
import GattherdLog
import GattherdModel
import Glibc
import TestKit
import Testing

@testable import GattherdHistory

@Suite("Faults", .timeLimit(.minutes(3)))
struct FaultTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func fault(opening path: String) async -> StoreFault? {
        do throws(StoreFault) {
            _ = try await ReadingHistory.open(path: path, keepsLog: true, log: .silent)
            return nil
        } catch {
            return error
        }
    }

    @Test("a second daemon on one file is refused, until the first has closed it")
    func twoWriters() async throws {
        let first = try await ReadingHistory.open(folder)
        let fault = try #require(await fault(opening: folder.database))
        #expect(fault.detail.contains("another gattherd uses this history"))
        #expect(!fault.isTransient)
        try await first.append(.plain(integers: 0..<1))
        try await first.close()
        #expect(await self.fault(opening: folder.database) == nil)
    }

    @Test(
        "a link to the file is no way around its lock, and no second place for its numbers",
        arguments: [true, false]
    )
    func linked(isThere: Bool) async throws {
        let link = folder.file("link.db")
        let elsewhere = try TemporaryFolder()
        let outer = elsewhere.file("outer.db")
        unsafe symlink("gattherd.db", link)
        unsafe symlink(link, outer)
        if isThere { try await ReadingHistory.open(folder).close() }
        let first = try await ReadingHistory.open(path: isThere ? folder.database : outer, keepsLog: true, log: .silent)
        for path in [outer, link, folder.database] {
            let fault = try #require(await fault(opening: path))
            #expect(fault.kind == .inUse)
            #expect(throws: StoreFault.self) { try HistoryImport(path: path) }
            #expect(try Compaction(path: path).isOnline)
        }
        try await first.close()
        #expect(unsafe access(folder.database + "-seq", F_OK) == 0)
        for path in [link, outer] {
            for suffix in ["-lock", "-seq"] { #expect(unsafe access(path + suffix, F_OK) != 0) }
        }
    }

    @Test("a link to itself is an error, and no endless way")
    func linkToItself() async throws {
        let link = folder.file("link.db")
        unsafe symlink(link, link)
        #expect(await fault(opening: link) != nil)
    }

    @Test("a directory that is missing is named, with the remedy")
    func missingDirectory() async throws {
        let path = folder.file("nowhere/gattherd.db")
        let fault = try #require(await fault(opening: path))
        #expect(fault.detail.contains(path))
        #expect(fault.detail.contains("create it"))
        #expect(!fault.isTransient)
    }

    @Test(
        "a file that is no database is refused, by the daemon and by imports, and nothing is made beside it",
        arguments: [
            "devices:\n  - name: strap\n", String(repeating: "this is a letter, not a database\n", count: 1000),
            "PK\u{3}\u{4}\u{0}\u{0}", "\u{0}",
        ]
    )
    func notADatabase(text: String) async throws {
        let path = try folder.write(text, to: "gattherd.db")
        let fault = try #require(await fault(opening: path))
        #expect(fault.kind == .refused && fault.detail.contains("nothing was changed: choose another history.path"))
        #expect(throws: StoreFault.self) { try HistoryImport(path: path) }
        #expect(try String(contentsOf: URL(filePath: path), encoding: .utf8) == text)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["gattherd.db"])
        #expect(HistoryFileProblem(path: path)?.remedy.contains("another history.path") == true)
    }

    @Test("text in the place of a history that was there is refused too")
    func textOverHistory() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<1))
        try await history.close()
        try folder.write("-- a dump of it", to: "gattherd.db")
        #expect(try #require(await fault(opening: folder.database)).detail.contains("this is text"))
    }

    @Test("a directory or a pipe as history.path is refused at once")
    func notAFile() async throws {
        try FileManager.default.createDirectory(atPath: folder.file("a"), withIntermediateDirectories: false)
        #expect(try #require(await fault(opening: folder.file("a"))).detail.contains("a directory"))
        unsafe mkfifo(folder.file("b"), 0o600)
        #expect(try #require(await fault(opening: folder.file("b"))).detail.contains("no regular file"))
    }

    @Test("a history that is gone is said to be, with the remedy; numbers go on above it", arguments: [true, false])
    func lost(isEmpty: Bool) async throws {
        var history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<5000))
        #expect(!history.status.isNewAfterLoss)
        try await history.close()
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: folder.database + suffix) }
        if isEmpty { try folder.write("", to: "gattherd.db") }
        #expect(HistoryFileProblem(path: folder.database)?.text.contains("missing or empty") == true)

        let recorder = LogRecorder()
        history = try await ReadingHistory.open(path: folder.database, keepsLog: true, log: recorder.log)
        let path = folder.database
        #expect(await history.notices.first { $0 == .lost(path: path) } != nil)
        #expect(history.status.isNewAfterLoss)
        #expect(recorder.messages.contains { $0.contains("missing or empty") })
        try await history.append(.plain(integers: 0..<1))
        #expect(try HistoryReader(path: folder.database).allRows().map(\.seq) == [5001])
        try await history.close()
        #expect(HistoryFileProblem(path: folder.database) == nil)
    }

    /// The damaged files, without what belongs to them.
    private func setAside() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.contains(".corrupt-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }
    }

    @Test(
        "another program's database is refused and left as it was",
        arguments: ["PRAGMA application_id = 7", "PRAGMA user_version = 3", "CREATE TABLE sample (ts)"]
    )
    func foreign(sql: String) async throws {
        _ = try await folder.shell.rows("\(sql); CREATE TABLE theirs (x)")
        let before = try Data(contentsOf: URL(filePath: folder.database))
        let fault = try #require(await fault(opening: folder.database))
        #expect(fault.detail.contains("another program's database"))
        #expect(try Data(contentsOf: URL(filePath: folder.database)) == before)
    }

    @Test("a file of a newer gattherd is refused, by the daemon and by readers")
    func newer() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.close()
        _ = try await folder.shell.rows("PRAGMA user_version = 99")
        let fault = try #require(await fault(opening: folder.database))
        #expect(fault.detail.contains("newer gattherd (version 99, this one knows \(Schema.steps.count))"))
        #expect(throws: fault) { try HistoryReader(path: folder.database) }
    }

    @Test(
        "a damaged file is moved aside as it is, with its write-ahead log; numbers go on above it",
        arguments: [0..<100, 4096..<400_000, 118_784..<119_184]
    )
    func corrupt(damage: Range<Int>) async throws {
        var history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<5000))
        try await history.close()
        var octets = try Data(contentsOf: URL(filePath: folder.database))
        for index in damage.clamped(to: 0..<octets.count) { octets[index] = 0xAA }
        try octets.write(to: URL(filePath: folder.database))
        try folder.write("a log", to: "gattherd.db-wal")

        history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<1))
        #expect(try HistoryReader(path: folder.database).allRows().map(\.seq) == [5001])
        try await history.close()
        let aside = try #require(try setAside().first)
        #expect(try Data(contentsOf: URL(filePath: folder.file(aside))) == octets)
        #expect(FileManager.default.fileExists(atPath: folder.file(aside + "-wal")))
    }

    @Test("a damaged file in a directory that cannot be written is a fault, and left as it was")
    func corruptAndStuck() throws {
        let text = "this is a letter, not a database"
        let path = try folder.write(text, to: "gattherd.db")
        let fault = #expect(throws: StoreFault.self) {
            try DamagedFile(path: path + "/nowhere").moveAside(at: Fixture.epoch)
        }
        #expect(fault?.detail.contains("cannot move the file aside") == true)
        #expect(try String(contentsOf: URL(filePath: path), encoding: .utf8) == text)
    }

    @Test("a full disk loses the batch that does not fit and nothing else, and is no trouble afterwards")
    func full() throws {
        let file = try HistoryFile(path: folder.database, keepsLog: true, log: .silent)
        try file.append(.plain(integers: 0..<100))
        let pages = try file.connection.integer("PRAGMA page_count")
        try file.connection.execute("PRAGMA max_page_count = \(pages + 2)")
        let tooMuch = ReadingBatch.plain(integers: 100..<5000)
        for _ in 0..<3 {
            let fault = #expect(throws: StoreFault.self) { try file.append(tooMuch) }
            #expect(fault?.isTransient == true)
            #expect(fault?.detail.contains("free some space") == true)
        }
        #expect(file.head == 100)
        try file.append(.plain(integers: 100..<101))
        let headBefore = file.head

        try file.connection.execute("PRAGMA max_page_count = 1000000")
        try file.append(tooMuch)
        let rows = try HistoryReader(path: folder.database).allRows()
        #expect(rows.count == 100 + 1 + 4900)
        #expect(Set(rows.map(\.seq)).count == rows.count)
        #expect(rows.filter { $0.seq > headBefore }.count == 4900)
        let logged = try #require(file.outbox).readings(after: 0, limit: 10_000)
        #expect(logged.map(\.seq) == rows.map(\.seq).sorted())
    }

    @Test("a series that was first met in a batch that failed is stored with the next one")
    func seriesAfterFailure() throws {
        let file = try HistoryFile(path: folder.database, keepsLog: true, log: .silent)
        let pages = try file.connection.integer("PRAGMA page_count")
        try file.connection.execute("PRAGMA max_page_count = \(pages + 1)")
        let stream = Fixture.plain("new", device: "new")
        #expect(throws: StoreFault.self) {
            try file.append(.plain((0..<5000).map { .integer($0) }, of: stream))
        }
        try file.connection.execute("PRAGMA max_page_count = 1000000")
        try file.append(.plain([.integer(1)], of: stream))
        let rows = try HistoryReader(path: folder.database).allRows()
        #expect(rows.map(\.series.device) == ["new"])
        #expect(try HistoryReader(path: folder.database).latest().map(\.value) == [.integer(1)])
    }

    @Test("a program that keeps the file locked is waited for; then the fault is transient")
    func locked() throws {
        let file = try HistoryFile(path: folder.database, keepsLog: true, log: .silent)
        let other = try SQLiteConnection(path: folder.database, flags: 0x2)
        try file.connection.execute("PRAGMA busy_timeout = 10")
        try other.execute("BEGIN IMMEDIATE")
        let fault = #expect(throws: StoreFault.self) { try file.append(.plain(integers: 0..<1)) }
        #expect(fault?.isTransient == true)
        try other.execute("COMMIT")
        try file.append(.plain(integers: 0..<1))
        #expect(try HistoryReader(path: folder.database).allRows().count == 1)
    }

    @Test("a closed history says so")
    func closed() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.close()
        try await history.close()
        let fault = await #expect(throws: StoreFault.self) { try await history.append(.plain(integers: 0..<1)) }
        #expect(fault?.detail.contains("closed") == true)
    }

    @Test("a clean close leaves the database alone, with its lock and its mark")
    func filesAfterClose() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<100))
        try await history.close()
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(files == ["gattherd.db", "gattherd.db-lock", "gattherd.db-seq"])
        #expect(try String(contentsOf: URL(filePath: folder.database + "-seq"), encoding: .utf8) == "100\n")
    }
}
