import FoundationEssentials
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// Other programs that delete, rename or replace the database while the daemon has it open.
@Suite(.timeLimit(.minutes(2)))
struct ReplacedFileTests {
    enum Change: CaseIterable {
        case deleted
        case deletedWithAllFiles
        case renamed
        case replaced
    }

    private let folder: TemporaryFolder
    private let history: ReadingHistory

    init() async throws {
        folder = try TemporaryFolder()
        history = try await ReadingHistory.open(folder)
    }

    private var renamed: String { folder.file("renamed.db") }

    private func make(_ change: Change) async throws {
        let files = FileManager.default
        switch change {
        case .deleted: try files.removeItem(atPath: folder.database)
        case .deletedWithAllFiles:
            for suffix in ["", "-wal", "-shm", "-seq", "-lock"] {
                try files.removeItem(atPath: folder.database + suffix)
            }
        case .renamed: try files.moveItem(atPath: folder.database, toPath: renamed)
        case .replaced:
            let other = try await ReadingHistory.open(path: folder.file("other.db"), consumers: .one, log: .silent)
            try await other.append(.plain(integers: 0..<3))
            try await other.close()
            try files.removeItem(atPath: folder.database)
            try files.moveItem(atPath: folder.file("other.db"), toPath: folder.database)
        }
    }

    private func numbers(_ path: String) throws -> [Int64] {
        let reader = try HistoryReader(path: path)
        #expect(try reader.check().isEmpty)
        return try reader.allRows().map(\.seq).sorted()
    }

    @Test(arguments: Change.allCases)
    func `the path of a file that another program changed is opened again`(change: Change) async throws {
        try await history.append(.plain(integers: 0..<10))
        try await make(change)
        try await history.append(.plain(integers: 10..<20))
        await history.reopenIfReplaced()
        #expect(history.status.fault == nil)
        try await history.append(.plain(integers: 20..<30))
        #expect(try numbers(folder.database) == (change == .replaced ? [1, 2, 3] : []) + Array(21...30))
        if change == .renamed { #expect(try numbers(renamed) == Array(1...20)) }
        try await history.close()
        #expect(try numbers(folder.database).count == (change == .replaced ? 13 : 10))
    }

    @Test func `consumers learn that entries are gone with a deleted file, and continue`() async throws {
        try await history.append(.plain(integers: 0..<10))
        try await history.acknowledge(through: 4)
        try await make(.deleted)
        await history.reopenIfReplaced()
        try await history.append(.plain(integers: 10..<20))
        let batch = try await history.consumer("mqtt").entries(after: 4, limit: 100)
        #expect(batch.missing == JournalGap(after: 4, through: 10, reason: "another file"))
        #expect(try await history.readings(after: 10, limit: 100).map(\.seq) == Array(11...20))
        let path = folder.database
        #expect(await history.notices.first { $0 == .lost(path: path) } != nil)
        try await history.close()
    }

    @Test func `a history that was deleted with its folder is reported`() async throws {
        let place = folder.file("place")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        let (entries, said) = AsyncStream.makeStream(of: LogEntry.self)
        let clock = GatewayClock(now: { Fixture.epoch })
        var options = HistoryOptions(path: place + "/gattherd.db", consumers: .one, clock: clock)
        // A pass each second.
        options.limits.samples = .seconds(1)
        let history = try await ReadingHistory.open(options, log: Log(threshold: .error) { said.yield($0) })
        try FileManager.default.removeItem(atPath: place)
        for await entry in entries where entry.message.contains("deleted with its folder") { break }
        // The number file cannot be written any more.
        await #expect(throws: StoreFault.self) { try await history.close() }
    }

    @Test func `a file stays open while it is in place or its folder is missing`() async throws {
        try await history.append(.plain(integers: 0..<10))
        let before = await history.identity
        await history.reopenIfReplaced()
        #expect(await history.identity == before)
        try FileManager.default.moveItem(atPath: folder.path, toPath: folder.path + ".moved")
        await history.reopenIfReplaced()
        try FileManager.default.moveItem(atPath: folder.path + ".moved", toPath: folder.path)
        #expect(await history.identity == before)
        try await history.close()
        #expect(try numbers(folder.database) == Array(1...10))
    }
}

extension ReadingHistory {
    /// The identity of one opening of the file.
    fileprivate var identity: ObjectIdentifier? { file.map { ObjectIdentifier($0) } }
}
