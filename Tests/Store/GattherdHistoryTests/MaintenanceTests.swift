import FoundationEssentials
import GattherdLog
import GattherdModel
import Glibc
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(2)))
struct MaintenanceTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func size(_ name: String = "gattherd.db") throws -> Int {
        try FileManager.default.attributesOfItem(atPath: folder.file(name))[.size] as? Int ?? 0
    }

    @Test func `a good file has no findings, also while it is written`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<1000))
        let reader = try HistoryReader(path: folder.database)
        #expect(try reader.check().isEmpty)
        let contents = try reader.contents()
        #expect(contents.samples == 1000)
        #expect(contents.logged == 1000)
        #expect(contents.span?.lowerBound == Fixture.epoch)
        #expect(contents.span?.upperBound == Fixture.epoch.advanced(by: .microseconds(999)))
        #expect(contents.mark >= 1000)
        try await history.close()
    }

    @Test(arguments: [[.min], [.min, .max], [.max, -1]] as [[Int64]])
    func `summaries of extreme integers can be checked and repaired`(values: [Int64]) throws {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        try file.append(.plain(values.map { .integer($0) }))
        try file.append(.plain([.integer(1)], at: Fixture.epoch.advanced(by: .seconds(7200))))
        while file.isUpkeepDue { try file.upkeep() }
        #expect(try HistoryReader(path: folder.database).check().isEmpty)
        try file.connection.execute("UPDATE minute SET n = n + 1 WHERE ts = (SELECT min(ts) FROM minute)")
        let check = try SummaryCheck(file.connection)
        #expect(try check.differences().map(\.resolution) == [.minutes, .hours])
    }

    @Test(
        arguments: [
            "UPDATE sample SET series = 99", "UPDATE outbox SET last = 0", "UPDATE minute SET quantity = 99",
            "UPDATE hour SET n = 0", "PRAGMA foreign_keys = OFF; DELETE FROM stream",
        ]
    )
    func `contradicting rows are found`(sql: String) throws {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        try file.append(.plain(integers: 0..<10))
        try file.append(.plain([.integer(1)], at: Fixture.epoch.advanced(by: .seconds(7200))))
        while file.isUpkeepDue { try file.upkeep() }
        try file.connection.execute(sql)
        #expect(try !HistoryReader(path: folder.database).check().isEmpty)
    }

    @Test func `damaged pages are found`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<5000))
        try await history.close()
        var octets = try Data(contentsOf: URL(filePath: folder.database))
        for index in octets.count - 8192..<octets.count { octets[index] = 0xAA }
        try octets.write(to: URL(filePath: folder.database))
        #expect(try !HistoryReader(path: folder.database).check().isEmpty)
    }

    @Test func `a backup is a consistent snapshot and can replace the history`() async throws {
        let history = try await ReadingHistory.open(folder)
        async let writing: Void = append(batches: 60, to: history)
        let copy = folder.file("copy.db")
        try HistoryReader(path: folder.database).backUp(to: copy)
        try await writing
        try await history.close()

        let rows = try HistoryReader(path: copy).allRows().map(\.seq)
        #expect(rows == (0..<rows.count).map { Int64($0) + 1 })
        #expect(rows.count.isMultiple(of: 100))
        #expect(try HistoryReader(path: copy).check().isEmpty)
        let restored = try await ReadingHistory.open(path: copy, consumers: .one, log: .silent)
        try await restored.append(.plain(integers: 0..<1))
        #expect(restored.newestSeq > Int64(rows.count))
        try await restored.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".part") } == [])
    }

    private func append(batches: Int, to history: ReadingHistory) async throws {
        for batch in 0..<batches {
            let time = Fixture.epoch.advanced(by: .milliseconds(batch))
            try await history.append(.plain((0..<100).map { .integer($0) }, at: time))
        }
    }

    private func appendIfOpen(_ history: ReadingHistory?) async throws {
        if let history { try await append(batches: 20, to: history) }
    }

    @Test func `only the owner can read a backup, and a link in the place of its draft is not followed`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.close()
        let (copy, victim) = (folder.file("copy.db"), try folder.write("mine", to: "victim"))
        try FileManager.default.createSymbolicLink(atPath: copy + ".part", withDestinationPath: victim)
        try HistoryReader(path: folder.database).backUp(to: copy)
        var status = stat()
        #expect(unsafe lstat(copy, &status) == 0)
        #expect(status.st_mode == S_IFREG | 0o600)
        #expect(try String(contentsOf: URL(filePath: victim), encoding: .utf8) == "mine")
    }

    @Test func `a backup overwrites no file and leaves nothing after a failure`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.close()
        let reader = try HistoryReader(path: folder.database)
        let taken = try folder.write("mine", to: "taken")
        #expect(throws: StoreFault.self) { try reader.backUp(to: taken) }
        #expect(try String(contentsOf: URL(filePath: taken), encoding: .utf8) == "mine")
        #expect(throws: StoreFault.self) { try reader.backUp(to: folder.file("nowhere/copy")) }
        #expect(!FileManager.default.fileExists(atPath: taken + ".part"))
    }

    @Test(
        arguments: [true, false]
    )
    func `compaction frees all space, with or without a daemon, and commits continue`(isOnline: Bool) async throws {
        let history = try await ReadingHistory.open(folder)
        try await append(batches: 300, to: history)
        try await history.close()
        _ = try await folder.shell.rows("DELETE FROM sample WHERE seq < 29000; DELETE FROM outbox WHERE last < 29000")
        let daemon = isOnline ? try await ReadingHistory.open(folder, consumers: []) : nil
        let before = try size()
        async let writing: Void = appendIfOpen(daemon)
        let compaction = try Compaction(path: folder.database)
        try await writing
        try await daemon?.close()
        #expect(compaction.isOnline == isOnline)
        #expect(isOnline ? compaction.before <= before : compaction.before == before, "a daemon may have begun")
        #expect(compaction.after < before / 3)
        #expect(try size() < before / 3)
        #expect(try HistoryReader(path: folder.database).check().isEmpty)
        #expect(try HistoryReader(path: folder.database).allRows().count == (isOnline ? 3001 : 1001))
        #expect(try await folder.shell.value("PRAGMA auto_vacuum") == "2")
    }

    @Test(.enabled(if: SmallFileSystem.isPossible))
    func `a WAL that a reader let fill the disk is used again after the reader's end`() throws {
        let disk = try SmallFileSystem(kibibytes: 1024)
        let file = try HistoryFile(path: disk.path + "/h.db", consumers: .one, log: .silent)
        try file.append(.plain(integers: 0..<10))
        try file.flushPendingState()
        let reader = try HistoryDatabase.openForReading(disk.path + "/h.db")
        try reader.execute("BEGIN; SELECT count(*) FROM sample")
        // The same page again and again: the database needs no room, only the WAL does.
        let strap = DeviceRecord(device: "strap", address: "C0:FF:EE:00:00:01")
        var time = Fixture.epoch
        func record() throws(StoreFault) {
            time = time.advanced(by: .seconds(1))
            try file.record(strap, seenAt: time)
        }
        let fault = #expect(throws: StoreFault.self) { while true { try record() } }
        #expect(fault?.kind == .full)
        try reader.execute("COMMIT")
        try? record()
        for _ in 0..<100 { try record() }
    }
}
