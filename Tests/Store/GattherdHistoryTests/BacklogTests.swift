import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(2)))
struct BacklogTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(
        size: Int64? = nil,
        age: Duration? = nil,
        consumers: [JournalConsumerOptions] = .one
    ) throws(StoreFault) -> HistoryFile {
        var limits = HistoryLimits()
        limits.backlogSize = size
        limits.backlogAge = age
        return try HistoryFile(
            path: folder.database,
            consumers: consumers,
            limits: limits,
            clock: GatewayClock(now: { Fixture.epoch }),
            log: .silent
        )
    }

    /// One reading a second, ten to a batch.
    private func fill(_ file: HistoryFile, seconds: Range<Int>) throws(StoreFault) {
        for start in stride(from: seconds.lowerBound, to: seconds.upperBound, by: 10) {
            var batch = ReadingBatch()
            for second in start..<min(start + 10, seconds.upperBound) {
                let time = Fixture.epoch.advanced(by: .seconds(second))
                batch.add(Fixture.plain(), at: time, (0, .integer(Int64(second))))
            }
            try file.append(batch)
        }
    }

    private func upkeep(_ file: HistoryFile, at seconds: Int? = nil) throws(StoreFault) {
        if let seconds { try file.startPass(at: Fixture.epoch.advanced(by: .seconds(seconds))) }
        while file.isUpkeepDue { try file.upkeep() }
    }

    /// The numbers of those that wait.
    private func waiting(_ file: HistoryFile) throws(StoreFault) -> ClosedRange<Int64>? {
        guard let first = try file.connection.optionalInteger("SELECT min(first) FROM outbox"),
            let last = try file.connection.optionalInteger("SELECT max(last) FROM outbox")
        else { return nil }
        #expect(try file.connection.integer("SELECT sum(last - first + 1) FROM outbox") == last - first + 1)
        return first...last
    }

    private func octets(_ file: HistoryFile) throws(StoreFault) -> Int64 {
        try file.connection.integer("SELECT total(octets) FROM outbox")
    }

    @Test(arguments: [false, true])
    func `beyond the size limit the oldest readings leave the backlog, are counted, and stay in history`(
        isReopened: Bool
    ) throws {
        let limit: Int64 = 100_000
        var file = try open(size: isReopened ? nil : limit)
        for start in stride(from: 0, to: 5000, by: 500) {
            try fill(file, seconds: start..<(start + 500))
            try upkeep(file)
            if !isReopened { #expect(try octets(file) <= limit) }
        }
        if isReopened {
            try file.close()
            file = try HistoryFile(path: folder.file("none.db"), consumers: .one, log: .silent)
            file = try open(size: limit)
            try upkeep(file)
        }
        let left = try #require(try waiting(file))
        #expect(left.upperBound == 5000)
        #expect(file.undelivered == 5000 - left.count)
        #expect(try octets(file) <= limit)
        #expect(try octets(file) > limit - limit / 50)
        #expect(try file.connection.integer("SELECT count(*) FROM sample") == 5000)
    }

    @Test func `delivered readings and readings in delivery do not count as dropped`() throws {
        let file = try open(size: 200_000)
        let outbox = try #require(file.journal)
        for start in stride(from: 0, to: 20_000, by: 500) {
            try fill(file, seconds: start..<(start + 500))
            outbox.acknowledge(through: file.head)
            try upkeep(file)
        }
        #expect(file.undelivered == 0)
        try fill(file, seconds: 20_000..<20_100)
        let taken = try file.readings(after: outbox.cursor, limit: 45)
        for start in stride(from: 20_100, to: 25_100, by: 500) {
            try fill(file, seconds: start..<(start + 500))
            try upkeep(file)
        }
        #expect(try file.readings(after: outbox.cursor, limit: 45) == taken)
        #expect(file.undelivered > 1000)
        #expect(try octets(file) <= 200_000)
    }

    @Test func `a batch that fails is not counted`() throws {
        let file = try open(size: 1_000_000)
        let pages = try file.connection.integer("PRAGMA page_count")
        try file.connection.execute("PRAGMA max_page_count = \(pages + 8)")
        for _ in 0..<10 { #expect(throws: StoreFault.self) { try fill(file, seconds: 0..<5000) } }
        try file.connection.execute("PRAGMA max_page_count = 1000000")
        try fill(file, seconds: 0..<5000)
        try upkeep(file)
        #expect(file.undelivered == 0)
    }

    @Test(arguments: [true, false])
    func `readings beyond the backlog age are dropped, also while delivery is off`(isOn: Bool) throws {
        do {
            let file = try open(age: .seconds(1000))
            try fill(file, seconds: 0..<5000)
            try upkeep(file, at: 900)
            #expect(try waiting(file) == 1...5000)
            try file.close()
        }
        let file = try open(age: .seconds(1000), consumers: isOn ? .one : [])
        try upkeep(file, at: 5000)
        #expect(try waiting(file) == 4001...5000)
        #expect(file.undelivered == 4000)
    }

    @Test func `an undelivered record of the past is dropped as late as a new reading`() throws {
        let file = try open(age: .seconds(1000))
        var batch = ReadingBatch.plain(integers: 0..<3)
        batch.add(Fixture.plain(), at: Fixture.epoch.advanced(by: .seconds(-1_000_000)), (0, .integer(4)))
        batch.readings[3].isPast = true
        try file.append(batch)
        try upkeep(file, at: 900)
        #expect(try waiting(file) == 1...4)
        try upkeep(file, at: 2000)
        #expect(try waiting(file) == nil)
    }

    /// Runs a pass `seconds` after the start; returns the number of its steps.
    private func steps(_ file: HistoryFile, at seconds: Int) throws(StoreFault) -> Int {
        try file.startPass(at: Fixture.epoch.advanced(by: .seconds(seconds)))
        var steps = 0
        while file.isUpkeepDue {
            try file.upkeep()
            steps += 1
        }
        return steps
    }

    @Test func `old samples that wait are read in one pass, and again when some are delivered or dropped`() throws {
        var limits = HistoryLimits(samples: .seconds(60))
        limits.backlogAge = .seconds(200_000)
        let clock = GatewayClock(now: { Fixture.epoch })
        let file = try HistoryFile(
            path: folder.database,
            consumers: .one,
            limits: limits,
            clock: clock,
            log: .silent
        )
        for start in stride(from: 0, to: 20_000, by: 1000) {
            var batch = ReadingBatch()
            for second in start..<(start + 1000) {
                batch.add(Fixture.plain(), at: Fixture.epoch.advanced(by: .seconds(second)), (0, .integer(1)))
            }
            try file.append(batch)
        }
        try upkeep(file)
        let samples = "SELECT count(*) FROM sample"
        let first = try steps(file, at: 100_000)
        #expect(try steps(file, at: 100_060) <= first - 4)
        #expect(try file.connection.integer(samples) == 20_000)
        file.journal?.acknowledge(through: 5000)
        try upkeep(file, at: 100_120)
        #expect(try file.connection.integer("SELECT min(seq) FROM sample") == 5001)
        #expect(try steps(file, at: 100_180) <= first - 4)
        try upkeep(file, at: 300_000)
        #expect(file.undelivered == 15_000)
        #expect(try file.connection.integer(samples) == 0)
    }
}
