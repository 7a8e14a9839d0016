import FoundationEssentials
import GattherdHistory
import GattherdModel
import GattherdProcess
import TestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SequenceTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func seqs(_ folder: TemporaryFolder) throws -> [Int64] {
        try HistoryReader(path: folder.database).allRows().map(\.seq).sorted()
    }

    /// Copies files of a history whose writer may have them open: by another program, because closing a
    /// descriptor of the database in this one would drop SQLite's locks.
    private func copy(_ suffixes: [String], to other: TemporaryFolder) async throws {
        for suffix in suffixes {
            let copy = try ChildProcess("cp", [folder.database + suffix, other.database + suffix])
            #expect(await copy.wait() == .exited(0))
        }
    }

    @Test func `after a clean close numbers continue without a gap`() async throws {
        for round in 0..<3 {
            let history = try await ReadingHistory.open(folder)
            try await history.append(.plain(integers: 0..<(round + 1)))
            try await history.close()
        }
        #expect(try seqs(folder) == [1, 2, 3, 4, 5, 6])
    }

    @Test func `after a crash numbers start above every number that could have been used`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        let other = try TemporaryFolder()
        // An idle history copies its WAL into the database and truncates it.
        try await copy(["-wal", "", "-seq"], to: other)
        let next = try await ReadingHistory.open(other)
        try await next.append(.plain(integers: 0..<1))
        let all = try seqs(other)
        #expect(all.prefix(10) == Array(1...10)[...])
        #expect(try #require(all.last) > 10)
        withExtendedLifetime(history) {}
    }

    @Test(arguments: 0...8)
    func `a power loss that loses commits repeats no number`(eighths: Int) async throws {
        let history = try await ReadingHistory.open(folder)
        for round in 0..<20 { try await history.append(.plain(integers: round..<(round + 10))) }
        let given = try #require(try seqs(folder).last)
        let other = try TemporaryFolder()
        try await copy(["", "-wal", "-seq"], to: other)
        try truncate(other.database + "-wal", toEighths: eighths)

        let next = try await ReadingHistory.open(other)
        try await next.append(.plain(integers: 0..<1))
        let all = try seqs(other)
        #expect(try #require(all.last) > given)
        #expect(Set(all).count == all.count)
        withExtendedLifetime(history) {}
    }

    private func truncate(_ path: String, toEighths eighths: Int) throws {
        let file = URL(filePath: path)
        let log = try Data(contentsOf: file)
        try log.prefix(log.count * eighths / 8).write(to: file)
    }

    @Test func `a database restored from an older copy repeats no number`() async throws {
        var history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        try await history.close()
        let backup = try TemporaryFolder()
        try await copy([""], to: backup)
        history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 10..<500))
        try await history.close()

        try await copy(["-seq"], to: backup)
        let restored = try await ReadingHistory.open(backup)
        try await restored.append(.plain(integers: 0..<1))
        #expect(try seqs(backup).last == 501)
    }

    @Test func `a lost database repeats no number`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        let other = try TemporaryFolder()
        try await copy(["-seq"], to: other)
        let next = try await ReadingHistory.open(other)
        #expect(try await next.acknowledged() == 0)
        try await next.append(.plain(integers: 0..<1))
        #expect(try #require(try seqs(other).last) > 10)
        withExtendedLifetime(history) {}
    }

    @Test func `a missing sequence file is reported; the database's mark is used`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        let other = try TemporaryFolder()
        try await copy(["", "-wal"], to: other)
        try truncate(other.database + "-wal", toEighths: 8)
        let recorder = LogRecorder()
        let next = try await ReadingHistory.open(path: other.database, consumers: .one, log: recorder.log)
        #expect(recorder.messages == ["the sequence file is missing"])
        try await next.append(.plain(integers: 0..<1))
        #expect(try #require(try seqs(other).last) > 10)
        withExtendedLifetime(history) {}
    }

    @Test(
        arguments: ["", "12", "x\n", "-5\n", "99999999999999999999\n", "9223372036854775807\n", "\u{0}\u{0}\n"]
    )
    func `an invalid sequence file is reported and replaced`(content: String) async throws {
        var history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        try await history.close()
        try folder.write(content, to: "gattherd.db-seq")
        let recorder = LogRecorder()
        history = try await ReadingHistory.open(path: folder.database, consumers: .one, log: recorder.log)
        #expect(recorder.messages == ["the sequence file cannot be read"])
        try await history.append(.plain(integers: 0..<1))
        #expect(try seqs(folder).last == 11)
    }

    @Test func `a new history reports no missing file`() async throws {
        let recorder = LogRecorder()
        let history = try await ReadingHistory.open(path: folder.database, consumers: .one, log: recorder.log)
        #expect(recorder.messages.isEmpty)
        withExtendedLifetime(history) {}
    }

    @Test func `a clock that is set back keeps the numbers in order`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain([.integer(1)], at: Fixture.epoch))
        try await history.append(.plain([.integer(2)], at: Timestamp(microseconds: 0)))
        try await history.append(.plain([.integer(3)], at: Fixture.epoch))
        let rows = try await folder.shell.rows("SELECT seq, value FROM history ORDER BY seq")
        #expect(rows == [["1", "1"], ["2", "2"], ["3", "3"]])
    }

    @Test func `more readings than a block reserves are numbered without a gap`() async throws {
        let history = try await ReadingHistory.open(folder, consumers: [])
        let batch = ReadingBatch.plain(integers: 0..<70_000)
        for _ in 0..<4 { try await history.append(batch) }
        let facts = try await folder.shell.rows("SELECT min(seq), max(seq), count(DISTINCT seq) FROM history")
        #expect(facts == [["1", "280000", "280000"]])
    }
}
