import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// Consumers whose receiver keeps the cursor, and goes back.
@Suite(.timeLimit(.minutes(3)))
struct RewindTests {
    private static let copy = JournalConsumerOptions(name: "copy", content: .everything)
    private static let mqtt = JournalConsumerOptions(name: "mqtt")

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ consumers: JournalConsumerOptions...) async throws -> ReadingHistory {
        try await ReadingHistory.open(folder, consumers: consumers)
    }

    private func file(_ consumers: [JournalConsumerOptions], _ limits: HistoryLimits = .init()) throws -> HistoryFile {
        let clock = GatewayClock(now: { Fixture.epoch })
        return try HistoryFile(path: folder.database, consumers: consumers, limits: limits, clock: clock, log: .silent)
    }

    /// All entries after `place`, page by page.
    private func entries(_ consumer: HistoryConsumer, after seq: Int64, limit: Int = 100) async throws -> [JournalEntry]
    {
        var (place, entries) = (seq, [JournalEntry]())
        while true {
            let batch = try await consumer.entries(after: place, limit: limit)
            #expect(batch.missing == nil)
            guard batch.through > place else { return entries }
            (entries, place) = (entries + batch.entries, batch.through)
        }
    }

    private func seqs(_ file: HistoryFile, after seq: Int64, for consumer: String) throws -> [Int64] {
        try file.entries(after: seq, limit: .max, for: consumer).entries.map(\.seq)
    }

    private func finish(_ file: HistoryFile) throws {
        while file.isUpkeepDue { try file.upkeep() }
    }

    private func late(_ value: Int) -> ReadingBatch {
        .plain([.integer(Int64(value))], at: Fixture.epoch.advanced(by: .seconds(-86_400 - value)))
    }

    @Test func `a rewound consumer gets acknowledged entries again, including old ones`() async throws {
        let history = try await open(Self.copy)
        for number in 0..<60 {
            let time = Fixture.epoch.advanced(by: .seconds(number))
            try await history.append(.plain((0..<50).map { .integer($0) }, at: time))
            try await history.append(late(number))
            let event = LifecycleEvent(time: Fixture.epoch, kind: "link", ["state": .text("\(number)")])
            try await history.record([event])
        }
        let consumer = history.consumer("copy")
        let before = try await entries(consumer, after: 0)
        #expect(before.map(\.seq) == Array(1...3120))
        try await consumer.acknowledge(through: 3120)
        let shell = folder.shell
        try await eventually { try await shell.value("SELECT count(*) FROM outbox") == "0" }
        for seq: Int64 in [1500, 0, 3119] {
            try await consumer.rewind(to: seq)
            #expect(try await consumer.acknowledged() == seq)
            #expect(try await entries(consumer, after: seq) == Array(before.dropFirst(Int(seq))))
            try await consumer.acknowledge(through: 3120)
        }
        try await history.close()
    }

    @Test func `a consumer moves forward to the cursor of a receiver that has more`() async throws {
        let history = try await open(Self.copy)
        try await history.consumer("copy").rewind(to: 0)
        try await history.append(.plain(integers: 0..<10))
        try await history.consumer("copy").rewind(to: 8)
        #expect(try await history.consumer("copy").acknowledged() == 8)
        #expect(try await entries(history.consumer("copy"), after: 8).map(\.seq) == [9, 10])
        try await history.close()
    }

    @Test func `a new consumer gets everything that history has, also from times without a consumer`() async throws {
        var history = try await open()
        try await history.append(.plain(integers: 0..<300))
        try await history.close()
        history = try await open(Self.mqtt)
        try await history.append(.plain(integers: 300..<600))
        try await history.close()
        history = try await open(Self.mqtt, Self.copy)
        try await history.append(.plain(integers: 600..<700))
        try await history.consumer("copy").rewind(to: 0)
        #expect(try await entries(history.consumer("copy"), after: 0).map(\.seq) == Array(1...700))
        #expect(try await history.consumer("mqtt").acknowledged() == 300)
        #expect(try await entries(history.consumer("mqtt"), after: 300).map(\.seq) == Array(301...700))
        try await history.close()
    }

    @Test func `other consumers get no entry twice, and commits continue while a consumer goes back`() throws {
        let file = try file([Self.copy, Self.mqtt])
        for _ in 0..<10 { try file.append(.plain(integers: 0..<1000)) }
        for name in ["copy", "mqtt"] { file.journal?.acknowledge(through: 10_000, by: name) }
        try file.flushPendingState()
        #expect(try file.connection.integer("SELECT count(*) FROM outbox") == 0)
        try file.rewind("copy", to: 100)
        var steps = 0
        while file.isScanDue {
            try file.upkeep()
            try file.append(.plain(integers: 0..<1))
            steps += 1
        }
        #expect(steps > 4)
        #expect(try seqs(file, after: 100, for: "copy") == Array(101...Int64(10_000 + steps)))
        #expect(try seqs(file, after: 10_000, for: "mqtt") == Array(10_001...Int64(10_000 + steps)))
        #expect(file.journal?.cursor(of: "mqtt") == 10_000)
        file.journal?.acknowledge(through: Int64(10_000 + steps), by: "copy")
        file.journal?.acknowledge(through: Int64(10_000 + steps), by: "mqtt")
        while try file.connection.integer("SELECT count(*) FROM outbox") > 0 { try file.flushPendingState() }
    }

    @Test func `a step is short however many readings are rebuilt, and leaves no extent twice`() throws {
        let file = try file([Self.copy])
        for _ in 0..<10 { try file.append(.plain(integers: 0..<3000)) }
        file.journal?.acknowledge(through: 30_000, by: "copy")
        while try file.connection.integer("SELECT count(*) FROM outbox") > 0 { try file.flushPendingState() }
        try file.rewind("copy", to: 0)
        while file.isScanDue {
            let before = try file.connection.integer("SELECT total(last - first + 1) FROM outbox")
            try file.upkeep()
            #expect(try file.connection.integer("SELECT total(last - first + 1) FROM outbox") - before <= 2048)
        }
        try file.rewind("copy", to: 0)
        try finish(file)
        #expect(try file.connection.integer("SELECT total(last - first + 1) FROM outbox") == 30_000)
        #expect(try file.connection.integer("SELECT count(*) FROM outbox") < 400)
        #expect(try seqs(file, after: 29_000, for: "copy") == Array(29_001...30_000))
    }

    @Test(arguments: [1, 3, 5]) func `a kill during the scan loses nothing`(steps: Int) throws {
        var file: HistoryFile? = try file([Self.copy, Self.mqtt])
        for _ in 0..<10 { try file?.append(.plain(integers: 0..<1000)) }
        for name in ["copy", "mqtt"] { file?.journal?.acknowledge(through: 10_000, by: name) }
        try file?.flushPendingState()
        try file?.rewind("mqtt", to: 0)
        for _ in 0..<steps { try file?.upkeep() }
        file?.connection.keepsWALOnClose(true)
        file = nil
        let again = try self.file([Self.copy, Self.mqtt])
        #expect(again.isScanDue && again.journal?.cursor(of: "mqtt") == 0)
        let before = try again.connection.integer("SELECT total(last - first + 1) FROM outbox")
        #expect(before > 0)
        try again.append(.plain(integers: 0..<1))
        try finish(again)
        let rest = try seqs(again, after: 0, for: "mqtt")
        #expect(rest.count == 10_001 && rest.prefix(10_000) == Array(1...10_000)[...])
    }

    @Test func `a correction of times during the scan loses nothing, and original times are delivered`() throws {
        let file = try file([Self.copy])
        for number in 0..<4 {
            let time = Fixture.epoch.advanced(by: .seconds(number))
            try file.append(.plain((0..<1500).map { .integer($0) }, at: time))
        }
        let before = try file.entries(after: 0, limit: .max, for: "copy").entries
        file.journal?.acknowledge(through: 6000, by: "copy")
        while try file.connection.integer("SELECT count(*) FROM outbox") > 0 { try file.flushPendingState() }
        try file.rewind("copy", to: 0)
        try file.upkeep()
        // The first readings are moved behind all others, past the place of the scan.
        try file.connection.execute(
            """
            UPDATE sample SET ts = ts + 3600000000 WHERE seq > 3000 AND seq <= 4500;
            UPDATE sample SET ts = ts - 3600000000 WHERE seq > 4500;
            UPDATE outbox SET ts = ts + 3600000000, ts_last = ts_last + 3600000000 WHERE first > 3000;
            INSERT INTO correction (id, after, through, shift) VALUES (6001, 3000, 4500, 3600000000),
                (6002, 4500, 6000, -3600000000);
            """
        )
        while file.isScanDue { try file.upkeep() }
        let again = try file.entries(after: 0, limit: .max, for: "copy").entries
        #expect(again.compactMap(\.reading) == before.compactMap(\.reading))
        #expect(again.suffix(2).map(\.seq) == [6001, 6002])
    }

    @Test func `rebuilt extents do not cross the start or the end of a clock span`() throws {
        let file = try file([Self.copy])
        try file.append(.plain(integers: 0..<100))
        file.journal?.acknowledge(through: 100, by: "copy")
        while try file.connection.integer("SELECT count(*) FROM outbox") > 0 { try file.flushPendingState() }
        try file.connection.execute(
            "INSERT INTO clock (boot, offset, seq, uptime, seq_end, time_end) VALUES ('other', 0, 30, 0, 70, 0)"
        )
        try file.rewind("copy", to: 0)
        while file.isScanDue { try file.upkeep() }
        #expect(try file.connection.integer("SELECT count(*) FROM outbox WHERE first <= 30 AND last > 30") == 0)
        #expect(try file.connection.integer("SELECT count(*) FROM outbox WHERE first <= 70 AND last > 70") == 0)
        #expect(try seqs(file, after: 0, for: "copy") == Array(1...100))
    }

    @Test func `rows that retention has deleted are a gap, all others are delivered`() throws {
        var limits = HistoryLimits()
        limits.samples = .seconds(3600)
        let file = try file([Self.copy], limits)
        try file.append(.plain(integers: 0..<100))
        let later = Fixture.epoch.advanced(by: .seconds(7200))
        try file.append(.plain((0..<50).map { .integer($0) }, at: later))
        file.journal?.acknowledge(through: 150, by: "copy")
        try file.startPass(at: later)
        try finish(file)
        try #require(try file.connection.integer("SELECT min(seq) FROM sample") == 101)
        try file.rewind("copy", to: 20)
        try finish(file)
        let gap = JournalGap(after: 20, through: 100, reason: "deleted by the limits of history")
        #expect(try file.entries(after: 20, limit: 500, for: "copy") == JournalBatch(missing: gap))
        #expect(try seqs(file, after: 100, for: "copy") == Array(101...150))
        try file.rewind("copy", to: 120)
        #expect(try seqs(file, after: 120, for: "copy") == Array(121...150))
    }

    @Test func `a rewound consumer gets readings that the backlog dropped for a dead consumer`() throws {
        var limits = HistoryLimits()
        limits.backlogAge = .seconds(1000)
        let file = try file([Self.copy, Self.mqtt], limits)
        for second in 0..<50 {
            let time = Fixture.epoch.advanced(by: .seconds(second * 100))
            try file.append(.plain((0..<100).map { .integer($0) }, at: time))
        }
        file.journal?.acknowledge(through: 5000, by: "copy")
        try file.startPass(at: Fixture.epoch.advanced(by: .seconds(5000)))
        try finish(file)
        #expect(try file.connection.integer("SELECT min(first) FROM outbox") == 4001)
        try file.rewind("copy", to: 100)
        try finish(file)
        #expect(try seqs(file, after: 100, for: "copy") == Array(101...5000))
    }

    @Test func `numbers that a crash has left out are not a gap`() throws {
        var file: HistoryFile? = try file([Self.copy])
        try file?.append(.plain(integers: 0..<100))
        file?.connection.keepsWALOnClose(true)
        file = nil
        let again = try self.file([Self.copy])
        try again.append(.plain(integers: 0..<10))
        try again.rewind("copy", to: 100)
        try finish(again)
        let batch = try again.entries(after: 100, limit: 500, for: "copy")
        #expect(batch.missing == nil && batch.entries.count == 10)
    }

    @Test func `a consumer with a longest backlog gets only that, and the rest is a gap`() async throws {
        var short = Self.copy
        short.longestBacklog = 100
        let history = try await open(short)
        for _ in 0..<50 {
            try await history.append(.plain(integers: 0..<10))
            try await history.consumer("copy").acknowledge(through: history.newestSeq)
        }
        let consumer = history.consumer("copy")
        try await consumer.rewind(to: 50)
        let gap = JournalGap(after: 50, through: 400, reason: "more than the longest backlog")
        #expect(try await consumer.entries(after: 50, limit: 500) == JournalBatch(missing: gap))
        #expect(try await entries(history.consumer("copy"), after: 400).map(\.seq) == Array(401...500))
        #expect(history.status.skipped.isEmpty)
        try await history.close()
    }

    @Test func `a caller that waits for a scan is answered when the history is closed`() async throws {
        let history = try await open(Self.copy)
        for _ in 0..<20 { try await history.append(.plain(integers: 0..<3000)) }
        try await history.consumer("copy").acknowledge(through: 60_000)
        async let rewind: Void = history.consumer("copy").rewind(to: 0)
        while try await history.consumer("copy").acknowledged() != 0 { await Task.yield() }
        try await history.close()
        try? await rewind
    }
}
