import CSQLite
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// The cursors of stored records, which are committed together with their readings.
@Suite(.timeLimit(.minutes(1))) struct RecordCursorTests {
    private let folder: TemporaryFolder
    private static let key = RecordCursor.Key(device: "meter", profile: "glucose", stream: "glucose")

    init() throws {
        folder = try TemporaryFolder()
    }

    private func batch(_ number: Int64) -> ReadingBatch {
        var batch = ReadingBatch.plain(integers: 0..<1)
        batch.cursors[Self.key] = RecordCursor(
            key: Self.key,
            address: "C0:FF:EE:00:00:01",
            number: number,
            time: Fixture.epoch,
            state: "state \(number)"
        )
        return batch
    }

    @Test func `a restart restores the cursor that was saved with the last readings`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(batch(1))
        try await history.append(batch(2))
        try await history.close()
        let again = try await ReadingHistory.open(folder)
        #expect(try await again.recordCursors() == Array(batch(2).cursors.values))
    }

    @Test func `a batch that is not stored moves no cursor`() throws {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        try file.append(batch(1))
        try file.connection.execute("CREATE TRIGGER no BEFORE INSERT ON sample BEGIN SELECT RAISE(ABORT, 'no'); END")
        #expect(throws: StoreFault.self) { try file.append(batch(2)) }
        #expect(try file.recordCursors().map(\.number) == [1])
    }

    @Test func `the cursor of a device that never had a reading is removed with the device`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(batch(1))
        try await history.removeTraces(of: ["meter"])
        #expect(try await history.recordCursors().isEmpty)
    }

    @Test func `records of the past lower the first time of their series`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<1))
        var past = ReadingBatch.plain([.integer(1)], at: Timestamp(microseconds: 1_700_000_000_000_000))
        past.readings[0].isPast = true
        try await history.append(past)
        #expect(try await folder.shell.value("SELECT count(*) FROM history WHERE ts < 1704067200000000") == "1")
        #expect(try await folder.shell.value("SELECT first FROM series") == "2023-11-14T22:13:20.000000Z")
    }

    /// A reading that was made some minutes before ``Fixture/epoch``.
    private func past(_ minutes: Int, _ value: Int64) -> ReadingBatch {
        var batch = ReadingBatch.plain([.integer(value)], at: Fixture.epoch.advanced(by: .seconds(-60 * minutes)))
        batch.readings[0].isPast = true
        return batch
    }

    @Test func `a record of the past is the newest row only if no row is later`() async throws {
        var history = try await ReadingHistory.open(folder)
        let latest = "SELECT value FROM latest"
        try await history.append(past(90, 1))
        try await history.append(past(60, 2))
        try await history.append(past(80, 3))
        #expect(try await folder.shell.rows(latest) == [["2"]])
        try await history.append(.plain(integers: 4..<5))
        try await history.append(past(30, 5))
        #expect(try await folder.shell.rows(latest) == [["4"]])
        try await history.close()
        // Another process does not know the newest row yet.
        history = try await ReadingHistory.open(folder)
        try await history.append(past(20, 6))
        #expect(try await folder.shell.rows(latest) == [["4"]])
        #expect(try await folder.shell.value("SELECT last FROM series") == Fixture.epoch.rfc3339)
        try await history.append(past(-20, 7))
        #expect(try await folder.shell.rows(latest) == [["7"]])
        var batch = ReadingBatch.plain([.integer(8)], at: Fixture.epoch.advanced(by: .seconds(1500)))
        batch.add(Fixture.plain(), at: Fixture.epoch, (0, .integer(9)))
        batch.readings[1].isPast = true
        try await history.append(batch)
        #expect(try await folder.shell.rows(latest) == [["8"]])
        try await history.close()
    }

    @Test func `a consumer that is new gets no earlier record of the past`() async throws {
        let history = try await ReadingHistory.open(path: folder.database, consumers: [], log: .silent)
        try await history.append(.plain(integers: 0..<1))
        try await history.append(past(30, 1))
        try await history.close()
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        #expect(file.journal?.cursor == 2)
    }
}
