import GattherdHistory
import GattherdModel
import TestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct OutboxTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func `appended readings are delivered in order, page by page`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<7))
        var seen: [JournalReading] = []
        while case let part = try await history.readings(after: seen.last?.seq ?? 0, limit: 3), !part.isEmpty {
            #expect(part.count <= 3)
            seen += part
        }
        #expect(seen.map(\.seq) == Array(1...7))
        #expect(seen.allSatisfy { $0.device == "box" && $0.stream.stream == "plain" })
        #expect(
            seen.map { $0.json }.last
                == #"{"seq":7,"ts":"2026-11-21T03:20:05.123462Z","source":"notify","value":6}"#
        )
        #expect(try await history.readings(after: 0, limit: 0).isEmpty)
        #expect(try await history.readings(after: 0, limit: -1).isEmpty)
    }

    @Test func `readings are available at once after the commit, equal to those in the file`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<3))
        try await history.append(.plain(integers: 3..<7))
        let recent = try #require(history.recent(after: 0, limit: 5))
        #expect(recent == (try await history.readings(after: 0, limit: 5)))
        #expect(history.recent(after: 5, limit: 5)?.map(\.seq) == [6, 7])
        #expect(history.recent(after: 0, limit: 5) == nil)
        try await history.close()
        let again = try await ReadingHistory.open(folder)
        #expect(again.recent(after: 0, limit: 5) == nil)
    }

    @Test func `payloads read from the file equal those from memory, byte by byte`() async throws {
        let history = try await ReadingHistory.open(folder)
        let values = ValueTests.values + [.boolean(true), .boolean(false), .real(.nan)]
        var batch = ReadingBatch()
        for value in values {
            // A metric says what it is by its name: integers that are no booleans are in another.
            let metric = if case .boolean = value { "flag" } else { "it's \"value\"" }
            batch.add(Fixture.plain(metric), by: .advert, (0, value))
        }
        let strap = Fixture.heartRate()
        batch.add(strap, by: .read, (0, .integer(61)), (1, .boolean(true)), (2, .real(0.5)), (2, .real(1)))
        batch.add(strap, by: .indicate, (0, .integer(62)), (0, .integer(63)), (2, .null))
        batch.add(strap, at: Fixture.epoch.advanced(by: .seconds(-60)), (1, .boolean(false)))
        try await history.append(batch)
        let first = try #require(history.recent(after: 0, limit: 100))
        #expect(first.count == batch.readings.count)
        let again = try await history.readings(after: 0, limit: 100)
        for (first, again) in zip(first, again) {
            #expect(again.json == first.json)
        }
        let comparable = first.filter { !$0.hasNaN }
        #expect(again.filter { reading in comparable.contains { $0.seq == reading.seq } } == comparable)
    }

    @Test func `reading continues inside a batch and across deleted samples`() async throws {
        let history = try await ReadingHistory.open(folder)
        for start in [0, 300, 600] { try await history.append(.plain(integers: start..<(start + 300))) }
        for limit in [1, 127, 128, 129, 1000] {
            for seq: Int64 in [0, 1, 127, 128, 299, 300, 898, 899, 900] {
                let expected = (seq + 1)..<max(seq + 1, min(901, seq + 1 + Int64(limit)))
                #expect(try await history.readings(after: seq, limit: limit).map(\.seq) == Array(expected))
            }
        }
        _ = try await folder.shell.rows("DELETE FROM sample WHERE seq BETWEEN 250 AND 700")
        #expect(try await history.readings(after: 248, limit: 3).map(\.seq) == [249, 701, 702])
    }

    @Test func `a reading without its stream is an error and is not published`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<3))
        _ = try await folder.shell.rows("PRAGMA foreign_keys = OFF; DELETE FROM metric_series")
        await #expect(throws: StoreFault.self) { try await history.readings(after: 0, limit: 9) }
    }

    @Test func `the head is published after each commit, never before`() async throws {
        let history = try await ReadingHistory.open(folder)
        let reader = try HistoryReader(path: folder.database)
        async let writing: Void = {
            for round in 0..<50 { try await history.append(.plain(integers: round..<(round + 3))) }
        }()
        for await head in history.heads() {
            #expect(try reader.allRows().count >= Int(head))
            if head == 150 { break }
        }
        try await writing
    }

    @Test func `only acknowledgements move the cursor, forwards, up to the newest reading`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        #expect(try await history.acknowledged() == 0)
        try await history.acknowledge(through: 4)
        try await history.acknowledge(through: 2)
        #expect(try await history.acknowledged() == 4)
        try await history.acknowledge(through: 99)
        #expect(try await history.acknowledged() == 10)
    }

    @Test func `the cursor is persistent; acknowledged readings stay in history only`() async throws {
        var history = try await ReadingHistory.open(folder)
        for values in [0..<5, 5..<10] { try await history.append(.plain(integers: values)) }
        try await history.acknowledge(through: 6)
        try await history.close()
        #expect(try await folder.shell.rows("SELECT first, last FROM outbox") == [["6", "10"]])
        #expect(try await folder.shell.value("SELECT count(*) FROM history") == "10")
        history = try await ReadingHistory.open(folder)
        #expect(try await history.acknowledged() == 6)
        #expect(try await history.readings(after: 6, limit: 10).map(\.seq) == [7, 8, 9, 10])
    }

    @Test func `an idle cursor is saved by itself`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        try await history.acknowledge(through: 10)
        let shell = folder.shell
        try await eventually { try await shell.rows("SELECT cursor FROM consumer") == [["10"]] }
        withExtendedLifetime(history) {}
    }

    @Test func `a cursor that has passed many readings is in the file when the acknowledgement returns`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<4000))
        let shell = folder.shell
        for seq in [1000, 1999, 2999, 4000] as [Int64] {
            try await history.acknowledge(through: seq)
            let saved = try await shell.value("SELECT cursor FROM consumer")
            #expect(try seq - #require(Int64(saved)) < 1000)
        }
    }

    @Test func `a long backlog is deleted step by step, completely`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<12_000))
        try await history.acknowledge(through: 12_000)
        let shell = folder.shell
        try await eventually { try await shell.value("SELECT count(*) FROM outbox") == "0" }
        #expect(try await history.acknowledged() == 12_000)
        #expect(try await shell.value("SELECT count(*) FROM history") == "12000")
    }

    @Test func `turning delivery on again delivers the readings in between, turning it on first delivers none`()
        async throws
    {
        try await appendAndClose(0..<3, consumers: [])
        try await appendAndClose(3..<5, consumers: .one)
        try await appendAndClose(5..<9, consumers: [])
        let history = try await ReadingHistory.open(folder)
        #expect(try await history.acknowledged() == 3)
        try await eventually { (try? await history.readings(after: 3, limit: 1)) != nil }
        #expect(try await history.readings(after: 3, limit: 10).map(\.seq) == Array(4...9))
        try await history.close()
    }

    private func appendAndClose(_ values: Range<Int>, consumers: [JournalConsumerOptions]) async throws {
        let history = try await ReadingHistory.open(folder, consumers: consumers)
        try await history.append(.plain(integers: values))
        try await history.close()
    }

    @Test func `without delivery there is no backlog`() async throws {
        let history = try await ReadingHistory.open(folder, consumers: [])
        try await history.append(.plain(integers: 0..<3))
        #expect(try await folder.shell.value("SELECT count(*) FROM outbox") == "0")
        #expect(try await history.readings(after: 0, limit: 10).isEmpty)
        #expect(try await history.acknowledged() == 3)
        try await history.acknowledge(through: 3)
    }

    @Test func `replay counters are persistent and never decrease`() async throws {
        var history = try await ReadingHistory.open(folder)
        for marks in [["a": UInt32.max, "b": 7], ["b": 6]] {
            var batch = ReadingBatch.plain(integers: 0..<1)
            batch.replayMarks = marks
            try await history.append(batch)
        }
        try await history.close()
        history = try await ReadingHistory.open(folder)
        #expect(try await history.replayMarks() == ["a": .max, "b": 7])
        #expect(try await history.acknowledged() == 0)
    }

    @Test func `held devices are persistent until they are released`() async throws {
        var history = try await ReadingHistory.open(folder)
        try await history.setHeld("strap", true)
        try await history.setHeld("strap", true)
        try await history.setHeld("box", true)
        try await history.setHeld("box", false)
        try await history.setHeld("never", false)
        try await history.close()
        history = try await ReadingHistory.open(folder)
        #expect(try await history.heldDevices() == ["strap"])
    }
}
