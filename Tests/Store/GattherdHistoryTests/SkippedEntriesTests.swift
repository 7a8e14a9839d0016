import GattherdLog
import GattherdModel
import GattherdProcess
import TestKit
import Testing

@testable import GattherdHistory

/// Outputs that skip entries beyond their longest backlog.
@Suite(.timeLimit(.minutes(1)))
struct SkippedEntriesTests {
    private static let consumers = [
        JournalConsumerOptions(name: "mqtt"), JournalConsumerOptions(name: "influx", longestBacklog: 10),
    ]

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func `an output that is too far behind skips the oldest readings, which is reported and counted`()
        async throws
    {
        let history = try await ReadingHistory.open(folder, consumers: Self.consumers)
        try await history.append(.plain(integers: 1...100))
        var gaps: [HistoryNotice] = []
        for await notice in history.notices {
            guard case .skipped(_, _, _, let through) = notice else { continue }
            gaps.append(notice)
            if through == 90 { break }
        }
        #expect(gaps == [.skipped(output: "influx", readings: 90, after: 0, through: 90)])
        #expect(history.status.skipped == ["influx": 90])
        let influx = history.consumer("influx")
        let gap = JournalGap(after: 0, through: 90, reason: "more than the longest backlog")
        #expect(influx.recent(after: 0, limit: 100) == nil)
        #expect(try await influx.entries(after: 0, limit: 100) == JournalBatch(missing: gap))
        #expect(influx.recent(after: 90, limit: 100)?.readings.map(\.seq) == Array(91...100))
        #expect(try await influx.entries(after: 90, limit: 100).readings.map(\.seq) == Array(91...100))
        #expect(try await history.consumer("mqtt").entries(after: 0, limit: 200).readings.count == 100)
        try await history.close()
    }

    @Test func `entries that an output holds without having delivered them count as skipped`() async throws {
        var history = try await ReadingHistory.open(folder, consumers: Self.consumers)
        try await history.append(.plain(integers: 1...8))
        #expect(history.consumer("influx").recent(after: 0, limit: 5)?.readings.count == 5)
        #expect(try await history.consumer("influx").entries(after: 5, limit: 2).readings.count == 2)
        try await history.append(.plain(integers: 9...100))
        for await notice in history.notices {
            guard case .skipped = notice else { continue }
            #expect(notice == .skipped(output: "influx", readings: 90, after: 0, through: 90))
            break
        }
        try await history.close()
        history = try await ReadingHistory.open(folder, consumers: Self.consumers)
        #expect(try await history.consumer("influx").acknowledged() == 90)
        try await history.close()
    }

    @Test func `the event of a skip does not cause the next skip`() throws {
        let file = try HistoryFile(
            path: folder.database,
            consumers: [JournalConsumerOptions(name: "influx", longestBacklog: 1000)],
            clock: GatewayClock(now: { Fixture.epoch }),
            log: .silent
        )
        try file.append(.plain(integers: 1...1000))
        var skipped: [Int] = []
        for value in 1001...1062 {
            try file.append(.plain(integers: [value]))
            while file.isUpkeepDue {
                try file.upkeep()
                for gap in file.drainGaps() {
                    skipped.append(gap.readings)
                    let event = LifecycleEvent(time: Fixture.epoch, kind: "output", ["state": .text("skipped")])
                    try file.record([event])
                }
            }
        }
        // Of the limit 1000, a sixteenth is 62. The first skip leaves room for 62 entries: its event and 61 readings.
        #expect(skipped == [63])
        #expect(file.journal?.cursor(of: "influx") == 63)
    }

    /// Copies the files of a history, as a crash at this moment leaves them.
    private func crash(_ folder: TemporaryFolder) async throws -> TemporaryFolder {
        let other = try TemporaryFolder()
        for suffix in ["", "-wal", "-seq"] {
            let copy = try ChildProcess("cp", [folder.database + suffix, other.database + suffix])
            #expect(await copy.wait() == .exited(0))
        }
        return other
    }

    private func append(_ values: ClosedRange<Int>, to history: ReadingHistory) async throws {
        try await history.append(.plain(integers: values))
        try await history.consumer("mqtt").acknowledge(through: history.newestSeq)
    }

    /// Expects that this number of readings waits for `influx`, and that it has skipped none.
    private func expect(_ count: Int, in history: ReadingHistory) async throws {
        let influx = history.consumer("influx")
        let cursor = try await influx.acknowledged()
        let waiting = try await influx.entries(after: cursor, limit: 100)
        #expect(waiting.missing == nil && waiting.readings.count == count)
        let newest = history.newestSeq
        #expect(newest - cursor - history.status.unused.count(after: cursor, through: newest) == count)
        #expect(history.status.skipped.isEmpty)
    }

    @Test func `numbers that crashes leave out do not count as waiting`() async throws {
        var history = try await ReadingHistory.open(folder, consumers: Self.consumers)
        try await append(1...4, to: history)
        let crashed = try await crash(folder)
        try await history.close()
        // The numbers are missing behind the entries of the file, and in the next run between them.
        for run in 1...2 {
            history = try await ReadingHistory.open(crashed, consumers: Self.consumers)
            try await append(1...2, to: history)
            try await expect(4 + 2 * run, in: history)
            try await history.close()
        }
        history = try await ReadingHistory.open(crashed, consumers: Self.consumers)
        try await append(1...6, to: history)
        for await notice in history.notices {
            guard case .skipped = notice else { continue }
            #expect(notice == .skipped(output: "influx", readings: 4, after: 0, through: 4))
            break
        }
        #expect(try await history.consumer("influx").acknowledged() == 4)
        try await history.close()
    }

    @Test(arguments: [false, true])
    func `numbers of commits that failed do not count as waiting`(isReopened: Bool) throws {
        let consumers = [JournalConsumerOptions(name: "influx", longestBacklog: 150)]
        let clock = GatewayClock(now: { Fixture.epoch })
        var file = try HistoryFile(path: folder.database, consumers: consumers, clock: clock, log: .silent)
        try file.append(.plain(integers: 1...100))
        let pages = try file.connection.integer("PRAGMA page_count")
        try file.connection.execute("PRAGMA max_page_count = \(pages + 2)")
        for _ in 0..<3 { #expect(throws: StoreFault.self) { try file.append(.plain(integers: 0..<5000)) } }
        try file.connection.execute("PRAGMA max_page_count = 1000000")
        try #require(file.sequence.last > 300)
        if isReopened {
            let carriedOver = HistoryFile.CarriedOver(lock: file.lock, sequence: file.sequence)
            file = try HistoryFile(
                path: folder.database,
                consumers: consumers,
                carriedOver: carriedOver,
                clock: clock,
                log: .silent
            )
        }
        try file.append(.plain(integers: 101...110))
        while file.isUpkeepDue { try file.upkeep() }
        #expect(file.drainGaps().isEmpty && file.journal?.cursor(of: "influx") == 0)
        let unused = file.journal?.unused.count(after: 0, through: file.head)
        #expect(unused == file.head - 110)
        #expect(try file.entries(after: 0, limit: 500, for: "influx").readings.count == 110)
    }

    @Test func `an output that comes back after crashes skips nothing within its limit`() async throws {
        var history = try await ReadingHistory.open(folder, consumers: Self.consumers)
        try await append(1...4, to: history)
        try await history.close()
        history = try await ReadingHistory.open(folder, consumers: [Self.consumers[0]])
        try await append(1...2, to: history)
        let crashed = try await crash(folder)
        try await history.close()
        history = try await ReadingHistory.open(crashed, consumers: [Self.consumers[0]])
        try await append(1...2, to: history)
        try await history.close()
        history = try await ReadingHistory.open(crashed, consumers: Self.consumers)
        try await expect(8, in: history)
        try await history.close()
    }

    @Test func `an output that goes back over crashes skips nothing within its limit`() async throws {
        var history = try await ReadingHistory.open(folder, consumers: Self.consumers)
        try await append(1...4, to: history)
        let crashed = try await crash(folder)
        try await history.close()
        history = try await ReadingHistory.open(crashed, consumers: Self.consumers)
        try await append(1...5, to: history)
        try await history.consumer("influx").acknowledge(through: history.newestSeq)
        try await history.close()
        history = try await ReadingHistory.open(crashed, consumers: Self.consumers)
        try await history.consumer("influx").rewind(to: 0)
        try await expect(9, in: history)
        try await history.close()
    }

    @Test func `entries that the backlog had dropped before are in the gap of those that are skipped`() throws {
        var limits = HistoryLimits()
        limits.backlogAge = .seconds(1000)
        let file = try HistoryFile(
            path: folder.database,
            consumers: [JournalConsumerOptions(name: "influx", longestBacklog: 150)],
            limits: limits,
            clock: GatewayClock(now: { Fixture.epoch }),
            log: .silent
        )
        try file.append(.plain(integers: 1...100))
        try file.startPass(at: Fixture.epoch.advanced(by: .seconds(2000)))
        while file.isUpkeepDue { try file.upkeep() }
        #expect(file.undelivered == 100)
        try file.append(.plain(integers: 101...160))
        while file.isUpkeepDue { try file.upkeep() }
        let first = try file.entries(after: 0, limit: 100, for: "influx").missing
        #expect(first == JournalGap(after: 0, through: 19, reason: "more than the longest backlog"))
        let second = try file.entries(after: 19, limit: 100, for: "influx").missing
        #expect(second == JournalGap(after: 19, through: 100, reason: "dropped by the limits of the backlog"))
        #expect(try file.entries(after: 100, limit: 100, for: "influx").readings.map(\.seq) == Array(101...160))
    }

    @Test func `gaps among the numbers are counted and passed over`() {
        var unused = UnusedNumbers()
        unused.add(after: 10, through: 110)
        unused.add(after: 120, through: 220)
        #expect(unused.count(after: 0, through: 230) == 200)
        #expect(unused.count(after: 60, through: 170) == 100)
        #expect(unused.count(after: 110, through: 120) == 0)
        #expect(unused.count(after: 230, through: 0) == 0)
        let starts = [5, 10, 15, 20, 25, 30, .max].map { unused.start(ofLast: $0, through: 230) }
        #expect(starts.dropLast() == [225, 120, 115, 10, 5, 0])
        #expect(starts.last.map { $0 < 0 } == true)
    }

    @Test func `gaps that follow each other are one gap, and lower parts are left out`() {
        var unused = UnusedNumbers()
        unused.add(after: 10, through: 20)
        unused.add(after: 20, through: 30)
        unused.add(after: 40, through: 50)
        var expected = UnusedNumbers()
        expected.add(after: 15, through: 30)
        expected.add(after: 40, through: 50)
        var upper = UnusedNumbers()
        upper.add(unused, above: 15)
        #expect(upper == expected)
    }

    @Test func `the gaps of a file are found without sorting its entries, which may be millions`() throws {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        try file.append(.plain(integers: 0..<10))
        try file.connection.execute(
            """
            INSERT INTO event (id, ts, kind, detail) VALUES (200, 0, 'link', '{}'), (300, 0, 'link', '{}');
            INSERT INTO outbox (first, last, octets, ts, ts_last, arrived) VALUES (500, 600, 0, 0, 0, 0)
            """
        )
        var expected = UnusedNumbers()
        for (after, through) in [(10, 199), (300, 499), (600, 800)] as [(Int64, Int64)] {
            expected.add(after: after, through: through)
        }
        #expect(try UnusedNumbers(file.connection, after: 0, through: 800) == expected)
        #expect(try UnusedNumbers(file.connection, after: 550, through: 690) == UnusedNumbers())
        let plan = try Statement("EXPLAIN QUERY PLAN " + UnusedNumbers.entries, on: file.connection)
        #expect(try !plan.rows { row in row.text(3) }.contains { $0.contains("TEMP B-TREE") })
    }

    @Test func `a gap is an event of its output, and other notices are events of history`() {
        let gap = HistoryNotice.skipped(output: "influx", readings: 90, after: 0, through: 90)
        #expect(gap.kind == "output")
        #expect(
            Dictionary(uniqueKeysWithValues: gap.members.map { ($0.key, $0.value) }) == [
                "state": .text("skipped"), "output": .text("influx"), "entries": .integer(90), "after": .integer(0),
                "through": .integer(90), "reason": .text("more than its longest backlog waited"),
            ]
        )
        #expect(HistoryNotice.delivering.kind == "history")
    }
}
