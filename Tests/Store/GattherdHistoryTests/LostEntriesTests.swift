import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// Entries that disappear before a consumer has got them.
@Suite(.timeLimit(.minutes(2)))
struct LostEntriesTests {
    private static let copy = JournalConsumerOptions(name: "copy", content: .everything)
    private static let mqtt = JournalConsumerOptions(name: "mqtt")
    private static let dropped = "dropped by the limits of the backlog"
    private static let deleted = "deleted by the limits of history"

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(
        _ consumer: JournalConsumerOptions = copy,
        _ change: (inout HistoryLimits) -> Void = { _ in }
    ) throws -> HistoryFile {
        var limits = HistoryLimits()
        change(&limits)
        let clock = GatewayClock(now: { Fixture.epoch })
        return try HistoryFile(path: folder.database, consumers: [consumer], limits: limits, clock: clock, log: .silent)
    }

    private func finish(_ file: HistoryFile, at seconds: Int? = nil) throws {
        if let seconds { try file.startPass(at: Fixture.epoch.advanced(by: .seconds(seconds))) }
        while file.isUpkeepDue { try file.upkeep() }
    }

    /// Appends 100 readings and then an event, `seconds` after the start.
    private func fill(_ file: HistoryFile, at seconds: Int) throws {
        let time = Fixture.epoch.advanced(by: .seconds(seconds))
        try file.append(.plain((0..<100).map { .integer($0) }, at: time))
        try file.record([LifecycleEvent(time: time, kind: "link", ["at": .integer(Int64(seconds))])])
    }

    /// The entries after a number, and the gaps among them, page by page.
    private func all(
        _ file: HistoryFile,
        after seq: Int64,
        for consumer: String = "copy",
        limit: Int = 64
    ) throws -> (seqs: [Int64], gaps: [JournalGap]) {
        var (place, seqs, gaps) = (seq, [Int64](), [JournalGap]())
        while true {
            let batch = try file.entries(after: place, limit: limit, for: consumer)
            #expect(batch.missing == nil || batch.entries.isEmpty)
            guard batch.through > place else { return (seqs, gaps) }
            (seqs, place) = (seqs + batch.entries.map(\.seq), batch.through)
            if let gap = batch.missing { gaps.append(gap) }
        }
    }

    /// The numbers of readings when an event follows each 100 of them.
    private func readings(_ range: ClosedRange<Int64>) -> [Int64] { range.filter { !$0.isMultiple(of: 101) } }

    @Test func `readings that the backlog drops while a consumer is away are a gap, also after a restart`() throws {
        do {
            let file = try open()
            for round in 0..<20 { try fill(file, at: round * 100) }
            #expect(try all(file, after: 0).gaps.isEmpty)
            try file.close()
        }
        for round in 0..<2 {
            let file = try open { $0.backlogAge = .seconds(1000) }
            if round == 0 {
                file.journal?.acknowledge(through: 50, by: "copy")
                try finish(file, at: 2000)
            }
            let found = try all(file, after: 50)
            let missing = found.gaps.flatMap { Array($0.after + 1...$0.through) }
            // The rest of the first extent stays, as it was handed over in part, and so do all events.
            #expect(missing == readings(102...1010))
            #expect((found.seqs + missing).sorted() == Array(51...2020))
            #expect(found.gaps.allSatisfy { $0.reason == Self.dropped })
            file.connection.keepsWALOnClose(true)
        }
    }

    @Test func `a consumer of readings gets the same gap, but none for the numbers of events`() throws {
        let file = try open(Self.mqtt) { $0.backlogAge = .seconds(1000) }
        for round in 0..<20 { try fill(file, at: round * 100) }
        // The first readings are handed over, so they stay.
        _ = try file.entries(after: 0, limit: 300, for: "mqtt")
        try finish(file, at: 2000)
        let found = try all(file, after: 0, for: "mqtt")
        #expect(found.gaps.count == 1)
        let gap = try #require(found.gaps.first)
        #expect(found.seqs == readings(1...gap.after) + readings(gap.through + 1...2020))
        #expect(gap == JournalGap(after: 302, through: 1009, reason: Self.dropped))
    }

    @Test func `readings deleted for the size of the file are a gap`() throws {
        let file = try open { $0.maxSize = 1 << 20 }
        for round in 0..<400 {
            try fill(file, at: round)
            try finish(file)
        }
        try finish(file)
        let found = try all(file, after: 0)
        let missing = found.gaps.flatMap { Array($0.after + 1...$0.through) }
        #expect(missing.count > 1000 && found.seqs.count > 1000)
        #expect((found.seqs + missing).sorted() == Array(1...40_400))
    }

    @Test func `after a rewind all deleted readings are gaps, and events among them are delivered`() throws {
        let file = try open { $0.samples = .seconds(3600) }
        for round in 0..<10 { try fill(file, at: round) }
        try fill(file, at: 7200)
        file.journal?.acknowledge(through: 1111, by: "copy")
        try finish(file, at: 7200)
        try #require(try file.connection.integer("SELECT min(seq) FROM sample") == 1011)
        // The next number is that of an event.
        try file.rewind("copy", to: 100)
        try finish(file)
        let found = try all(file, after: 100)
        #expect(found.seqs == (1...10).map { $0 * 101 } + Array(1011...1111))
        #expect(found.gaps.map(\.after) == (1...9).map { $0 * 101 })
        #expect(found.gaps.map(\.through) == (2...10).map { $0 * 101 - 1 })
        #expect(found.gaps.allSatisfy { $0.reason == Self.deleted })
    }

    @Test func `a consumer that skips entries gets the gap, and none if nothing was there`() throws {
        var short = Self.copy
        short.longestBacklog = 150
        var file: HistoryFile? = try open(short)
        for round in 0..<4 { try fill(try #require(file), at: round) }
        try finish(try #require(file))
        let found = try all(try #require(file), after: 10)
        #expect(found.gaps == [JournalGap(after: 10, through: 263, reason: "more than the longest backlog")])
        #expect(found.seqs == Array(264...404))
        file?.journal?.acknowledge(through: 404, by: "copy")
        try file?.flushPendingState()
        // A crash leaves out many numbers.
        file?.connection.keepsWALOnClose(true)
        file = nil
        let again = try open(short)
        try fill(again, at: 10)
        try finish(again)
        let later = try all(again, after: 404)
        #expect(later.gaps.isEmpty && later.seqs.count == 101)
    }

    @Test func `readings that could not be stored are a gap once they have left the memory`() throws {
        let gap = JournalGap(after: 101, through: 110, reason: "not stored because the disk failed")
        do {
            let file = try open()
            try fill(file, at: 0)
            let unstored = try ReadingBatch.plain(integers: 0..<9).numberedUnstored(by: file.sequence, path: "")
            #expect(unstored.map(\.seq) == Array(102...110))
            file.journal?.lost.addUnstored(through: file.sequence.last)
            try fill(file, at: 1)
            #expect(try all(file, after: 90).gaps.isEmpty)
            file.journal?.lost.removeUnstored(through: 110)
            #expect(try all(file, after: 90).gaps == [gap])
            try file.close()
        }
        let file = try open()
        #expect(try all(file, after: 90).gaps == [gap])
        #expect(try all(file, after: 110).gaps.isEmpty)
    }

    @Test func `a consumer of readings gets the gap of unstored readings after a restart`() throws {
        do {
            let file = try open(Self.mqtt)
            try fill(file, at: 0)
            file.journal?.acknowledge(through: 101, by: "mqtt")
            let unstored = try ReadingBatch.plain(integers: 0..<9).numberedUnstored(by: file.sequence, path: "")
            #expect(unstored.map(\.seq) == Array(102...110))
            file.journal?.lost.addUnstored(through: 110)
            try fill(file, at: 1)
            try file.close()
        }
        let file = try open(Self.mqtt)
        let found = try all(file, after: try #require(file.journal?.cursor(of: "mqtt")), for: "mqtt")
        let reason = "not stored because the disk failed"
        #expect(found.gaps == [JournalGap(after: 101, through: 110, reason: reason)])
        #expect(found.seqs == Array(111...210))
    }

    @Test func `a consumer of readings gets the gap of another file after a restart`() throws {
        do {
            let file = try open(Self.mqtt)
            try fill(file, at: 0)
            file.journal?.acknowledge(through: 101, by: "mqtt")
            try file.connection.execute("INSERT INTO epoch (text, after) VALUES ('another', 110)")
            for _ in 0..<9 { _ = file.sequence.next() }
            try fill(file, at: 1)
            try file.close()
        }
        let file = try open(Self.mqtt)
        let found = try all(file, after: try #require(file.journal?.cursor(of: "mqtt")), for: "mqtt")
        #expect(found.gaps == [JournalGap(after: 101, through: 110, reason: "another file")])
        #expect(found.seqs == Array(111...210))
    }

    @Test func `readings that the backlog drops while they are searched for a consumer are a gap`() throws {
        let file = try open { $0.backlogAge = .seconds(1000) }
        for round in 0..<50 { try fill(file, at: round * 100) }
        file.journal?.acknowledge(through: file.head, by: "copy")
        try file.flushPendingState()
        try file.rewind("copy", to: 0)
        try file.upkeep()
        #expect(file.isScanDue, "a step finds only some of the readings")
        try finish(file, at: 5500)
        let found = try all(file, after: 0)
        let missing = found.gaps.flatMap { Array($0.after + 1...$0.through) }
        #expect(missing.count > 1000)
        #expect((found.seqs + missing).sorted() == Array(1...5050))
    }
}
