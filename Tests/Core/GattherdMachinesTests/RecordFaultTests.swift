import Foundation
import GattherdModel
import Testing

@testable import GattherdMachines

/// All faults of a download at once, in virtual time.
///
/// `GATTHERD_RECORDS` is the number of records of each seed, for example 100000.
struct RecordFaultTests {
    /// A device whose ring overwrites, whose numbers wrap and whose clock is set, with its links and its gateway.
    private struct Trial {
        var bench: RecordBench

        init(seed: UInt64, numberBits: Int64) {
            var rule = RecordBench(seed: seed).rule
            rule.wrapBits = Int(numberBits)
            bench = RecordBench(seed: seed, rule: rule)
            bench.device.numberBits = numberBits
            // A filter that is narrower than the numbers is left out where they do not fit.
            let width = seed % 5 == 0 ? 1 : Int(numberBits + 7) / 8
            bench.procedure = .accessControlPoint(width: width)
            bench.device.hasRanges = seed % 3 != 0
            // Numbers that wrap need a ring of less than half of them.
            bench.device.capacity = 3 << (numberBits - 3)
        }

        /// Makes records, and cuts, kills and sets clocks while they are downloaded, until `count` were made.
        ///
        /// The clock is set at most once between two comparisons: of another setting nobody knows the time. A download
        /// is complete before the numbers have gone round once: records of the same number cannot be told apart.
        mutating func run(_ count: Int) {
            let most = bench.device.capacity / 2
            var isCompared = false
            var complete = 0
            while bench.device.made < count {
                if bench.device.made + 2 * most > complete + 1 << bench.device.numberBits {
                    connectWithoutFaults()
                    (complete, isCompared) = (bench.device.made, true)
                }
                if isCompared, bench.number(below: 6) == 0 {
                    bench.device.clockError = Int64(bench.number(below: 2000) - 1500) * 1_000_000_000_000
                    isCompared = false
                }
                bench.make(bench.number(below: most), every: Int64(2 + bench.number(below: 300)))
                if bench.number(below: 6) == 0 { bench.stepClock() }
                bench.stepRate = bench.number(below: 4) == 0 ? 50 : 0
                for _ in 0..<bench.number(below: 4) {
                    bench.lossRate = bench.number(below: 4) == 0 ? 500 : 0
                    bench.liveRate = bench.lossRate == 0 && bench.number(below: 4) == 0 ? 20 : 0
                    bench.device.refusals = bench.number(below: 6) == 0 ? bench.number(below: 4) : 0
                    bench.connect(cutAfter: bench.number(below: bench.device.capacity))
                    if bench.number(below: 3) == 0 { bench.makeLive(bench.number(below: 4)) }
                    if bench.number(below: 2) == 0 {
                        bench.kill()
                    } else {
                        bench.commit()
                        isCompared = true
                    }
                }
            }
            connectWithoutFaults()
        }

        private mutating func connectWithoutFaults() {
            bench.stepRate = 0
            (bench.lossRate, bench.liveRate, bench.device.refusals) = (0, 0, 0)
            bench.connect()
        }

        /// The greatest error of a time that is reported as certain, in seconds.
        var greatestError: Double {
            let certain = bench.stored.filter { $0.doubt == nil }
            return certain.compactMap { stored in
                bench.times[stored.identity].map { abs(Double(stored.time - $0)) / 1e6 }
            }.max() ?? 0
        }
    }

    private static var count: Int {
        ProcessInfo.processInfo.environment["GATTHERD_RECORDS"].flatMap { Int($0) } ?? 2000
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `cuts, kills, lost values, wraps and clock settings lose no record and store none twice`(
        seed: UInt64
    ) {
        var trial = Trial(seed: seed, numberBits: seed.isMultiple(of: 4) ? 12 : 8)
        trial.run(Self.count)
        let bench = trial.bench
        #expect(bench.wrong(except: bench.overwritten.union(bench.excused)).isEmpty, "seed \(seed)")
        #expect(bench.repeated.isEmpty, "seed \(seed)")
        #expect(trial.greatestError <= 1, "seed \(seed)")
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>, [true, false])
    func `losses that the host knows of cost no record, however it is identified`(seed: UInt64, isNumbered: Bool) {
        var rule = RecordBench().rule
        if !isNumbered { rule.number = nil }
        var bench = RecordBench(seed: seed, rule: rule)
        bench.procedure = .accessControlPoint(width: isNumbered ? 4 : 0)
        (bench.lossRate, bench.reportsLosses) = (10, true)
        for _ in 0..<3 {
            bench.make(60)
            bench.connect()
        }
        bench.lossRate = 0
        #expect(bench.connect() == .complete)
        #expect(bench.wrong().isEmpty)
        #expect(bench.notices.isEmpty)
    }

    /// A device with numbers of a byte, and a ring of 96 records.
    private static func wrapping(seed: UInt64 = 1) -> RecordBench {
        var rule = RecordBench().rule
        rule.wrapBits = 8
        var bench = RecordBench(seed: seed, rule: rule)
        (bench.device.numberBits, bench.device.capacity) = (8, 96)
        bench.procedure = .accessControlPoint(width: 1)
        return bench
    }

    @Test(arguments: [20, 46, 60, Int.max], [true, false])
    func `numbers that wrap within the first download are stored once if the newest records come first`(
        cut: Int,
        isKilled: Bool
    ) {
        var bench = Self.wrapping()
        bench.device.isNewestFirst = true
        bench.make(300)
        bench.connect(cutAfter: cut)
        if isKilled { bench.kill() }
        for _ in 0..<2 {
            bench.make(3)
            #expect(bench.connect() == .complete)
        }
        #expect(bench.wrong(except: bench.overwritten).isEmpty)
        #expect(bench.greatestError(bench.times) <= 1)
        #expect(bench.notices.isEmpty)
    }

    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `cuts and kills of a first download that brings the newest records first store none twice`(seed: UInt64) {
        var bench = Self.wrapping(seed: seed)
        bench.device.isNewestFirst = true
        bench.make(250 + bench.number(below: 100))
        for _ in 0..<4 {
            bench.connect(cutAfter: bench.number(below: 110))
            if bench.number(below: 2) == 0 { bench.kill() }
            bench.make(bench.number(below: 8))
        }
        for _ in 0..<2 {
            #expect(bench.connect() == .complete)
            bench.make(5)
        }
        #expect(bench.connect() == .complete)
        #expect(bench.wrong(except: bench.overwritten).isEmpty)
        #expect(bench.greatestError(bench.times) <= 1)
    }

    @Test(arguments: [20, 256], [5, Int.max])
    func `a device that finds none of its records by their number is asked for all`(count: Int, cut: Int) {
        var bench = Self.wrapping()
        bench.device.hidesNumbers = true
        bench.make(count)
        #expect(bench.connect() == .complete)
        bench.make(10)
        bench.connect(cutAfter: cut)
        #expect(bench.connect() == .complete)
        #expect(bench.wrong(except: bench.overwritten).isEmpty)
        #expect(bench.notices.isEmpty)
    }

    @Test func `links that always end early get past the point where the numbers wrap`() {
        var rule = RecordBench().rule
        rule.wrapBits = 8
        var bench = RecordBench(rule: rule)
        (bench.device.numberBits, bench.device.capacity) = (8, 100)
        bench.procedure = .accessControlPoint(width: 1)
        bench.make(300)
        var links = 0
        while bench.connect(cutAfter: 20) == nil, links < 100 { links += 1 }
        #expect(links < 20)
        #expect(bench.wrong(except: bench.overwritten).isEmpty)
    }
}
