import GattherdModel
import Testing

@testable import GattherdMachines

/// Records of a device that is told the time, such as a RuuviTag: their times and numbers vary between downloads.
struct RecordToldTests {
    private static let start: Int64 = 1_750_000_000
    private static let second: Int64 = 1_000_000

    private var tracker: RecordTracker {
        var rule = RecordBench().rule
        rule.isDense = false
        return RecordTracker(rule)
    }

    /// Downloads a log with three entries every five minutes.
    ///
    /// - Parameters:
    ///   - tracker: The tracker.
    ///   - last: The number of the newest entry, counted from 0.
    ///   - shift: The error of the times in this download, in seconds.
    ///   - cut: The number of entries after which the link is cut.
    /// - Returns: The numbers of the entries that are stored, counted from 0.
    private func download(
        _ tracker: inout RecordTracker,
        through last: Int64,
        shift: Int64,
        cutAfter cut: Int = .max
    ) -> [Int64] {
        let now = Timestamp(microseconds: (Self.start + 100_000) * Self.second)
        tracker.tell(now)
        let since = DownloadFacts(tracker).newest ?? 0
        tracker.begin(.all, at: now)
        let times = (0...last).map { (entry: $0, seconds: Self.start + $0 / 3 * 300 + shift) }
        let stored = times.filter { $0.seconds > since }.prefix(cut).filter { entry, seconds in
            let number = seconds * 4 + entry % 3
            let record = ReceivedRecord(number: number, reading: seconds * Self.second, digest: entry)
            return if case .store = tracker.receive(record, at: now) { true } else { false }
        }
        if cut == .max { tracker.complete() } else { tracker.end() }
        return stored.map { $0.entry }
    }

    @Test(arguments: [-1, 0, 1] as [Int64], 0...7)
    func `entries whose times and numbers vary by a second are stored once`(shift: Int64, cut: Int) {
        var tracker = tracker
        var stored = download(&tracker, through: 8, shift: 0, cutAfter: cut)
        stored += download(&tracker, through: 8, shift: shift)
        stored += download(&tracker, through: 11, shift: 0)
        #expect(stored == Array(0...11 as ClosedRange<Int64>))
        #expect(tracker.removeNotices().isEmpty)
    }

    @Test func `a known entry has its earlier number for records that belong to it`() {
        var tracker = tracker
        _ = download(&tracker, through: 2, shift: 0)
        let number = tracker.lastNumber
        #expect(number == Self.start * 4 + 2)
        let again = download(&tracker, through: 2, shift: 1)
        #expect(again.isEmpty)
        #expect(tracker.lastNumber == number && tracker.lastTime != nil)
    }

    @Test func `record numbers that are not made of the time are not changed`() {
        var tracker = tracker
        let now = Timestamp(microseconds: Self.start * Self.second)
        tracker.tell(now)
        for number in [7, 3_000_000_007] as [Int64] {
            for round in 0...1 as ClosedRange<Int64> {
                tracker.begin(.all, at: now)
                let reading = (Self.start - 100 + round) * Self.second
                let record = ReceivedRecord(number: number + round, reading: reading)
                let outcome = tracker.receive(record, at: now)
                #expect(outcome == .store(Timestamp(microseconds: reading), doubt: nil))
                tracker.complete()
            }
        }
    }
}
