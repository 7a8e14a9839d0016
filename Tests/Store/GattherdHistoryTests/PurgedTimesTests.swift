import Testing

@testable import GattherdHistory

@Suite struct PurgedTimesTests {
    private static let hour = Resolution.hours.length

    @Test func `rows are purged from the oldest on`() {
        var purged = PurgedTimes()
        purged.add(from: .min, through: 10, latest: 20, isPending: false)
        purged.add(from: .min, through: 5, latest: 20, isPending: false)
        #expect(purged == PurgedTimes(past: 11))
        #expect(purged.contains(10) && !purged.contains(11))
    }

    @Test func `rows of a pending clock are purged separately from current rows`() {
        var purged = PurgedTimes(past: 10)
        purged.add(from: 1000, through: 1500, latest: 1600, isPending: true)
        purged.add(from: 1501, through: 1550, latest: 1600, isPending: true)
        #expect(purged == PurgedTimes(past: 10, ahead: 1000..<1551))
        #expect(!purged.contains(500) && purged.contains(1550))
        #expect(purged.reach(before: 900) == 10 && purged.reach(before: 1100) == 1551)
        purged.add(from: .min, through: 999, latest: 1600, isPending: false)
        #expect(purged == PurgedTimes(past: 1551))
    }

    @Test func `the earlier of two separate purged ranges joins the purged past`() {
        var purged = PurgedTimes(past: 10, ahead: 1000..<1500)
        purged.add(from: 100, through: 199, latest: 300, isPending: true)
        #expect(purged == PurgedTimes(past: 200, ahead: 1000..<1500))
        purged.add(from: 2000, through: 2999, latest: 300, isPending: true)
        #expect(purged == PurgedTimes(past: 1500, ahead: 2000..<3000))
    }

    @Test func `purging rows of the future does not move the purged past`() {
        var purged = PurgedTimes(past: 10)
        purged.add(from: 3 * Self.hour, through: 5 * Self.hour, latest: Self.hour, isPending: false)
        #expect(purged == PurgedTimes(past: 10, ahead: 3 * Self.hour..<5 * Self.hour + 1))
    }

    @Test func `the purged past of a clock in the future ends at the time of the trusted clock`() {
        var purged = PurgedTimes(past: 400 * Self.hour)
        purged.limit(to: 20 * Self.hour)
        #expect(purged == PurgedTimes(past: 20 * Self.hour))
        purged.limit(to: 19 * Self.hour)
        #expect(purged == PurgedTimes(past: 20 * Self.hour))
    }

    @Test func `purged times move with the rows of their clock`() {
        var purged = PurgedTimes(past: 10, ahead: 1000..<1500)
        purged.move(900..<2000, by: -800)
        #expect(purged == PurgedTimes(past: 10, ahead: 200..<700))
        purged.move(0..<20, by: 50)
        #expect(purged == PurgedTimes(past: 60, ahead: 200..<700))
    }
}
