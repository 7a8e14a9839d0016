import Dispatch
import Foundation
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(3)))
struct DamageTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(
        arguments: [.max, .max - 1] as [Int64],
        [10_000, 16_383]
    )
    func `a damaged row beyond the end does not end a query early`(time: Int64, victim: Int) async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<20_000))
        try await history.close()
        try replace(Fixture.epoch.microseconds + Int64(victim), by: time)
        let reader = try HistoryReader(path: folder.database)
        for query in [HistoryQuery(), HistoryQuery(device: "nobody"), HistoryQuery(since: Fixture.epoch)] {
            let fault = #expect(throws: StoreFault.self) { try reader.rows(query) { _ in true } }
            #expect(fault?.kind == .damaged)
            #expect(throws: StoreFault.self) { try reader.buckets(query, every: .seconds(1)) { _ in true } }
        }
        // What is before it is not affected.
        let until = Fixture.epoch.advanced(by: .microseconds(5000))
        var count = 0
        try reader.rows(HistoryQuery(since: Fixture.epoch, until: until)) { _ in
            count += 1
            return true
        }
        #expect(count == 5000)
    }

    /// As SQLite writes it.
    private static func octets(of time: Int64) -> Data {
        Data(stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: time >> $0) })
    }

    /// Overwrites a time wherever it is in the file.
    private func replace(_ old: Int64, by new: Int64) throws {
        var octets = try Data(contentsOf: URL(filePath: folder.database))
        let pattern = Self.octets(of: old)
        var rest = octets.startIndex..<octets.endIndex
        while let place = octets.range(of: pattern, in: rest) {
            octets.replaceSubrange(place, with: Self.octets(of: new))
            rest = place.upperBound..<octets.endIndex
        }
        try octets.write(to: URL(filePath: folder.database))
    }

    @Test func `copying a damaged file reports the damage, not a full disk`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<50_000))
        try await history.close()
        try breakPages()
        let copy = folder.file("copy.db")
        let backup = #expect(throws: StoreFault.self) { try HistoryReader(path: folder.database).backUp(to: copy) }
        #expect(backup?.kind == .damaged)
        let compaction = #expect(throws: StoreFault.self) { try Compaction(path: folder.database) }
        #expect(compaction?.kind == .damaged)
    }

    /// Overwrites the cell sizes and page numbers of some pages in the middle.
    private func breakPages() throws {
        var octets = try Data(contentsOf: URL(filePath: folder.database))
        var random = SplitMix(state: 3)
        for page in stride(from: 20, to: octets.count / 4096, by: 7) {
            for place in page * 4096 + 1500..<page * 4096 + 1800 { octets[place] = UInt8(random.next(below: 256)) }
        }
        try octets.write(to: URL(filePath: folder.database))
    }

    /// A check that waits until the test lets it end.
    private final class HeldCheck: Sendable {
        private let (begins, begin) = AsyncStream.makeStream(of: Void.self)
        private let gate = DispatchSemaphore(value: 0)

        func run(_ verdict: StoreFault?) throws(StoreFault) {
            begin.yield()
            gate.wait()
            if let verdict { throw verdict }
        }

        func waitForBegin() async { for await _ in begins { return } }

        func end() { gate.signal() }
    }

    @Test(arguments: [true, false])
    func `the history thread stays responsive while a damaged file is checked`(isDamaged: Bool) async throws {
        let held = HeldCheck()
        var options = HistoryOptions(path: folder.database, consumers: [], clock: GatewayClock(now: { Fixture.epoch }))
        options.check = { (_) throws(StoreFault) in
            try held.run(isDamaged ? StoreFault("a page is damaged", .damaged) : nil)
        }
        let history = try await ReadingHistory.open(options, log: .silent)
        try await history.append(.plain(integers: 0..<10))
        await history.recordFailure(StoreFault("a page is damaged", .damaged))
        await held.waitForBegin()
        let fault = await #expect(throws: StoreFault.self) { try await history.append(.plain(integers: 10..<20)) }
        #expect(fault?.kind == .damaged)
        held.end()
        try await eventually { (try? await history.append(.plain(integers: 10..<20))) != nil }
        try await history.close()
        let contents = try HistoryReader(path: folder.database).contents()
        #expect(contents.samples == (isDamaged ? 10 : 20))
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.contains { $0.contains(".corrupt-") } == isDamaged)
    }
}
