import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// Files that are valid, but have absurd numbers, as a flipped bit or an editor may leave them.
@Suite(.timeLimit(.minutes(1)))
struct DamagedNumbersTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ limits: HistoryLimits = HistoryLimits()) throws(StoreFault) -> HistoryFile {
        let clock = GatewayClock(now: { Fixture.epoch })
        return try HistoryFile(path: folder.database, consumers: .one, limits: limits, clock: clock, log: .silent)
    }

    /// Writes a file with 300 readings and changes it.
    private func damage(_ sql: String) throws(StoreFault) {
        let file = try open()
        try file.append(.plain(integers: 0..<300))
        try file.connection.execute(sql)
        try file.close()
    }

    @Test func `a cursor far below zero is read as zero`() throws {
        try damage("UPDATE consumer SET cursor = -9223372036854775808")
        let file = try open()
        #expect(file.journal?.cursor == 0)
        #expect(try file.readings(after: 0, limit: .max).count == 300)
    }

    @Test func `extents of absurd sizes are dropped as too large`() throws {
        try damage("UPDATE outbox SET octets = 9223372036854775807")
        var limits = HistoryLimits()
        limits.backlogSize = 1_000_000
        let file = try open(limits)
        while file.isUpkeepDue { try file.upkeep() }
        #expect(try file.connection.integer("SELECT count(*) FROM outbox") == 0)
        #expect(file.undelivered == 300)
    }

    @Test func `a source of events that has no rows is forgotten`() throws {
        try damage(
            """
            INSERT INTO source (list, device, kind, n, bytes)
            VALUES ('event', 'box', 'link', 1, 9223372036854775807)
            """
        )
        let file = try open()
        while file.isUpkeepDue { try file.upkeep() }
        #expect(try file.connection.integer("SELECT count(*) FROM source") == 0)
    }

    @Test func `a correction of a clock span at the end of time is completed`() throws {
        try damage(
            """
            INSERT INTO clock (boot, offset, seq, uptime, seq_end, time_end, shift)
            VALUES ('other', 9223372036854775807, 1000, 0, 1070, 9223372036854775807, 9000000000000000000)
            """
        )
        let file = try open()
        while file.isUpkeepDue { try file.upkeep() }
        #expect(try file.connection.integer("SELECT count(*) FROM clock WHERE boot = 'other'") == 0)
    }

    @Test func `counts of absurd size are added`() throws {
        let row = NumberSummary(n: .max, sum: 1, min: .integer(1), max: .integer(1))
        var sum = try #require(row)
        sum.add(sum)
        #expect(sum.n > 1 << 32)
    }
}
