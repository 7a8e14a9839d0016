import GattherdModel
import Testing

@testable import GattherdMachines

/// Records without numbers: their times, or their contents and their order identify them.
struct RecordListTests {
    private static let now = Timestamp(microseconds: 1_750_000_000_000_000)
    private static let year: Int64 = 31_536_000_000_000

    /// The rule of records that only their times identify.
    private static var timed: RecordRule {
        var rule = RecordRule(doubt: 9)
        rule.time = .clock(.init(metric: 1, unit: .seconds(1)))
        return rule
    }

    /// A device that cannot filter, and whose records have only times.
    private static var bench: RecordBench {
        var bench = RecordBench(rule: timed)
        bench.procedure = .accessControlPoint(width: 0)
        return bench
    }

    @Test(arguments: [true, false])
    func `records identified only by their times are downloaded once and leave no gaps`(isRegular: Bool) {
        var bench = Self.bench
        for _ in 0..<100 { bench.make(1, every: isRegular ? 60 : Int64(30 + bench.number(below: 300))) }
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        bench.make(50)
        #expect(bench.connect(cutAfter: 120) == nil)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.isEmpty)
    }

    @Test(arguments: 1...32 as ClosedRange<UInt64>, [true, false])
    func `records identified only by their times survive cuts, kills and live records`(seed: UInt64, hasClock: Bool) {
        var bench = RecordBench(seed: seed, rule: Self.timed)
        bench.procedure = .accessControlPoint(width: 0)
        bench.hasClock = hasClock
        for _ in 0..<20 { bench.connectWithFaults(cutBelow: 300) }
        (bench.liveRate, bench.device.refusals) = (0, 0)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
    }

    @Test func `records identified only by their times are stored after the device's clock was set back`() {
        var bench = Self.bench
        bench.device.clockError = 4 * Self.year
        bench.make(5)
        #expect(bench.connect() == .complete)
        bench.device.clockError = 0
        bench.make(3)
        #expect(bench.connect() == .complete)
        bench.kill()
        bench.make(2)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.greatestError(bench.times) <= 2)
    }

    @Test(arguments: 3..<14)
    func `records from after a setting of the clock are stored although the first download was cut`(cut: Int) {
        var bench = Self.bench
        bench.device.clockError = 3_600_000_000
        bench.make(10)
        bench.device.clockError = 0
        bench.make(5)
        #expect(bench.connect(cutAfter: cut) == nil)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
    }

    @Test func `records from before the second setting of the clock are stored`() {
        var bench = Self.bench
        bench.device.clockError = 3_600_000_000
        bench.make(5)
        #expect(bench.connect() == .complete)
        bench.device.clockError = 0
        bench.make(3)
        #expect(bench.connect() == .complete)
        bench.make(3)
        bench.device.clockError = 7_200_000_000
        bench.make(2)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
    }

    @Test(arguments: [3, Int.max])
    func `records that an answer by time leaves out stay known`(cut: Int) throws {
        var bench = RecordBench(rule: Self.timed)
        bench.procedure = .request(try #require(RecordingDevice.timeRequest), end: RecordingDevice.end)
        for _ in 0..<3 {
            bench.make(5)
            #expect(bench.connect() == .complete)
        }
        bench.make(5)
        bench.connect(cutAfter: cut)
        bench.device.clockError = -3_600_000_000
        bench.make(5, every: 1200)
        for _ in 0..<2 { #expect(bench.connect() == .complete) }
        #expect(bench.wrong().isEmpty)
    }

    @Test(arguments: [-3_600_000_000, 3_600_000_000] as [Int64])
    func `live records are stored once although the device's clock was set after them`(error: Int64) {
        var bench = Self.bench
        bench.make(3)
        #expect(bench.connect() == .complete)
        bench.makeLive(3)
        bench.disconnect()
        bench.make(1, every: 7200)
        bench.device.clockError = error
        bench.make(1)
        for _ in 0..<2 { #expect(bench.connect() == .complete) }
        #expect(bench.wrong().isEmpty)
    }

    /// Downloads records without numbers and times; returns the new ones.
    private func download(_ digests: [Int64], _ tracker: inout RecordTracker, isCut: Bool = false) -> [Int64] {
        tracker.begin(.all, at: Self.now)
        let new = digests.filter { tracker.receive(ReceivedRecord(digest: $0), at: Self.now) != .duplicate }
        if isCut { tracker.end() } else { tracker.complete() }
        return new
    }

    @Test func `records without a time are stored once, and equal ones as often as the device has them`() {
        var tracker = RecordTracker(Self.timed)
        #expect(download([5, 6, 6], &tracker, isCut: true) == [5, 6, 6])
        #expect(download([5, 6, 6, 7], &tracker) == [7])
        tracker = RecordTracker(Self.timed, restoring: tracker.state)
        #expect(download([5, 6, 6, 7, 7], &tracker) == [7])
        // The device has overwritten the first ones.
        #expect(download([7, 7, 5, 6], &tracker) == [5, 6])
        #expect(download([7, 7, 5, 6], &tracker).isEmpty)
    }

    @Test func `a record that is later than all stored ones is new, even if its digest is known`() {
        var tracker = RecordTracker(Self.timed)
        let second: Int64 = 1_000_000
        tracker.compare(device: Self.now.microseconds, gateway: Self.now)
        // The list has 32 bits of each digest.
        let (first, later) = (
            ReceivedRecord(reading: Self.now.microseconds - 90 * second, digest: 5),
            ReceivedRecord(reading: Self.now.microseconds - 60 * second, digest: 5 << 32)
        )
        tracker.begin(.all, at: Self.now)
        #expect(tracker.receive(first, at: Self.now) != .duplicate)
        tracker.complete()
        tracker = RecordTracker(Self.timed, restoring: tracker.state)
        tracker.begin(.all, at: Self.now)
        #expect(tracker.receive(first, at: Self.now) == .duplicate)
        #expect(tracker.receive(later, at: Self.now) != .duplicate)
        tracker.complete()
        tracker.begin(.all, at: Self.now)
        #expect(tracker.receive(later, at: Self.now) == .duplicate)
    }

    @Test func `a listed record from before the clock was set back is known after a live one`() {
        var tracker = RecordTracker(Self.timed)
        let hour: Int64 = 3_600_000_000
        let (first, live) = (
            ReceivedRecord(reading: Self.now.microseconds + 240 * hour, digest: 1),
            ReceivedRecord(reading: Self.now.microseconds + 12 * hour, digest: 2)
        )
        tracker.begin(.all, at: Self.now)
        #expect(tracker.receive(first, at: Self.now) != .duplicate)
        tracker.complete()
        #expect(tracker.receive(live, at: Self.now) != .duplicate)
        tracker.begin(.all, at: Self.now)
        #expect(tracker.receive(first, at: Self.now) == .duplicate)
        #expect(tracker.receive(live, at: Self.now) == .duplicate)
    }

    @Test func `a list of records without end has a bound`() {
        var tracker = RecordTracker(Self.timed)
        #expect(download(Array(0..<5000), &tracker).count == 5000)
        #expect(tracker.state.utf8.count < 8192)
        #expect(download(Array(4600..<5000), &tracker).isEmpty)
    }
}
