import CSQLite
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// Several consumers of one journal.
@Suite(.timeLimit(.minutes(3)))
struct ConsumerTests {
    private static let mqtt = JournalConsumerOptions(name: "mqtt")
    private static let copy = JournalConsumerOptions(name: "copy", content: .everything)
    private static let short = JournalConsumerOptions(name: "short", longestBacklog: 100)

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ consumers: JournalConsumerOptions...) async throws -> ReadingHistory {
        try await ReadingHistory.open(folder, consumers: consumers)
    }

    /// All entries after the cursor of a consumer, page by page.
    private func everything(_ consumer: HistoryConsumer, limit: Int = 7) async throws -> [JournalEntry] {
        var entries: [JournalEntry] = []
        var place = try await consumer.acknowledged()
        while true {
            let batch = try await consumer.entries(after: place, limit: limit)
            #expect(batch.entries.count <= limit && batch.through >= batch.entries.last?.seq ?? place)
            guard batch.through > place else { return entries }
            (entries, place) = (entries + batch.entries, batch.through)
        }
    }

    private func event(_ name: String) -> LifecycleEvent {
        LifecycleEvent(time: Fixture.epoch, device: "box", kind: "link", ["state": .text(name)])
    }

    private func reject(_ reason: String) -> Reject {
        Reject(time: Fixture.epoch, device: "box", characteristic: "2a37", payload: [1, 2], reason: reason)
    }

    @Test func `each consumer has a cursor of its own, which survives a restart`() async throws {
        var history = try await open(Self.mqtt, Self.copy)
        try await history.append(.plain(integers: 0..<10))
        try await history.consumer("mqtt").acknowledge(through: 10)
        try await history.consumer("copy").acknowledge(through: 4)
        try await history.close()
        history = try await open(Self.mqtt, Self.copy)
        #expect(try await history.consumer("mqtt").acknowledged() == 10)
        #expect(try await everything(history.consumer("mqtt")).isEmpty)
        #expect(try await everything(history.consumer("copy")).map(\.seq) == [5, 6, 7, 8, 9, 10])
    }

    @Test func `readings stay until the last consumer has acknowledged them`() async throws {
        let history = try await open(Self.mqtt, Self.copy)
        try await history.append(.plain(integers: 0..<3000))
        try await history.consumer("mqtt").acknowledge(through: 3000)
        let shell = folder.shell
        let cursors = "SELECT cursor FROM consumer ORDER BY name"
        try await eventually { try await shell.rows(cursors) == [["0"], ["3000"]] }
        #expect(try await everything(history.consumer("copy"), limit: 1000).count == 3000)
        try await history.consumer("copy").acknowledge(through: 3000)
        try await eventually { try await shell.value("SELECT count(*) FROM outbox") == "0" }
    }

    @Test func `readings, events and rejects have one order, in memory and in the file`() async throws {
        var history = try await open(Self.copy)
        try await history.record([event("a")])
        var batch = ReadingBatch.plain(integers: 0..<2)
        batch.rejects = [reject("short"), reject("long")]
        try await history.append(batch)
        try await history.record([event("b"), event("c")])
        let first = try #require(history.consumer("copy").recent(after: 0, limit: 100)?.entries)
        #expect(first.map(\.seq) == [1, 2, 3, 4, 5, 6, 7])
        #expect(first[0] == .event(event("a"), seq: 1))
        #expect(first[1] == .reject(reject("short"), seq: 2))
        #expect(first[3].reading?.json.contains("\"seq\":4,") == true)
        #expect(first[6] == .event(event("c"), seq: 7))
        for limit in 1...8 { #expect(try await everything(history.consumer("copy"), limit: limit) == first) }
        try await history.close()
        history = try await open(Self.copy)
        #expect(history.consumer("copy").recent(after: 0, limit: 100) == nil)
        #expect(try await everything(history.consumer("copy")) == first)
    }

    @Test func `a consumer of readings passes over events and rejects`() async throws {
        let history = try await open(Self.mqtt)
        try await history.record([event("a")])
        try await history.append(.plain(integers: 0..<2))
        try await history.record([event("b")])
        let batch = try await history.consumer("mqtt").entries(after: 0, limit: 10)
        #expect(batch.entries.map(\.seq) == [2, 3] && batch.through == 4)
        #expect(history.consumer("mqtt").recent(after: 0, limit: 10) == batch)
        #expect(try await history.consumer("mqtt").entries(after: 3, limit: 10) == JournalBatch([], through: 4))
    }

    @Test func `the head counts events too`() async throws {
        let history = try await open(Self.copy)
        try await history.record([event("a"), event("b")])
        for await head in history.consumer("copy").heads() where head == 2 { break }
        try await history.append(.plain(integers: 0..<1))
        for await head in history.consumer("copy").heads() where head == 3 { break }
    }

    @Test func `a new consumer starts at the newest entry, and one that comes back at its cursor`() async throws {
        var history = try await open(Self.mqtt)
        try await history.append(.plain(integers: 0..<5))
        try await history.close()
        history = try await open(Self.mqtt, Self.copy)
        #expect(try await history.consumer("copy").acknowledged() == 5)
        try await history.append(.plain(integers: 5..<8))
        try await history.close()
        history = try await open(Self.mqtt)
        try await history.append(.plain(integers: 8..<9))
        try await history.close()
        history = try await open(Self.mqtt, Self.copy)
        #expect(try await everything(history.consumer("copy")).map(\.seq) == [6, 7, 8, 9])
        #expect(try await everything(history.consumer("mqtt")).map(\.seq) == Array(1...9))
    }

    @Test(arguments: [JournalConsumerOptions.Content.readings, .everything])
    func `a consumer that comes back gets what the others acknowledged meanwhile`(
        content: JournalConsumerOptions.Content
    ) async throws {
        let back = JournalConsumerOptions(name: "back", content: content)
        var history = try await open(Self.mqtt, back)
        try await history.append(.plain(integers: 0..<100))
        for name in ["mqtt", "back"] { try await history.consumer(name).acknowledge(through: 100) }
        try await history.close()
        history = try await open(Self.mqtt)
        for _ in 0..<5 { try await history.append(.plain(integers: 0..<1000)) }
        try await history.record([event("a")])
        try await history.consumer("mqtt").acknowledge(through: 5101)
        let shell = folder.shell
        try await eventually { try await shell.value("SELECT count(*) FROM outbox") == "0" }
        try await history.close()
        history = try await open(Self.mqtt, back)
        try await history.append(.plain(integers: 0..<3))
        let consumer = history.consumer("back")
        #expect(try await consumer.acknowledged() == 100)
        try await eventually { (try? await consumer.entries(after: 100, limit: 1)) != nil }
        let seqs = try await everything(consumer, limit: 500).map(\.seq)
        let all = 101...5104 as ClosedRange<Int64>
        #expect(seqs == all.filter { content == .everything || $0 != 5101 })
        #expect(try await everything(history.consumer("mqtt")).map(\.seq) == [5102, 5103, 5104])
        // The extents are there now, so another start need not search them again.
        try await history.close()
        let file = try HistoryFile(path: folder.database, consumers: [Self.mqtt, back], log: .silent)
        #expect(!file.isScanDue && file.journal?.cursor(of: "back") == 100)
    }

    @Test func `a consumer that comes back gets the readings of a time without any consumer`() async throws {
        var history = try await open(Self.copy)
        try await history.append(.plain(integers: 0..<10))
        try await history.consumer("copy").acknowledge(through: 10)
        try await history.close()
        history = try await open()
        try await history.append(.plain(integers: 0..<300))
        try await history.close()
        history = try await open(Self.mqtt)
        try await history.append(.plain(integers: 0..<10))
        try await history.close()
        history = try await open(Self.mqtt, Self.copy)
        let consumer = history.consumer("copy")
        try await eventually { (try? await consumer.entries(after: 10, limit: 1)) != nil }
        #expect(try await everything(consumer).map(\.seq) == Array(11...320))
        #expect(try await everything(history.consumer("mqtt")).map(\.seq) == Array(311...320))
    }

    @Test func `no entry is handed out while those before it are being collected`() throws {
        let back = JournalConsumerOptions(name: "back")
        func file(_ consumers: [JournalConsumerOptions]) throws -> HistoryFile {
            let clock = GatewayClock(now: { Fixture.epoch })
            return try HistoryFile(path: folder.database, consumers: consumers, clock: clock, log: .silent)
        }
        try file([Self.mqtt, back]).close()
        do {
            let file = try file([Self.mqtt])
            for _ in 0..<5 { try file.append(.plain(integers: 0..<1000)) }
            file.journal?.acknowledge(through: 5000, by: "mqtt")
            while try file.connection.integer("SELECT count(*) FROM outbox") > 0 { try file.flushPendingState() }
            try file.close()
        }
        let again = try file([Self.mqtt, back])
        try again.append(.plain(integers: 0..<1))
        #expect(again.isRebuilding(after: 0) && !again.isRebuilding(after: 5000))
        while again.isUpkeepDue { try again.upkeep() }
        #expect(!again.isRebuilding(after: 0))
        #expect(try again.entries(after: 0, limit: .max, for: "back").readings.count == 5001)
    }

    @Test func `a start that fails halfway loses no readings of a time without any consumer`() throws {
        let back = JournalConsumerOptions(name: "back")
        func file(_ consumers: [JournalConsumerOptions]) throws -> HistoryFile {
            let clock = GatewayClock(now: { Fixture.epoch })
            return try HistoryFile(path: folder.database, consumers: consumers, clock: clock, log: .silent)
        }
        do {
            let file = try file([back])
            try file.append(.plain(integers: 1...100))
            file.journal?.acknowledge(through: 100, by: "back")
            try file.close()
        }
        do {
            let file = try file([])
            try file.append(.plain(integers: 101...200))
            try file.close()
        }
        let other = try SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READWRITE)
        try other.execute(
            """
            CREATE TRIGGER halfway BEFORE INSERT ON state WHEN NEW.key = 'journal_trimmed'
            BEGIN SELECT RAISE(ABORT, 'halfway'); END
            """
        )
        #expect(throws: StoreFault.self) { try file([back]) }
        try other.execute("DROP TRIGGER halfway")
        let again = try file([back])
        while again.isUpkeepDue { try again.upkeep() }
        #expect(try again.entries(after: 100, limit: 500, for: "back").readings.map(\.seq) == Array(101...200))
    }

    @Test func `a consumer that is not configured holds no readings`() async throws {
        var history = try await open(Self.mqtt, Self.copy)
        try await history.append(.plain(integers: 0..<3000))
        try await history.close()
        history = try await open(Self.mqtt)
        try await history.consumer("mqtt").acknowledge(through: 3000)
        let shell = folder.shell
        try await eventually { try await shell.value("SELECT count(*) FROM outbox") == "0" }
        withExtendedLifetime(history) {}
    }

    @Test func `a consumer that is too far behind skips the oldest, which is counted and reported`() async throws {
        let history = try await open(Self.mqtt, Self.short)
        for start in stride(from: 0, to: 1000, by: 50) {
            try await history.append(.plain(integers: start..<start + 50))
        }
        var gaps: [HistoryNotice] = []
        var skipped = 0
        for await notice in history.notices {
            guard case .skipped("short", let readings, let after, let through) = notice else { continue }
            #expect(Int64(readings) == through - after)
            gaps.append(notice)
            skipped += readings
            if through == 906 { break }
        }
        // A skip leaves room for a sixteenth of the limit.
        #expect(skipped == 906)
        #expect(try await everything(history.consumer("short")).map(\.seq) == Array(907...1000))
        #expect(try await everything(history.consumer("mqtt"), limit: 300).count == 1000)
    }

    @Test func `other consumers lose no reading when the backlog of a dead one is full`() throws {
        var limits = HistoryLimits()
        limits.backlogSize = 20_000
        let file = try HistoryFile(
            path: folder.database,
            consumers: [Self.mqtt, JournalConsumerOptions(name: "dead")],
            limits: limits,
            log: .silent
        )
        var seen: Int64 = 0
        for start in stride(from: 0, to: 5000, by: 10) {
            try file.append(.plain(integers: start..<start + 10))
            let batch = try file.entries(after: seen, limit: 1000, for: "mqtt")
            #expect(batch.readings.map(\.seq) == Array(seen + 1...seen + 10))
            seen = batch.through
            file.journal?.acknowledge(through: seen, by: "mqtt")
            while file.isUpkeepDue { try file.upkeep() }
        }
        #expect(seen == 5000)
        #expect(file.undelivered > 4000)
        try file.flushPendingState()
        #expect(try file.connection.integer("SELECT total(octets) FROM outbox") < 40_000)
    }
}
