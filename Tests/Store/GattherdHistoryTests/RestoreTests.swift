import Foundation
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(2)))
struct RestoreTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A history with 100 readings, a backup of them, and 400 more readings.
    private func makeBackup() async throws -> String {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<100))
        let backup = folder.file("backup.db")
        try HistoryReader(path: folder.database).backUp(to: backup)
        try await history.append(.plain((100..<500).map { .integer($0) }, at: Fixture.epoch.advanced(by: .seconds(1))))
        try await history.close()
        return backup
    }

    private func seqs() throws -> [Int64] { try HistoryReader(path: folder.database).allRows().map(\.seq) }

    /// True if the rows are those of the backup and one more.
    private func restored() throws -> Bool { try seqs().count == 101 && seqs().prefix(100) == Array(1...100)[...] }

    private func append() async throws {
        let history = try await ReadingHistory.open(folder)
        let later = Fixture.epoch.advanced(by: .seconds(9))
        try await history.append(.plain([.integer(7)], at: later))
        try await history.close()
    }

    @Test func `a restore replaces the history, repeats no number and keeps the replaced file`() async throws {
        let backup = try await makeBackup()
        let before = try Data(contentsOf: URL(filePath: backup))
        let restore = try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch)
        #expect(restore.samples == 100 && restore.size > 0 && !restore.skipsNumbers)
        #expect(try seqs() == Array(1...100))
        try await append()
        #expect(try restored() && seqs().last ?? 0 > 500)
        #expect(try HistoryReader(path: try #require(restore.replaced)).allRows().count == 500)
        #expect(try Data(contentsOf: URL(filePath: backup)) == before)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.contains(".restore") }
        #expect(left.isEmpty)
    }

    @Test func `a restore moves the WAL of a crash aside together with its database`() async throws {
        let backup = try await makeBackup()
        do {
            let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
            try file.append(.plain([.integer(1)], at: Fixture.epoch.advanced(by: .seconds(5))))
            file.connection.keepsWALOnClose(true)
        }
        #expect(FileManager.default.fileExists(atPath: folder.database + "-wal"))
        let restore = try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch)
        #expect(try seqs() == Array(1...100))
        #expect(try HistoryReader(path: try #require(restore.replaced)).allRows().count == 501)
        try await append()
        #expect(try restored() && seqs().last ?? 0 > 501)
    }

    @Test func `a restore over a lost or damaged history does not apply the old WAL`() async throws {
        let backup = try await makeBackup()
        try FileManager.default.removeItem(atPath: folder.database)
        try folder.write("a log of nobody", to: "gattherd.db-wal")
        #expect(try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch).replaced == nil)
        #expect(try seqs() == Array(1...100))
        var octets = try Data(contentsOf: URL(filePath: folder.database))
        for index in octets.indices where index > 4096 { octets[index] = 0xAA }
        try octets.write(to: URL(filePath: folder.database))
        let restore = try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch)
        #expect(try Data(contentsOf: URL(filePath: try #require(restore.replaced))) == octets)
        try await append()
        #expect(try restored() && seqs().last ?? 0 > 500)
    }

    @Test func `without the sequence file the replaced history's numbers count; without both, numbers are skipped`()
        async throws
    {
        let backup = try await makeBackup()
        try FileManager.default.removeItem(atPath: folder.database + "-seq")
        #expect(try !Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch).skipsNumbers)
        try await append()
        #expect(try restored() && seqs().last ?? 0 > 500)
        for suffix in ["", "-seq"] { try FileManager.default.removeItem(atPath: folder.database + suffix) }
        #expect(try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch).skipsNumbers)
        try await append()
        #expect(try #require(try seqs().last) > 100_000_000_000)
    }

    @Test func `a restore is refused while the daemon runs`() async throws {
        let backup = try await makeBackup()
        let history = try await ReadingHistory.open(folder)
        let fault = #expect(throws: StoreFault.self) {
            try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch)
        }
        #expect(fault?.kind == .inUse)
        try await history.close()
        #expect(try seqs().count == 500)
    }

    @Test(
        arguments: [
            ("text", "this is text, not a backup; name a file that 'gattherd db backup' has written"),
            ("empty", "this is an empty file, not a backup; name a file"), ("broken", "the file is damaged"),
            ("other", "another program's database (application_id 0), not a history; name a file"),
            ("own", "this is the history itself; name a file"), ("missing", "No such file or directory; name a file"),
        ]
    )
    func `an invalid backup is refused and the history stays`(kind: String, message: String) async throws {
        var backup = try await makeBackup()
        switch kind {
        case "text": try folder.write("no backup", to: "backup.db")
        case "empty": try folder.write("", to: "backup.db")
        case "other":
            try FileManager.default.removeItem(atPath: backup)
            _ = try await SQLiteShell(backup).rows("CREATE TABLE theirs (x)")
        case "own": backup = folder.database
        case "missing": backup = folder.file("missing.db")
        default:
            var octets = try Data(contentsOf: URL(filePath: backup))
            for index in octets.indices where index > 8192 { octets[index] = 0xAA }
            try octets.write(to: URL(filePath: backup))
        }
        let fault = #expect(throws: StoreFault.self) {
            try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch)
        }
        #expect(fault?.detail.contains(message) == true)
        #expect(try seqs().count == 500)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.contains(".re") }.isEmpty)
    }

    @Test func `restored files belong to the owner of the directory`() async throws {
        let backup = try await makeBackup()
        guard geteuid() == 0 else { return }
        unsafe chown(folder.path, 12_345, 23_456)
        unsafe chmod(folder.database, 0o440)
        _ = try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch)
        for suffix in ["", "-seq", "-lock"] {
            var status = stat()
            unsafe stat(folder.database + suffix, &status)
            #expect(status.st_uid == 12_345 && status.st_gid == 23_456, "\(suffix)")
            #expect(status.st_mode & 0o600 == 0o600)
        }
    }
}
