import GattherdHistory
import GattherdModel
import TestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ValueTests {
    static let values: [SampleValue] = [
        .integer(.min), .integer(.max), .integer(0), .integer(-1),
        .real(0.1), .real(0.1 + 0.2), .real(1.0 / 3), .real(815.0 / 1024), .real(.leastNonzeroMagnitude),
        .real(.greatestFiniteMagnitude), .real(-0.0), .real(72),
        .text(""), .text("it's \"quoted\"; DROP TABLE sample"), .text("before\u{0}after"), .text("äöü 心拍 🫀"), .null,
    ]

    @Test(arguments: values)
    func `a value is restored exactly, with its type`(value: SampleValue) async throws {
        let folder = try TemporaryFolder()
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain([value]))
        let rows = try HistoryReader(path: folder.database).allRows()
        #expect(rows.map(\.value) == [value])
        if case .real(let number) = value, case .real(let stored) = rows.first?.value {
            #expect(stored.bitPattern == number.bitPattern)
        }
    }

    @Test(
        arguments: [
            (.boolean(true), .integer(1)), (.boolean(false), .integer(0)), (.real(.nan), .null),
            (.real(.infinity), .null), (.real(-.infinity), .null),
        ] as [(SampleValue, SampleValue)]
    )
    func `booleans are stored as 1 and 0, non-finite numbers as NULL`(
        value: SampleValue,
        stored: SampleValue
    ) async throws {
        let folder = try TemporaryFolder()
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain([value]))
        #expect(try HistoryReader(path: folder.database).allRows().map(\.value) == [stored])
    }

    @Test func `values 1/1024 s apart stay distinct in sqlite3 and in payloads`() async throws {
        let folder = try TemporaryFolder()
        let history = try await ReadingHistory.open(folder)
        let raw = Array(0..<UInt16(2048)) + [65_534, 65_535]
        try await history.append(.plain(raw.map { .real(Double($0) / 1024) }))
        let stored = try await folder.shell.rows("SELECT value FROM history ORDER BY seq").compactMap { Double($0[0]) }
        #expect(stored == raw.map { Double($0) / 1024 })
        let payloads = try await history.readings(after: 0, limit: 5000).map(\.json)
        #expect(payloads.last?.hasSuffix(#""value":63.9990234375}"#) == true)
        #expect(Set(payloads).count == raw.count)
    }

    @Test func `a reading without samples has no row, nor a repeated metric without elements`() async throws {
        let folder = try TemporaryFolder()
        let history = try await ReadingHistory.open(folder)
        var batch = ReadingBatch()
        batch.add(Fixture.heartRate(), (0, .integer(72)))
        batch.add(Fixture.heartRate())
        batch.add(Fixture.heartRate(), (0, .integer(73)))
        try await history.append(batch)
        let rows = try HistoryReader(path: folder.database).allRows()
        #expect(rows.map(\.series.metric) == ["heart_rate", "heart_rate"])
        let payloads = try await history.readings(after: 0, limit: 10).map(\.json)
        #expect(
            payloads
                == [72, 73].enumerated().map { index, rate in
                    #"{"seq":\#(index + 1),"ts":"2026-11-21T03:20:05.123456Z","source":"notify","heart_rate":\#(rate)}"#
                }
        )
    }

    @Test func `an inconsistent batch is refused as a whole`() async throws {
        let folder = try TemporaryFolder()
        let history = try await ReadingHistory.open(folder)
        var foreignMetric = ReadingBatch.plain(integers: 0..<3)
        foreignMetric.add(Fixture.plain(), (1, .integer(1)))
        var foreignSamples = ReadingBatch.plain(integers: 0..<3)
        foreignSamples.samples.removeLast()
        for batch in [foreignMetric, foreignSamples] {
            await #expect(throws: StoreFault.self) { try await history.append(batch) }
        }
        #expect(try HistoryReader(path: folder.database).allRows().isEmpty)
    }
}

extension HistoryReader {
    func allRows(_ query: HistoryQuery = HistoryQuery()) throws(StoreFault) -> [HistoryRow] {
        var all: [HistoryRow] = []
        try rows(query) { row in
            all.append(row)
            return true
        }
        return all
    }
}
