import FoundationEssentials
import GattherdLog
import GattherdModel
import Glibc
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(3)))
struct FaultTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func fault(opening path: String) async -> StoreFault? {
        do throws(StoreFault) {
            _ = try await ReadingHistory.open(path: path, consumers: .one, log: .silent)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a second daemon on one file is refused, until the first has closed it`() async throws {
        let first = try await ReadingHistory.open(folder)
        let fault = try #require(await fault(opening: folder.database))
        #expect(fault.detail.contains("another gattherd uses this history"))
        #expect(!fault.isTransient)
        try await first.append(.plain(integers: 0..<1))
        try await first.close()
        #expect(await self.fault(opening: folder.database) == nil)
    }

    @Test(
        arguments: [true, false]
    )
    func `a symbolic link leads to the same lock and sequence file`(isThere: Bool) async throws {
        let link = folder.file("link.db")
        let elsewhere = try TemporaryFolder()
        let outer = elsewhere.file("outer.db")
        unsafe symlink("gattherd.db", link)
        unsafe symlink(link, outer)
        if isThere { try await ReadingHistory.open(folder).close() }
        let first = try await ReadingHistory.open(
            path: isThere ? folder.database : outer,
            consumers: .one,
            log: .silent
        )
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

    @Test func `a circular link is an error`() async throws {
        let link = folder.file("link.db")
        unsafe symlink(link, link)
        #expect(await fault(opening: link) != nil)
    }

    @Test func `a missing directory is named with the remedy`() async throws {
        let path = folder.file("nowhere/gattherd.db")
        let fault = try #require(await fault(opening: path))
        #expect(fault.detail.contains(path))
        #expect(fault.detail.contains("create it"))
        #expect(!fault.isTransient)
    }

    @Test(
        arguments: [
            "devices:\n  - name: strap\n", String(repeating: "this is a letter, not a database\n", count: 1000),
            "PK\u{3}\u{4}\u{0}\u{0}", "\u{0}",
        ]
    )
    func `a file that is not a database is refused by the daemon and by imports`(text: String) async throws {
        let path = try folder.write(text, to: "gattherd.db")
        let fault = try #require(await fault(opening: path))
        #expect(fault.kind == .refused && fault.detail.contains("nothing was changed: choose another history.path"))
        #expect(throws: StoreFault.self) { try HistoryImport(path: path) }
        #expect(try String(contentsOf: URL(filePath: path), encoding: .utf8) == text)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["gattherd.db"])
        #expect(HistoryFileProblem(path: path)?.remedy.contains("another history.path") == true)
    }

    @Test func `a text file beside a sequence file is refused`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<1))
        try await history.close()
        try folder.write("-- a dump of it", to: "gattherd.db")
        #expect(try #require(await fault(opening: folder.database)).detail.contains("this is text"))
    }

    @Test func `a directory or a pipe as history.path is refused at once`() async throws {
        try FileManager.default.createDirectory(atPath: folder.file("a"), withIntermediateDirectories: false)
        #expect(try #require(await fault(opening: folder.file("a"))).detail.contains("a directory"))
        unsafe mkfifo(folder.file("b"), 0o600)
        #expect(try #require(await fault(opening: folder.file("b"))).detail.contains("no regular file"))
    }

    @Test(arguments: [true, false])
    func `a lost history is reported with the remedy, and numbers continue above it`(isEmpty: Bool) async throws {
        var history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<5000))
        #expect(!history.status.isNewAfterLoss)
        try await history.close()
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: folder.database + suffix) }
        if isEmpty { try folder.write("", to: "gattherd.db") }
        #expect(HistoryFileProblem(path: folder.database)?.text.contains("missing or empty") == true)

        let recorder = LogRecorder()
        history = try await ReadingHistory.open(path: folder.database, consumers: .one, log: recorder.log)
        let path = folder.database
        #expect(await history.notices.first { $0 == .lost(path: path) } != nil)
        #expect(history.status.isNewAfterLoss)
        #expect(recorder.messages.contains { $0.contains("missing or empty") })
        try await history.append(.plain(integers: 0..<1))
        #expect(try HistoryReader(path: folder.database).allRows().map(\.seq) == [5001])
        try await history.close()
        #expect(HistoryFileProblem(path: folder.database) == nil)
    }

    /// The damaged databases, without their other files.
    private func setAside() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.contains(".corrupt-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }
    }

    @Test(
        arguments: ["PRAGMA application_id = 7", "PRAGMA user_version = 3", "CREATE TABLE sample (ts)"]
    )
    func `another program's database is refused and stays unchanged`(sql: String) async throws {
        _ = try await folder.shell.rows("\(sql); CREATE TABLE theirs (x)")
        let before = try Data(contentsOf: URL(filePath: folder.database))
        let fault = try #require(await fault(opening: folder.database))
        #expect(fault.detail.contains("another program's database"))
        #expect(try Data(contentsOf: URL(filePath: folder.database)) == before)
    }

    @Test func `a file of a newer gattherd is refused, by the daemon and by readers`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.close()
        _ = try await folder.shell.rows("PRAGMA user_version = 99")
        let fault = try #require(await fault(opening: folder.database))
        #expect(fault.detail.contains("written by a newer gattherd"))
        #expect(fault.detail.contains("(version 99, this one knows \(Schema.steps.count))"))
        #expect(throws: fault) { try HistoryReader(path: folder.database) }
    }

    @Test(
        arguments: [
            ("PRAGMA application_id = 1; CREATE TABLE theirs (x)", "another program's database (application_id 1)"),
            ("PRAGMA user_version = 3; CREATE TABLE theirs (x)", "another program's database (application_id 0)"),
            ("PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = 99", "a newer gattherd"),
            ("PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = 1", nil),
            ("CREATE TABLE theirs (x); DROP TABLE theirs", nil),
        ] as [(String, String?)]
    )
    func `a database that the daemon refuses is a problem before the start`(sql: String, text: String?) async throws {
        _ = try await folder.shell.rows(sql)
        let problem = HistoryFileProblem(path: folder.database)
        #expect((problem?.preventsStart ?? false) == (text != nil))
        if let text { #expect(problem?.text.contains(text) == true) }
        try folder.write("newer values", to: "gattherd.db-wal")
        #expect(HistoryFileProblem(path: folder.database) == nil)
    }

    @Test func `a file from before the first release is refused and stays unchanged`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.close()
        _ = try await folder.shell.rows(
            "ALTER TABLE \(Schema.newest.table) RENAME COLUMN \(Schema.newest.column) TO former"
        )
        let before = try Data(contentsOf: URL(filePath: folder.database))
        let fault = try #require(await fault(opening: folder.database))
        #expect(fault.detail.contains("from before the first release; export it with that one"))
        #expect(throws: fault) { try HistoryReader(path: folder.database) }
        #expect(try Data(contentsOf: URL(filePath: folder.database)) == before)
    }

    @Test(
        arguments: [0..<100, 4096..<400_000, 118_784..<119_184]
    )
    func `a damaged file is moved aside with its WAL, and numbers continue above it`(damage: Range<Int>) async throws {
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

    @Test func `a damaged file in a read-only directory is a fault and stays unchanged`() throws {
        let text = "this is a letter, not a database"
        let path = try folder.write(text, to: "gattherd.db")
        let fault = #expect(throws: StoreFault.self) {
            try DamagedFile(path: path + "/nowhere").moveAside(at: Fixture.epoch)
        }
        #expect(fault?.detail.contains("cannot move the file aside") == true)
        #expect(try String(contentsOf: URL(filePath: path), encoding: .utf8) == text)
    }

    @Test func `a full disk fails only the batch that does not fit`() throws {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
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
        let logged = try file.readings(after: 0, limit: 10_000)
        #expect(logged.map(\.seq) == rows.map(\.seq).sorted())
    }

    @Test func `a series that first occurs in a failed batch is stored with the next batch`() throws {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
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

    @Test func `a locked file is awaited, and then reported as a transient fault`() throws {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        let other = try SQLiteConnection(path: folder.database, flags: 0x2)
        try file.connection.execute("PRAGMA busy_timeout = 10")
        try other.execute("BEGIN IMMEDIATE")
        let fault = #expect(throws: StoreFault.self) { try file.append(.plain(integers: 0..<1)) }
        #expect(fault?.isTransient == true)
        try other.execute("COMMIT")
        try file.append(.plain(integers: 0..<1))
        #expect(try HistoryReader(path: folder.database).allRows().count == 1)
    }

    @Test func `a closed history throws`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.close()
        try await history.close()
        let fault = await #expect(throws: StoreFault.self) { try await history.append(.plain(integers: 0..<1)) }
        #expect(fault?.detail.contains("closed") == true)
    }

    @Test func `a clean close leaves only the database, its lock and its sequence file`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<100))
        try await history.close()
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(files == ["gattherd.db", "gattherd.db-lock", "gattherd.db-seq"])
        #expect(try String(contentsOf: URL(filePath: folder.database + "-seq"), encoding: .utf8).hasPrefix("100\n"))
    }
}
