import GattherdModel
import Testing

@testable import GattherdMachines

/// Downloads by all procedures in virtual time, with live records, cuts, wraps and resets.
struct RecordProcedureTests {
    enum Kind: CaseIterable {
        case accessControlPoint, number, time, blocks, agedBlocks
    }

    private static func bench(
        _ kind: Kind,
        seed: UInt64 = 1,
        bits: Int? = nil,
        isDense: Bool = true
    ) throws -> RecordBench {
        var rule = RecordRule(doubt: 9)
        (rule.number, rule.time) = (0, .clock(.init(metric: 1, unit: .seconds(1))))
        if kind == .agedBlocks {
            (rule.number, rule.time) = (nil, .age(.init(metric: 1, unit: .seconds(1))))
            rule.interval = .init(metric: 2, unit: .seconds(1))
        }
        (rule.wrapBits, rule.isDense) = (bits, isDense)
        var bench = RecordBench(seed: seed, rule: rule)
        if let bits { (bench.device.numberBits, bench.device.capacity) = (Int64(bits), 3 << (bits - 3)) }
        bench.device.isNumbered = kind != .agedBlocks
        bench.procedure =
            switch kind {
            case .accessControlPoint: .accessControlPoint(width: 4)
            case .number: .request(try #require(RecordingDevice.numberRequest), end: RecordingDevice.end)
            case .time: .request(try #require(RecordingDevice.timeRequest), end: RecordingDevice.end)
            case .blocks, .agedBlocks: .blocks(try #require(RecordingDevice.blockRequest), first: 0, isRead: true)
            }
        return bench
    }

    private static let seeds = Array(1...16 as ClosedRange<UInt64>)

    @Test(arguments: Kind.allCases, seeds)
    func `live records before, during and after failed downloads hide no stored ones`(kind: Kind, seed: UInt64) throws {
        var bench = try Self.bench(kind, seed: seed, isDense: seed.isMultiple(of: 2) || kind == .agedBlocks)
        for _ in 0..<20 {
            bench.disconnect()
            bench.make(1 + bench.number(below: 30))
            bench.makeLive(bench.number(below: 3))
            bench.liveRate = kind == .agedBlocks ? 0 : bench.number(below: 3) * 10
            bench.device.refusals = bench.number(below: 4)
            bench.connect(cutAfter: bench.number(below: 60))
            bench.makeLive(bench.number(below: 3))
            if bench.number(below: 2) == 0 { bench.kill() } else { bench.connect(cutAfter: bench.number(below: 60)) }
        }
        (bench.liveRate, bench.device.refusals) = (0, 0)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(!bench.notices.contains { if case .gap = $0 { true } else { false } })
    }

    @Test(arguments: [true, false])
    func `live records after a failed download are no answers to it`(isDense: Bool) throws {
        var bench = try Self.bench(.accessControlPoint, isDense: isDense)
        // Without a clock, only the end of the request tells which records are live.
        bench.hasClock = false
        bench.make(51)
        #expect(bench.connect() == .complete)
        bench.disconnect()
        bench.make(24)
        bench.device.refusals = 3
        #expect(bench.connect() == .failed("the device says: not completed"))
        bench.makeLive(4)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
    }

    @Test(arguments: Kind.allCases.filter { $0 != .agedBlocks }, [5, 40])
    func `a device that was reset is downloaded again, with fewer and with more records`(
        kind: Kind,
        count: Int
    ) throws {
        var bench = try Self.bench(kind)
        bench.make(20)
        #expect(bench.connect() == .complete)
        bench.device.reset()
        bench.make(count)
        #expect(bench.connect() == .complete)
        bench.make(3)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices == [.restarted])
    }

    @Test(arguments: [Kind.number, .time, .blocks], seeds)
    func `numbers wrap in requests and blocks`(kind: Kind, seed: UInt64) throws {
        var bench = try Self.bench(kind, seed: seed, bits: 8)
        for _ in 0..<40 {
            bench.make(bench.number(below: 40))
            bench.connect(cutAfter: bench.number(below: 100))
            #expect(bench.connect() == .complete)
        }
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.isEmpty)
    }

    @Test(arguments: 1...3)
    func `records that move to lower indexes during a download by blocks are requested again`(
        requests: Int
    ) throws {
        var bench = try Self.bench(.agedBlocks)
        bench.device.capacity = 20
        bench.make(30)
        bench.requestsBeforeRecord = requests
        #expect(bench.connect() == .complete)
        #expect(bench.wrong(except: bench.overwritten).isEmpty)
        #expect(bench.notices.isEmpty)
    }

    @Test(arguments: [true, false], [true, false])
    func `a record that the host lost after the newest stored one is requested again`(
        isDense: Bool,
        isCut: Bool
    ) throws {
        for seed in 1...80 as ClosedRange<UInt64> {
            var bench = try Self.bench(.accessControlPoint, seed: seed, isDense: isDense)
            bench.make(20)
            #expect(bench.connect() == .complete)
            bench.make(10)
            bench.lossRate = 10
            bench.connect(cutAfter: isCut && isDense ? 9 : .max)
            bench.lossRate = 0
            #expect(bench.connect() == .complete)
            #expect(bench.wrong(except: bench.excused).isEmpty)
        }
    }

    @Test(arguments: Kind.allCases, seeds)
    func `steps of the gateway's clock lose no record, store none twice and keep the times`(
        kind: Kind,
        seed: UInt64
    ) throws {
        var bench = try Self.bench(kind, seed: seed)
        bench.device.isTold = kind == .time
        for round in 0..<20 {
            bench.disconnect()
            bench.make(1 + bench.number(below: 20))
            // After a start with a right clock, no step follows.
            if round == 15 { bench.reboot() }
            bench.stepRate = round < 15 ? bench.number(below: 3) * 15 : 0
            if round < 15, bench.number(below: 2) == 0 { bench.stepClock() }
            bench.connect(cutAfter: bench.number(below: 50))
            if bench.number(below: 3) == 0 { bench.kill() }
        }
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.isEmpty)
        #expect(bench.stored.allSatisfy { $0.doubt == nil })
        #expect(bench.greatestError(bench.times) <= 2)
    }

    @Test(arguments: [true, false], seeds)
    func `live records hide no stored ones if the device's clock cannot be read`(isDense: Bool, seed: UInt64) throws {
        var bench = try Self.bench(.accessControlPoint, seed: seed, isDense: isDense)
        bench.hasClock = false
        for _ in 0..<20 { bench.connectWithFaults(cutBelow: 60) }
        (bench.liveRate, bench.device.refusals) = (0, 0)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
    }

    @Test func `live records before a cut hide no stored ones if the device's clock cannot be read`() {
        var rule = RecordBench().rule
        rule.isDense = false
        var tracker = RecordTracker(rule)
        let (start, second) = (Int64(1_750_000_000_000_000), Int64(1_000_000))
        func receive(_ number: Int64, made time: Int64, after delay: Int64) -> RecordTracker.Outcome {
            tracker.receive(ReceivedRecord(number: number, reading: time), at: Timestamp(microseconds: start + delay))
        }
        func receiveStored(_ number: Int64, after delay: Int64) -> RecordTracker.Outcome {
            receive(number, made: start - (100 - number) * 60 * second, after: delay)
        }
        tracker.begin(.all, at: Timestamp(microseconds: start))
        for number in 0..<20 as Range<Int64> { _ = receiveStored(number, after: number) }
        for live in 1...3 as ClosedRange<Int64> {
            _ = receive(99 + live, made: start + live * second, after: live * second)
        }
        #expect(tracker.resumption == 19)
        tracker.end()
        tracker.begin(.from(19), at: Timestamp(microseconds: start + 9 * second))
        let outcomes = (20..<100 as Range<Int64>).map { receiveStored($0, after: 10 * second) }
        #expect(!outcomes.contains(.duplicate))
    }

    @Test func `a device that was reset, with a clock that starts anew and cannot be read, is downloaded again`() {
        var bench = RecordBench()
        bench.hasClock = false
        bench.make(20)
        #expect(bench.connect() == .complete)
        bench.device.reset()
        bench.device.clockError = -20 * 31_536_000_000_000
        bench.make(5)
        #expect(bench.connect() == .complete)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices == [.restarted])
    }

    @Test(arguments: [-7200, 7200, -20 * 31_536_000] as [Int64], [true, false])
    func `records are requested by the time of the device's clock`(error: Int64, isDense: Bool) throws {
        var bench = try Self.bench(.time, isDense: isDense)
        bench.device.clockError = error * 1_000_000
        for _ in 0..<3 {
            bench.make(20)
            #expect(bench.connect() == .complete)
        }
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.isEmpty)
    }

    @Test(arguments: [true, false])
    func `all records since the device's clock was set back are requested by time`(isReset: Bool) throws {
        var bench = try Self.bench(.time)
        bench.make(20)
        #expect(bench.connect() == .complete)
        bench.disconnect()
        if isReset { bench.device.reset() }
        bench.device.clockError = -20 * 31_536_000_000_000
        bench.make(30)
        // The link is cut between the records.
        #expect(bench.connect(cutAfter: 10) == nil)
        for _ in 0..<2 { #expect(bench.connect() == .complete) }
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices == (isReset ? [.clockSet, .restarted] : [.clockSet]))
    }

    @Test(arguments: Kind.allCases.filter { $0 != .agedBlocks })
    func `records of a clock that is ahead and cannot be read are stored once`(kind: Kind) throws {
        var bench = try Self.bench(kind)
        if kind == .accessControlPoint { bench.procedure = .accessControlPoint(width: 0) }
        (bench.hasClock, bench.device.clockError) = (false, 7_200_000_000)
        for _ in 0..<3 {
            bench.make(20)
            #expect(bench.connect() == .complete)
        }
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.isEmpty)
        #expect(bench.stored.allSatisfy { $0.time <= bench.now })
    }

    @Test(arguments: Kind.allCases.filter { $0 != .agedBlocks })
    func `steps of the gateway's clock move no time of a clock that cannot be read`(kind: Kind) throws {
        var bench = try Self.bench(kind)
        if kind == .accessControlPoint { bench.procedure = .accessControlPoint(width: 0) }
        (bench.hasClock, bench.gatewayError) = (false, 10_000_000_000_000)
        for _ in 0..<3 {
            bench.make(20)
            #expect(bench.connect() == .complete)
            bench.gatewayError = 0
        }
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.isEmpty)
    }

    @Test func `damaged times of a state are not believed`() {
        let state = "3;0;5:0:\(Int64.max):0;;;7:0:\(Int64.min):0;;;;"
        var tracker = RecordTracker(RecordBench().rule, restoring: state)
        #expect(tracker.newest == nil)
        tracker.begin(.all, at: Timestamp(microseconds: 1_750_000_000_000_000))
        for reading in [Int64.min, .min + 1, 0, .max] {
            let record = ReceivedRecord(number: 9, reading: reading, digest: 0)
            _ = tracker.receive(record, at: Timestamp(microseconds: 1_750_000_000_000_000))
        }
    }
}
