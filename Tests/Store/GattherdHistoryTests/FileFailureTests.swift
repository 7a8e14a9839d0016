import FoundationEssentials
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(3)))
struct FileFailureTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func options(_ path: String, whenFull: WhenFull = .deliver) -> HistoryOptions {
        var options = HistoryOptions(path: path, consumers: .one, clock: GatewayClock(now: { Fixture.epoch }))
        options.whenFull = whenFull
        options.timeout = .zero
        options.pause = .milliseconds(20)
        return options
    }

    /// Appends batches of ten until `isEnough`; gives the number of readings that were taken.
    private func append(
        to history: ReadingHistory,
        until isEnough: @Sendable (HistoryStatus) -> Bool
    ) async throws(StoreFault) -> Int {
        var count = 0
        repeat {
            try await history.append(.plain(integers: count..<(count + 10)))
            count += 10
        } while !isEnough(history.status)
        return count
    }

    private func isMarked(_ reading: JournalReading) -> Bool {
        reading.json.contains(#""source":"notify","stored":false,"#)
    }

    @Test(
        .enabled(if: SmallFileSystem.isPossible)
    )
    func `on a full disk readings are delivered unstored, marked and in order, until there is room`() async throws {
        let disk = try SmallFileSystem(kibibytes: 1024)
        let history = try await ReadingHistory.open(options(disk.path + "/h.db"), log: .silent)
        var count = try await append(to: history) { _ in true }
        let ballast = try disk.fill()
        count += try await append(to: history) { $0.unstored >= 500 }
        #expect(try await !history.append(.plain(integers: count..<(count + 1))))
        count += 1
        #expect(history.status.fault?.kind == .full)
        #expect(history.newestSeq == Int64(try await history.readings(after: 0, limit: 100_000).last?.seq ?? 0))

        try FileManager.default.removeItem(atPath: ballast)
        count += try await append(to: history) { $0.fault == nil }
        let logged = try await history.readings(after: 0, limit: 100_000)
        #expect(logged.count == count)
        #expect(logged.map(\.seq) == logged.map(\.seq).sorted())
        #expect(Set(logged.map(\.seq)).count == count)
        #expect(logged.filter(isMarked).count == history.status.unstored)
        let stored = try HistoryReader(path: disk.path + "/h.db").allRows().map(\.seq).sorted()
        #expect(stored == logged.filter { !isMarked($0) }.map(\.seq))
        #expect(history.status.undelivered == 0)

        try await history.acknowledge(through: history.newestSeq)
        #expect(try await history.readings(after: 0, limit: 1).filter(isMarked).isEmpty)
        #expect(await states(history) == ["failing", "delivering_unstored", "recovered"])
        try await history.close()
    }

    /// The states reported until the history is in use again.
    private func states(_ history: ReadingHistory) async -> [String] {
        var states: [String] = []
        for await notice in history.notices {
            guard case .text(let state)? = notice.members.first?.value else { continue }
            states.append(state)
            if case .recovered = notice { break }
        }
        return states
    }

    @Test(
        .enabled(if: SmallFileSystem.isPossible)
    )
    func `readings wait until they are stored if when_full is hold`() async throws {
        let disk = try SmallFileSystem(kibibytes: 1024)
        let history = try await ReadingHistory.open(options(disk.path + "/h.db", whenFull: .hold), log: .silent)
        let ballast = try disk.fill()
        let fault = await #expect(throws: StoreFault.self) { try await append(to: history) { _ in false } }
        #expect(fault?.kind == .full)
        let before = try await history.readings(after: 0, limit: 10_000).count
        #expect(history.status.unstored == 0)
        try FileManager.default.removeItem(atPath: ballast)
        try await history.append(.plain(integers: 0..<10))
        #expect(try await history.readings(after: 0, limit: 10_000).count == before + 10)
        #expect(history.status.fault == nil)
        #expect(await states(history) == ["failing", "recovered"])
        try await history.close()
    }

    @Test(.enabled(if: SmallFileSystem.isPossible))
    func `numbers of readings on a full disk are reserved and never repeated`() async throws {
        let disk = try SmallFileSystem(kibibytes: 1024)
        let path = disk.path + "/h.db"
        var newest: Int64 = 0
        do {
            let history = try await ReadingHistory.open(options(path), log: .silent)
            try await history.append(.plain(integers: 0..<10))
            _ = try disk.fill()
            for _ in 0..<12 { try await history.append(.plain(integers: 0..<10_000)) }
            newest = history.newestSeq
        }
        #expect(newest > 110_000)
        let file = SequenceFile(path: path + "-seq")
        guard case .mark(let mark) = file.read() else {
            Issue.record("the mark is gone")
            return
        }
        #expect(mark >= newest)
    }

    @Test(
        .enabled(if: SmallFileSystem.isPossible),
        arguments: [true, false]
    )
    func `a history opens on a full disk and works once there is room`(isNew: Bool) async throws {
        let disk = try SmallFileSystem(kibibytes: 1024)
        let path = disk.path + "/h.db"
        if !isNew {
            let history = try await ReadingHistory.open(options(path), log: .silent)
            try await history.append(.plain(integers: 0..<10))
            try await history.close()
        }
        let ballast = try disk.fill()
        let history = try await ReadingHistory.open(options(path), log: .silent)
        #expect(history.status.fault?.kind == .full)
        var heads = history.heads().makeAsyncIterator()
        let unknown = await heads.next()
        #expect(unknown == -1)
        #expect(history.newestSeq == 0)
        await #expect(throws: StoreFault.self) { try await history.append(.plain(integers: 0..<1)) }
        try FileManager.default.removeItem(atPath: ballast)
        #expect(await states(history).last == "recovered")
        let head = await heads.next() ?? -1
        #expect(head >= (isNew ? 0 : 10))
        try await history.append(.plain(integers: 0..<10))
        #expect(try HistoryReader(path: path).allRows().count == (isNew ? 10 : 20))
        try await history.close()
    }

    @Test(.enabled(if: SmallFileSystem.isPossible))
    func `a read-only disk at the start is retried`() async throws {
        let disk = try SmallFileSystem(kibibytes: 1024)
        #expect(disk.setReadOnly(true))
        let history = try await ReadingHistory.open(options(disk.path + "/h.db"), log: .silent)
        #expect(history.status.fault?.kind == .disk)
        #expect(disk.setReadOnly(false))
        #expect(await states(history).last == "recovered")
        try await history.append(.plain(integers: 0..<10))
        try await history.close()
    }

    @Test func `after an I/O error the file is reopened with its numbers and backlog`() async throws {
        let history = try await ReadingHistory.open(options(folder.database), log: .silent)
        try await history.append(.plain(integers: 0..<10))
        try await history.acknowledge(through: 4)
        let before = await history.connection
        await history.recordFailure(StoreFault("disk I/O error", .disk))
        try await eventually { await history.connection != before }
        try await history.append(.plain(integers: 10..<20))
        #expect(try await history.readings(after: 0, limit: 100).map(\.seq) == Array(1...20))
        #expect(try await history.acknowledged() == 4)
        #expect(history.status.fault == nil)
        try await history.close()
        #expect(try HistoryReader(path: folder.database).allRows().map(\.seq).sorted() == Array(1...20))
        #expect(try await folder.shell.value("PRAGMA integrity_check") == "ok")
    }

    @Test func `a damaged file in use is moved aside, and one that passes the check is opened again`() async throws {
        let history = try await ReadingHistory.open(options(folder.database), log: .silent)
        try await history.append(.plain(integers: 0..<10))
        await history.recordFailure(StoreFault("malformed", .damaged))
        #expect(await states(history) == ["failing", "recovered"])
        #expect(try HistoryReader(path: folder.database).allRows().count == 10)

        try await history.append(.plain(integers: 0..<5000))
        try await history.flushPendingState()
        try Data(repeating: 0xAA, count: 300_000).write(to: URL(filePath: folder.database))
        await history.recordFailure(StoreFault("malformed", .damaged))
        #expect(await states(history) == ["failing", "moved_aside", "recovered"])
        try await history.append(.plain(integers: 0..<10))
        #expect(try HistoryReader(path: folder.database).allRows().map(\.seq) == Array(5011...5020))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).contains { $0.contains(".corrupt-") })
        try await history.close()
    }

    @Test func `a file with damage that the check misses is moved aside the second time`() async throws {
        let history = try await ReadingHistory.open(options(folder.database), log: .silent)
        for expected in [["failing", "recovered"], ["failing", "moved_aside", "recovered"]] {
            try await history.append(.plain(integers: 0..<10))
            await history.recordFailure(StoreFault("malformed", .damaged))
            try await history.append(.plain(integers: 0..<10))
            #expect(await states(history) == expected)
        }
        try await history.append(.plain(integers: 0..<10))
        #expect(try HistoryReader(path: folder.database).allRows().map(\.seq).suffix(10) == Array(41...50))
        try await history.close()
    }

    @Test func `after an hour without damage the count starts again`() {
        let start = ContinuousClock.now
        var damages = DamageCount()
        damages.add(at: start)
        #expect(!damages.isRepeated)
        damages.add(at: start.advanced(by: .seconds(3600)))
        #expect(!damages.isRepeated)
        damages.add(at: start.advanced(by: .seconds(7199)))
        #expect(damages.isRepeated)
    }
}

extension ReadingHistory {
    /// The identity of the open file's connection; a connection that is made later may have that of a closed one.
    fileprivate var connection: ObjectIdentifier? { file.map { ObjectIdentifier($0.connection) } }

    fileprivate func flushPendingState() throws(StoreFault) {
        try file?.flushPendingState()
    }
}

@Suite struct UnstoredReadingsTests {
    private func reading(_ seq: Int64) -> JournalReading {
        .test(seq)
    }

    /// The numbers of both, if the file has these readings.
    private func merged(
        _ unstored: inout UnstoredReadings,
        _ stored: [Int64],
        after seq: Int64,
        limit: Int,
        for consumer: String = "a"
    ) -> [Int64] {
        let entries = stored.prefix(max(0, limit)).map { JournalEntry.reading(reading($0)) }
        let isComplete = stored.count < limit
        let batch = JournalBatch(entries, through: isComplete ? 1000 : entries.last?.seq ?? seq)
        let found = unstored.merged(with: batch, after: seq, limit: limit, isComplete: isComplete, for: consumer)
        return found.entries.map(\.seq)
    }

    @Test func `beyond the bound the oldest unstored readings are dropped and counted`() {
        var unstored = UnstoredReadings(consumers: ["a", "b"], capacity: JournalReading.test(1).size * 10)
        unstored.append((1...8).map { reading($0) })
        #expect(merged(&unstored, [], after: 0, limit: 8) == Array(1...8))
        #expect(merged(&unstored, [], after: 0, limit: 3, for: "b") == [1, 2, 3])
        unstored.append((9...15).map { reading($0) })
        #expect(unstored.left == 10)
        #expect(unstored.dropped == 2, "b had not got them")
        #expect(merged(&unstored, [], after: 3, limit: 100) == Array(6...15))
        unstored.acknowledge(through: 14, by: "a")
        #expect(unstored.left == 10, "b may still need them")
        unstored.acknowledge(through: 15, by: "b")
        #expect(unstored.left == 1)
        #expect(unstored.count == 15)
    }

    @Test func `unstored and stored readings are delivered in the order of their numbers`() {
        var unstored = UnstoredReadings(consumers: ["a"])
        unstored.append([3, 4, 9].map { reading($0) })
        #expect(merged(&unstored, [1, 2, 5, 6], after: 0, limit: 4) == [1, 2, 3, 4])
        #expect(merged(&unstored, [1, 2, 5, 6], after: 0, limit: 100) == [1, 2, 3, 4, 5, 6, 9])
        #expect(merged(&unstored, [], after: 4, limit: -1).isEmpty)
    }

    @Test(arguments: [(1, 3), (2, 4), (3, 20)] as [(Int, Int64)])
    func `a full batch of unstored readings is complete up to its last one`(limit: Int, through: Int64) {
        var unstored = UnstoredReadings(consumers: ["a"])
        unstored.append([3, 4, 9].map { reading($0) })
        let stored = JournalBatch([], through: 20)
        let batch = unstored.merged(with: stored, after: 0, limit: limit, isComplete: true, for: "a")
        #expect(batch.entries.map(\.seq) == Array([3, 4, 9].prefix(limit)))
        #expect(batch.through == through)
    }

    @Test func `unstored readings fill the gaps of the file, and dropped readings remain a gap`() {
        var unstored = UnstoredReadings(consumers: ["a"])
        unstored.append([3, 4, 9].map { reading($0) })
        func next(after seq: Int64) -> JournalBatch {
            let gap = JournalGap(after: seq, through: 20, reason: "lost")
            return unstored.merged(with: JournalBatch(missing: gap), after: seq, limit: 9, isComplete: false, for: "a")
        }
        #expect(next(after: 0).missing == JournalGap(after: 0, through: 2, reason: "lost"))
        #expect(next(after: 2).entries.map(\.seq) == [3, 4] && next(after: 2).through == 4)
        #expect(next(after: 4).missing == JournalGap(after: 4, through: 8, reason: "lost"))
        #expect(next(after: 8).entries.map(\.seq) == [9])
        #expect(next(after: 9).missing == JournalGap(after: 9, through: 20, reason: "lost"))
    }
}
