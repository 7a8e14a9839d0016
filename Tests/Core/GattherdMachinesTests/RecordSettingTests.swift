import GattherdModel
import Testing

@testable import GattherdMachines

/// The times of records around a setting of the device's clock.
struct RecordSettingTests {
    private static let hour: Int64 = 3600

    private static func time(_ seconds: Int64) -> Timestamp {
        Timestamp(microseconds: 1_750_000_000_000_000 + seconds * 1_000_000)
    }

    /// A record by a clock that is ahead by some seconds.
    private static func record(_ number: Int64, made seconds: Int64, ahead: Int64) -> ReceivedRecord {
        ReceivedRecord(number: number, reading: time(seconds + ahead).microseconds)
    }

    /// A tracker with a complete download at second 0; before the first comparison the clock was set an hour ahead.
    private static func tracker(comparedAt comparisons: [Int64]) -> RecordTracker {
        var tracker = RecordTracker(RecordBench().rule)
        tracker.compare(device: time(0).microseconds, gateway: time(0))
        tracker.begin(.all, at: time(0))
        tracker.complete()
        for seconds in comparisons {
            tracker.compare(device: time(seconds + hour).microseconds, gateway: time(seconds))
        }
        return tracker
    }

    @Test func `a live record does not change the times of stored ones that follow`() {
        var tracker = Self.tracker(comparedAt: [1000])
        tracker.begin(.all, at: Self.time(1000))
        for (number, made, ahead) in [(1, 100, 0), (9, 1001, Self.hour), (2, 200, 0)] as [(Int64, Int64, Int64)] {
            let outcome = tracker.receive(Self.record(number, made: made, ahead: ahead), at: Self.time(1002))
            #expect(outcome == .store(Self.time(made), doubt: nil))
        }
    }

    @Test func `no record from after the first comparison has a time by an earlier setting`() {
        var tracker = Self.tracker(comparedAt: [1000, 2000, 9000])
        tracker = RecordTracker(RecordBench().rule, restoring: tracker.state)
        tracker.begin(.all, at: Self.time(9000))
        let outcome = tracker.receive(Self.record(1, made: 1500, ahead: Self.hour), at: Self.time(9000))
        #expect(outcome == .store(Self.time(1500), doubt: nil))
    }

    @Test func `a known record from before all kept settings makes no later time certain`() {
        var tracker = RecordTracker(RecordBench().rule)
        let known = Self.record(1, made: -10, ahead: Self.hour)
        for (seconds, ahead) in [(0, Self.hour), (100, 0)] as [(Int64, Int64)] {
            tracker.compare(device: Self.time(seconds + ahead).microseconds, gateway: Self.time(seconds))
            tracker.begin(.all, at: Self.time(seconds))
            _ = tracker.receive(known, at: Self.time(seconds))
            tracker.complete()
        }
        tracker.compare(device: Self.time(960).microseconds, gateway: Self.time(900))
        tracker.begin(.from(1), at: Self.time(900))
        #expect(tracker.receive(known, at: Self.time(900)) == .duplicate)
        let outcome = tracker.receive(Self.record(2, made: 500, ahead: 0), at: Self.time(900))
        #expect(outcome == .store(Self.time(500), doubt: "the device's clock was set"))
    }

    @Test func `the uncertain time of a record makes no later one certain`() {
        var tracker = Self.tracker(comparedAt: [9000])
        tracker.begin(.all, at: Self.time(9000))
        for (number, made) in [(1, 1500), (2, 1600)] as [(Int64, Int64)] {
            let outcome = tracker.receive(Self.record(number, made: made, ahead: Self.hour), at: Self.time(9000))
            #expect(outcome == .store(Self.time(made + Self.hour), doubt: "the device's clock was set"))
        }
    }

    @Test(arguments: [-3600, 3600] as [Int64])
    func `live records hide no stored ones if the clock is set during a download that ends early`(shift: Int64) {
        var rule = RecordBench().rule
        rule.isDense = false
        var tracker = RecordTracker(rule)
        tracker.compare(device: Self.time(0).microseconds, gateway: Self.time(0))
        tracker.begin(.all, at: Self.time(0))
        for number in 0..<20 as Range<Int64> {
            _ = tracker.receive(Self.record(number, made: 60 * number - 6000, ahead: 0), at: Self.time(0))
        }
        for live in 1...3 as ClosedRange<Int64> {
            _ = tracker.receive(Self.record(99 + live, made: live, ahead: shift), at: Self.time(live))
        }
        #expect(tracker.resumption == 19)
    }
}
