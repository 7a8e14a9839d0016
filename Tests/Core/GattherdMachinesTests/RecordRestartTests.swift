import GattherdModel
import Testing

@testable import GattherdMachines

/// Numbers that restart, or seem to, and live records around them.
struct RecordRestartTests {
    private static let start: Int64 = 1_750_000_000_000_000

    /// The standard rule with numbers of a byte, which wrap.
    private static var wrapping: RecordRule {
        var rule = RecordBench().rule
        rule.wrapBits = 8
        return rule
    }

    private static func time(_ seconds: Int64) -> Timestamp { Timestamp(microseconds: start + seconds * 1_000_000) }

    /// A record that a right clock dates.
    private static func record(_ number: Int64, made seconds: Int64) -> ReceivedRecord {
        ReceivedRecord(number: number, reading: time(seconds).microseconds)
    }

    /// A tracker with a right clock that has the records below 200, one for each second.
    private static func tracker() -> RecordTracker {
        var tracker = RecordTracker(wrapping)
        tracker.compare(device: time(200).microseconds, gateway: time(200))
        tracker.begin(.all, at: time(200))
        for number in 0..<200 as Range<Int64> { _ = tracker.receive(record(number, made: number), at: time(200)) }
        tracker.complete()
        return RecordTracker(wrapping, restoring: tracker.state)
    }

    @Test func `after a live record shows a restart, all new numbers are requested`() {
        var tracker = Self.tracker()
        tracker.compare(device: Self.time(900).microseconds, gateway: Self.time(900))
        // The device has made 151 records since, so that this number is nearer to those before.
        _ = tracker.receive(Self.record(94, made: 900), at: Self.time(900))
        tracker.begin(.from(199), at: Self.time(901))
        #expect(tracker.isRestarted)
        tracker.complete()
        #expect(tracker.resumption == nil)
        tracker.begin(.all, at: Self.time(902))
        #expect(!tracker.isRestarted)
    }

    @Test(arguments: 1...3, [true, false])
    func `live records of a device that was reset hide no stored ones`(live: Int, hasClock: Bool) {
        var bench = RecordBench()
        bench.hasClock = hasClock
        bench.make(100)
        #expect(bench.connect() == .complete)
        bench.disconnect()
        bench.device.reset()
        bench.make(120)
        bench.makeLive(live)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices == [.restarted])
    }

    @Test func `records from before a reset hide none of a device that sends the newest first`() {
        var bench = RecordBench()
        bench.device.isNewestFirst = true
        bench.make(2)
        #expect(bench.connect() == .complete)
        bench.make(3)
        // The link is cut after the count and two records.
        #expect(bench.connect(cutAfter: 3) == nil)
        bench.device.reset()
        bench.make(7)
        #expect(bench.connect() == .complete)
        #expect(!bench.wrong(except: [2]).values.contains(0))
    }

    @Test(arguments: [nil, 30] as [Int?])
    func `all records of a reset device are downloaded again although the first ones seem to be known`(
        cut: Int?
    ) {
        var bench = RecordBench()
        // A device that cannot filter, with a clock that starts anew and cannot be read.
        (bench.procedure, bench.hasClock) = (.accessControlPoint(width: 0), false)
        bench.make(20)
        #expect(bench.connect() == .complete)
        bench.device.reset()
        bench.device.clockError = -20 * 31_536_000_000_000
        bench.make(40)
        if let cut { #expect(bench.connect(cutAfter: cut) == nil) }
        for _ in 0..<2 {
            #expect(bench.connect() == .complete)
            #expect(bench.wrong().isEmpty)
        }
        #expect(bench.notices == [.restarted])
    }

    @Test(arguments: [5, 40])
    func `records of a reset device whose clock starts anew have their right times`(count: Int) {
        var bench = RecordBench()
        bench.make(20)
        #expect(bench.connect() == .complete)
        bench.device.reset()
        bench.device.clockError = -20 * 31_536_000_000_000
        bench.make(count)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.greatestError(bench.times) <= 1)
        #expect(bench.stored.allSatisfy { $0.doubt == nil })
    }

    @Test(arguments: [0, 4], 1...3)
    func `live records of a reset device whose clock starts anew are stored once`(width: Int, live: Int) {
        var bench = RecordBench()
        bench.procedure = .accessControlPoint(width: width)
        bench.make(20)
        #expect(bench.connect() == .complete)
        bench.device.reset()
        bench.device.clockError = -20 * 31_536_000_000_000
        bench.make(40)
        // The clocks are compared, and the link is cut before the first stored record.
        #expect(bench.connect(cutAfter: 0) == nil)
        bench.makeLive(live)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.greatestError(bench.times) <= 1)
        #expect(bench.stored.allSatisfy { $0.doubt == nil })
        #expect(bench.notices == [.clockSet, .restarted])
    }

    @Test func `live records before the first download are in order with stored ones from before a wrap`() {
        var bench = RecordBench(rule: Self.wrapping)
        (bench.device.numberBits, bench.device.capacity) = (8, 96)
        bench.make(290)
        bench.makeLive(2)
        #expect(bench.connect() == .complete)
        bench.make(60)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong(except: bench.overwritten).isEmpty)
    }

    @Test func `only a record made after the receipt of one with an uncertain time shows a restart`() {
        let (guess, receipt) = (Self.time(10).microseconds, Self.time(90).microseconds)
        let state = "3;0;50:0:\(guess):0:\(receipt);;;50:0:\(guess):0:\(receipt);;;;"
        var tracker = RecordTracker(RecordBench().rule, restoring: state)
        #expect(tracker.state == state)
        tracker.compare(device: Self.time(200).microseconds, gateway: Self.time(200))
        tracker.begin(.all, at: Self.time(200))
        #expect(tracker.receive(Self.record(40, made: 80), at: Self.time(200)) == .duplicate)
        #expect(tracker.receive(Self.record(5, made: 100), at: Self.time(200)) != .duplicate)
        #expect(tracker.generation == 1)
    }

    @Test func `the state has the receipt of a record with an uncertain time`() {
        var tracker = RecordTracker(RecordBench().rule)
        tracker.compare(device: Self.time(0).microseconds, gateway: Self.time(0))
        tracker.compare(device: Self.time(3600).microseconds, gateway: Self.time(7200))
        _ = tracker.receive(Self.record(1, made: 100), at: Self.time(7201))
        #expect(tracker.top?.receipt == Self.time(7201).microseconds)
        #expect(RecordTracker(RecordBench().rule, restoring: tracker.state).top == tracker.top)
    }

    @Test(arguments: [Int64.max, .min]) func `a state whose clock has an impossible base has no record`(base: Int64) {
        let state = "3;0;50:0:10:\(base);;;50:0:10:\(base);;;;"
        #expect(RecordTracker(RecordBench().rule, restoring: state).resumption == nil)
    }

    @Test func `a download does not continue after a hole that follows a repeated record`() {
        var tracker = Self.tracker()
        // The device has overwritten the newest stored record.
        for numbers in [[250], [250, 252, 253, 254]] as [[Int64]] {
            tracker.compare(device: Self.time(300).microseconds, gateway: Self.time(300))
            tracker.begin(.from(199), at: Self.time(300))
            for number in numbers { _ = tracker.receive(Self.record(number, made: number), at: Self.time(300)) }
            tracker.end()
        }
        #expect(tracker.resumption == 199)
    }

    @Test func `a live record beyond a requested range does not hide the records after the range`() {
        var tracker = Self.tracker()
        tracker.begin(.within(199...326), at: Self.time(900))
        _ = tracker.receive(Self.record(60, made: 316), at: Self.time(900))
        #expect(!tracker.hasRangeEnd)
        _ = tracker.receive(Self.record(80, made: 336), at: Self.time(900))
        #expect(tracker.hasRangeEnd)
    }

    @Test func `a range of stored records is not requested without end`() {
        var machine = DownloadMachine(.accessControlPoint(width: 1), timeout: .seconds(30), clock: { 0 })
        var facts = DownloadFacts()
        (facts.resumption, facts.highest, facts.hasWrapped) = (80, 255, true)
        #expect(machine.handle(.opened(facts), at: .zero) == [.write([4, 4, 1, 80, 207])])
        _ = machine.handle(.response([5, 0, 16, 0]), at: .zero)
        _ = machine.handle(.response([6, 0, 1, 1]), at: .zero)
        (facts.requests, facts.hasRangeEnd) = (1, true)
        let steps = machine.handle(.drained(facts), at: .zero)
        #expect(steps == [.begin(.from(207)), .write([1, 3, 1, 207])])
    }

    @Test func `ranges of stored records around a wrap are not requested without end`() {
        var machine = DownloadMachine(.accessControlPoint(width: 1), timeout: .seconds(30), clock: { 0 })
        var facts = DownloadFacts()
        // Live records reach the second half of the numbers after the wrap, but no download was complete.
        (facts.resumption, facts.highest, facts.isAtWrap, facts.hasRangeEnd) = (200, 255, true, true)
        _ = machine.handle(.opened(facts), at: .zero)
        var steps = machine.handle(.response([5, 0, 1, 0]), at: .zero)
        facts.count = 1
        while !steps.contains(.complete), facts.requests < 100 {
            facts.requests += 1
            _ = machine.handle(.response([6, 0, 1, 1]), at: .zero)
            steps = machine.handle(.drained(facts), at: .zero)
        }
        #expect(facts.requests < 20)
    }
}
