import GattherdModel
import Testing

@testable import GattherdMachines

/// Downloads of stored records in virtual time, with cuts, kills, wraps and resets.
struct RecordTrackerTests {
    private func times(_ bench: RecordBench) -> [Int: Int64] {
        Dictionary(bench.device.ring.map { ($0.identity, $0.time) }) { first, _ in first }
    }

    @Test(arguments: 0..<60)
    func `a link that is cut at each record loses no record and stores none twice`(cut: Int) {
        var bench = RecordBench()
        bench.make(50)
        #expect(bench.connect(cutAfter: cut) == (cut > 51 ? .complete : nil))
        if cut % 2 == 0 { bench.kill() }
        bench.make(3)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.greatestError(times(bench)) <= 1)
        #expect(bench.stored.allSatisfy { $0.doubt == nil })
    }

    @Test(arguments: 1...300 as ClosedRange<UInt64>)
    func `random cuts, kills and clock settings lose no record, store none twice and keep the times`(seed: UInt64) {
        var bench = RecordBench(seed: seed)
        bench.device.clockError = Int64(bench.number(below: 100_000)) * 1_000_000
        var times: [Int: Int64] = [:]
        for round in 0..<12 {
            bench.make(bench.number(below: 40), every: Int64(30 + bench.number(below: 300)))
            // The clock is set far away, so that only one of its two states gives possible times.
            if round % 4 == 3 { bench.device.clockError = Int64(bench.number(below: 1000) - 1500) * 1_000_000_000_000 }
            bench.make(bench.number(below: 40))
            times.merge(self.times(bench)) { first, _ in first }
            bench.connect(cutAfter: bench.number(below: 70))
            if bench.number(below: 3) == 0 { bench.kill() }
            if round % 4 == 2 { #expect(bench.connect() == .complete) }
        }
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.greatestError(times) <= 1)
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>, [true, false])
    func `numbers that wrap are followed, also if the ring has records from before`(
        seed: UInt64,
        isNewestFirst: Bool
    ) {
        var rule = RecordBench(seed: seed).rule
        rule.wrapBits = 8
        var bench = RecordBench(seed: seed, rule: rule)
        bench.device.numberBits = 8
        bench.procedure = .accessControlPoint(width: 1)
        (bench.device.capacity, bench.device.isNewestFirst) = (100, isNewestFirst)
        for _ in 0..<20 {
            bench.make(bench.number(below: 40))
            bench.connect(cutAfter: bench.number(below: 120))
            if bench.number(below: 3) == 0 { bench.kill() }
            #expect(bench.connect() == .complete)
        }
        #expect(bench.wrong().isEmpty)
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `a device that was reset is downloaded again`(seed: UInt64) {
        var bench = RecordBench(seed: seed)
        for _ in 0..<6 {
            bench.make(1 + bench.number(below: 60))
            bench.connect(cutAfter: bench.number(below: 60))
            #expect(bench.connect() == .complete)
            bench.device.reset()
            bench.now += 60_000_000
        }
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.contains(.restarted))
    }

    @Test func `a reset device with higher numbers is recognised by the contents of the newest stored record`() {
        var bench = RecordBench()
        bench.make(10)
        bench.connect()
        bench.device.reset()
        bench.make(30)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices == [.restarted])
    }

    @Test func `records that the host lost are requested again`() {
        var bench = RecordBench()
        bench.make(100)
        bench.lossRate = 50
        bench.connect(cutAfter: 80)
        bench.lossRate = 1000
        #expect(bench.connect() == .complete)
        bench.lossRate = 0
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.isEmpty)
    }

    @Test func `overwritten records are a gap`() {
        var bench = RecordBench()
        bench.device.capacity = 20
        bench.make(10)
        bench.connect()
        bench.make(50)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong(except: Set(10..<40)).isEmpty)
        #expect(bench.notices == [.gap(10...39)])
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `records that arrive newest first survive cuts`(seed: UInt64) {
        var bench = RecordBench(seed: seed)
        bench.device.isNewestFirst = true
        for _ in 0..<5 {
            bench.make(bench.number(below: 40))
            bench.connect(cutAfter: bench.number(below: 40))
            if bench.number(below: 2) == 0 { bench.kill() }
        }
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
    }

    @Test func `live records and their stored copies are one`() throws {
        var bench = RecordBench()
        bench.make(20)
        let live = try #require(bench.device.ring.last)
        bench.receive(live)
        #expect(bench.connect(cutAfter: 10) == nil)
        #expect(bench.connect() == .complete)
        bench.make(3)
        for record in bench.device.ring.suffix(3) { bench.receive(record) }
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
    }

    @Test func `a clock that cannot be read makes the times uncertain`() {
        var bench = RecordBench()
        bench.hasClock = false
        bench.make(5)
        bench.connect()
        #expect(bench.wrong().isEmpty)
        #expect(bench.stored.allSatisfy { $0.doubt == "the device's clock cannot be read" })
        #expect(bench.greatestError(times(bench)) <= 1)
    }

    @Test func `a clock that was set a little makes the times between uncertain`() {
        var bench = RecordBench()
        bench.make(5)
        bench.connect()
        bench.device.clockError = 3_600_000_000
        bench.make(300)
        bench.connect()
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.contains(.clockSet))
        #expect(bench.stored.contains { $0.doubt == "the device's clock was set" })
    }

    @Test(arguments: [true, false])
    func `a live record has the time of its receipt after the clock was set back on the link`(isDense: Bool) {
        var rule = RecordBench().rule
        rule.isDense = isDense
        var bench = RecordBench(rule: rule)
        bench.make(5)
        #expect(bench.connect() == .complete)
        bench.device.clockError = -3_600_000_000
        bench.makeLive(3)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.greatestError(bench.times) <= 1)
        #expect(bench.stored.count { $0.doubt == "the record before it is later" } == 3)
    }

    @Test func `extreme numbers and times keep the saved state small`() {
        var tracker = RecordTracker(RecordBench().rule)
        tracker.begin(.all, at: Timestamp(microseconds: 1_750_000_000_000_000))
        let numbers: [Int64] = [0, .max, .min, -1, 1 << 56, 7, 1 << 40, 3]
        for number in numbers + (0..<1000).map({ $0 * 7919 % 104_729 }) {
            let record = ReceivedRecord(number: number, reading: number, digest: number)
            _ = tracker.receive(record, at: Timestamp(microseconds: 1_750_000_000_000_000))
        }
        tracker.complete()
        #expect(tracker.state.utf8.count < 8192)
        #expect(tracker.received.runs.count <= 64)
    }

    /// States with a sequence of numbers whose step is out of bounds, or does not lead to the last number.
    private static let endless = "3;0;;;;;;;5:9:\(Int64.max);"
    private static let uneven = "3;0;;;;;;;5:9:3;"

    @Test func `the state is restored as it was, and an unreadable one starts from the beginning`() {
        var bench = RecordBench()
        bench.make(30)
        var tracker = RecordTracker(bench.rule)
        tracker.compare(device: 5_000_000, gateway: Timestamp(microseconds: bench.now))
        tracker.begin(.all, at: Timestamp(microseconds: 1_750_000_000_000_000))
        for record in bench.device.ring {
            _ = tracker.receive(
                ReceivedRecord(number: record.number, reading: record.reading),
                at: Timestamp(microseconds: bench.now)
            )
        }
        #expect(RecordTracker(bench.rule, restoring: tracker.state).state == tracker.state)
        let unreadable = ["", "2;0;;;;;;;", "3;x;;;;;;;;", "3;0;9;;;;;;;", "3;0;1:2:3:4;;;;;;5:4:1;"]
        for text in unreadable + [Self.endless, Self.uneven] {
            #expect(RecordTracker(bench.rule, restoring: text).received.runs.isEmpty)
        }
    }

    @Test(arguments: [
        (ReceivedRecord(digest: 1), "the record has no time"),
        (ReceivedRecord(number: -1, reading: 5, digest: 1), "the record has no number"),
    ])
    func `a record without a time or a number has the time of its receipt`(record: ReceivedRecord, doubt: String) {
        var tracker = RecordTracker(RecordBench().rule)
        let now = Timestamp(microseconds: 1_000_000)
        #expect(tracker.receive(record, at: now) == .store(now, doubt: doubt))
    }

    @Test func `a companion without a record number is stored`() {
        var rule = RecordBench().rule
        rule.companion = "main"
        var tracker = RecordTracker(rule)
        for number in [Int64.min, -1, 1 << 57, .max] {
            let isNew = tracker.receive(companion: number, generation: 0)
            #expect(isNew)
        }
        #expect(tracker.received.runs.isEmpty)
    }

    @Test(arguments: [Int64.max, .min, -9_000_000_000_000_000_000, -1, 1_750_000_000_000_001])
    func `a record of an impossible age has the time of its receipt`(age: Int64) {
        var rule = RecordBench().rule
        (rule.number, rule.time) = (nil, .age(.init(metric: 1, unit: .seconds(1))))
        var tracker = RecordTracker(rule)
        let now = Timestamp(microseconds: 1_750_000_000_000_000)
        tracker.begin(.all, at: now)
        _ = tracker.receive(ReceivedRecord(age: 0, interval: 60_000_000), at: now)
        let record = ReceivedRecord(age: age, interval: 1_000_000_000_000_000_000)
        #expect(tracker.receive(record, at: now) == .store(now, doubt: "the record has no time"))
    }

    @Test(arguments: [Int64.max, .min])
    func `a damaged correction of the gateway's clock moves no time`(correction: Int64) {
        var rule = RecordBench().rule
        (rule.number, rule.time) = (nil, .age(.init(metric: 1, unit: .seconds(1))))
        rule.interval = .init(metric: 2, unit: .seconds(1))
        var before = RecordTracker(rule, boot: "a")
        let (now, minute) = (Timestamp(microseconds: 1_750_000_000_000_000), Int64(60_000_000))
        before.setBase(1_600_000_000_000_000)
        before.begin(.all, at: now)
        _ = before.receive(ReceivedRecord(age: 0, interval: minute), at: now)
        before.complete()
        var tracker = RecordTracker(rule, restoring: before.state, boot: "b", correction: correction)
        #expect(tracker.newest == now)
        tracker.begin(.all, at: now)
        #expect(tracker.receive(ReceivedRecord(age: 0, interval: minute), at: now) == .duplicate)
        let later = Timestamp(microseconds: now.microseconds + minute)
        #expect(tracker.receive(ReceivedRecord(age: 0, interval: minute), at: later) == .store(later, doubt: nil))
    }

    @Test func `a setting of the device's clock still counts after a step of the gateway's clock`() {
        var clock = DeviceClock(earlier: [], [])
        let hour: Int64 = 3_600_000_000
        let first = Int64(1_750_000_000_000_000)
        _ = clock.compare(device: first, gateway: first)
        for hours: Int64 in [1, 24, 25] {
            let now = first + hours * hour
            _ = clock.compare(device: now + 30_000_000, gateway: now)
        }
        clock.update { $0.move(by: 2_000_000) }
        #expect(clock.earlier.count == 1)
    }

    @Test func `an error of the gateway's clock does not count as a setting of the device's clock`() {
        let hour: Int64 = 3_600_000_000
        let (then, ahead) = (Int64(1_750_000_000_000_000), 7 * hour)
        let now = then + 2 * hour
        var before = RecordTracker(RecordBench().rule, boot: "a")
        before.setBase(then - hour)
        before.compare(device: then + ahead, gateway: Timestamp(microseconds: then))
        var tracker = RecordTracker(RecordBench().rule, restoring: before.state, boot: "b")
        // The clock is a day behind until the gateway has the time.
        tracker.setBase(then - 24 * hour)
        tracker.compare(device: now + ahead, gateway: Timestamp(microseconds: now - 24 * hour))
        tracker.setBase(then)
        tracker.begin(.all, at: Timestamp(microseconds: now))
        let record = ReceivedRecord(number: 1, reading: then + hour + ahead)
        let verdict = tracker.receive(record, at: Timestamp(microseconds: now))
        #expect(verdict == .store(Timestamp(microseconds: then + hour), doubt: nil))
    }
}
