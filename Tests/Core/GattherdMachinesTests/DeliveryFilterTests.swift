import GattherdMachines
import GattherdModel
import Testing

@Suite struct DeliveryFilterTests {
    /// Returns whether each reading of one stream passes; times are in tenths of a second.
    private func passed(
        _ readings: [(Int64, [String: SampleValue])],
        _ change: (inout DeliveryPolicy) -> Void
    ) -> [Bool] {
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        change(&policy)
        return readings.map { time, metrics in
            let reading = JournalReading.test(at: Timestamp(microseconds: time * 100_000), metrics.map { ($0, $1) })
            return filter.passes(reading, under: policy)
        }
    }

    private func numbers(_ values: Double...) -> [(Int64, [String: SampleValue])] {
        values.enumerated().map { (Int64($0) * 10, ["t": .real($1)]) }
    }

    @Test func `every reading passes without a policy`() {
        #expect(passed(numbers(1, 1, 1)) { _ in } == [true, true, true])
        #expect(DeliveryPolicy().isEverything)
    }

    @Test func `an unchanged reading is filtered if only changes are published`() {
        #expect(passed(numbers(1, 1, 2, 2, 1)) { $0.isOnChange = true } == [true, false, true, false, true])
    }

    @Test func `an unchanged reading passes if subscribers did not get the one before`() {
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        policy.isOnChange = true
        func reading(_ second: Int64, stream: String = "s") -> JournalReading {
            .test(at: Timestamp(microseconds: second * 1_000_000), stream: stream, [("t", .real(21))])
        }
        func passes(_ reading: JournalReading) -> Bool { filter.passes(reading, under: policy) }
        #expect(passes(reading(0)) && passes(reading(0, stream: "other")) && !passes(reading(1)))
        filter.notPublished(reading(0))
        #expect(passes(reading(2)) && !passes(reading(3)) && !passes(reading(3, stream: "other")))
        filter.forgetValues()
        #expect(passes(reading(4)) && passes(reading(4, stream: "other")))
        #expect(!passes(reading(5)) && !passes(reading(5, stream: "other")))
    }

    @Test func `a lost reading does not shorten the interval before the next one`() {
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        (policy.isOnChange, policy.minimumInterval) = (true, .seconds(10))
        func reading(_ second: Int64) -> JournalReading {
            .test(at: Timestamp(microseconds: second * 1_000_000), [("t", .real(21))])
        }
        func passes(_ reading: JournalReading) -> Bool { filter.passes(reading, under: policy) }
        #expect(passes(reading(0)))
        filter.forgetValues()
        #expect(!passes(reading(5)) && passes(reading(10)))
    }

    @Test func `a deadband counts from the last published value, so that slow drift is seen`() {
        let passed = passed(numbers(0, 0.4, 0.8, 1.2, 0.9)) { policy in
            policy.isOnChange = true
            policy.deadband = 0.5
        }
        #expect(passed == [true, false, true, false, false])
    }

    @Test func `neighbouring integers differ, however large they are`() {
        let readings: [(Int64, [String: SampleValue])] = [
            (0, ["t": .integer(1 << 53)]), (1, ["t": .integer((1 << 53) + 1)]), (2, ["t": .integer((1 << 53) + 1)]),
            (3, ["t": .integer(.max)]), (4, ["t": .integer(.max - 1)]), (5, ["t": .integer(.min)]),
            (6, ["t": .integer(.max)]),
        ]
        #expect(passed(readings) { $0.isOnChange = true } == [true, true, false, true, true, true, true])
        let wide = passed(readings) { ($0.isOnChange, $0.deadband) = (true, 1) }
        #expect(wide == [true, false, false, true, false, true, true])
    }

    @Test func `a metric may have its own deadband, and one exceeded deadband is enough`() {
        let readings: [(Int64, [String: SampleValue])] = [
            (0, ["t": .real(1), "h": .real(1)]), (1, ["t": .real(1.2), "h": .real(5)]),
            (2, ["t": .real(1.4), "h": .real(5)]), (3, ["t": .real(1.4), "h": .real(11)]),
        ]
        let passed = passed(readings) { policy in
            policy.isOnChange = true
            policy.deadband = 0.3
            policy.deadbands = ["h": 5]
        }
        #expect(passed == [true, false, true, true])
    }

    @Test func `a different signal strength alone is not a change, unless it has a deadband`() {
        let readings: [(Int64, [String: SampleValue])] = [
            (0, ["t": .real(1), "rssi": .integer(-60)]), (1, ["t": .real(1), "rssi": .integer(-90)]),
            (2, ["t": .real(2), "rssi": .integer(-60)]),
        ]
        #expect(passed(readings) { $0.isOnChange = true } == [true, false, true])
        let strict = passed(readings) { ($0.isOnChange, $0.deadbands) = (true, ["rssi": 5]) }
        #expect(strict == [true, true, true])
    }

    @Test func `a missing metric is no change; a new metric or an unknown value is one`() {
        let readings: [(Int64, [String: SampleValue])] = [
            (0, ["t": .real(1)]), (1, [:]), (2, ["t": .real(1), "c": .boolean(true)]), (3, ["t": .real(1)]),
            (4, ["t": .null]), (5, ["t": .null, "c": .boolean(true)]), (6, ["c": .boolean(false)]),
        ]
        #expect(passed(readings) { $0.isOnChange = true } == [true, false, true, false, true, false, true])
    }

    @Test func `no reading passes within the shortest interval, not even a change`() {
        let passed = passed((0..<7).map { ($0 * 5, ["t": .real(Double($0))]) }) { $0.minimumInterval = .seconds(1) }
        #expect(passed == [true, false, true, false, true, false, true])
    }

    @Test func `an unchanged reading passes after a heartbeat, counted from the last published one`() {
        let passed = passed(numbers(1, 1, 1, 2, 2, 2, 2)) { policy in
            policy.isOnChange = true
            policy.heartbeat = .seconds(2)
        }
        #expect(passed == [true, false, true, true, false, true, false])
    }

    @Test func `a clock that is set back delays nothing`() {
        let passed = passed([(1000, ["t": .real(1)]), (10, ["t": .real(1)]), (15, ["t": .real(1)])]) { policy in
            policy.minimumInterval = .seconds(1)
        }
        #expect(passed == [true, true, false])
    }

    @Test func `streams and devices are independent`() {
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        policy.isOnChange = true
        let places = [("a", "s"), ("b", "s"), ("a", "x"), ("a", "s")]
        let passed = places.map { device, stream in
            filter.passes(.test(device: device, stream: stream, [("t", .real(1))]), under: policy)
        }
        #expect(passed == [true, true, true, false])
    }

    @Test func `all values of a removed device are new, those of other devices are not`() {
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        policy.isOnChange = true
        for device in ["a", "b"] { _ = filter.passes(.test(device: device, [("t", .real(1))]), under: policy) }
        filter.forget("a")
        let passed = ["a", "b"].map { filter.passes(.test(device: $0, [("t", .real(1))]), under: policy) }
        #expect(passed == [true, false])
    }

    @Test func `an integer and a real number of one metric are compared, lists as a whole`() {
        let numbers = passed([(0, ["t": .integer(1)]), (10, ["t": .real(1)]), (20, ["t": .integer(2)])]) {
            $0.isOnChange = true
        }
        #expect(numbers == [true, false, true])
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        policy.isOnChange = true
        policy.deadband = 10
        let metric = MetricDescriptor(name: "rr", isRepeated: true)
        let stream = StreamDefinition(device: "d", profile: "p", stream: "s", metrics: [metric])
        let lists = [[1.0], [2], [2, 3], [2, 3], [2, 4]].map { values in
            let samples = values.map { Sample(metric: 0, value: .real($0)) }
            let time = Timestamp(microseconds: 0)
            return JournalReading(seq: 1, stream: stream, time: time, source: .notify, samples: samples[...])
        }
        #expect(lists.map { filter.passes($0, under: policy) } == [true, false, true, false, true])
    }
}

extension DeliveryFilter {
    /// Returns true if the reading is published at once.
    fileprivate mutating func passes(_ reading: JournalReading, under policy: DeliveryPolicy) -> Bool {
        var selection = DeliverySelection()
        select(reading, under: policy, into: &selection, wall: reading.time, at: .zero)
        return selection.skipped.isEmpty && selection.delayed.isEmpty
    }
}

/// The readings that are delayed to the end of the shortest interval.
@Suite struct DeliveryFilterDelayTests {
    private var filter = DeliveryFilter()
    private var policy = DeliveryPolicy()

    init() {
        policy.minimumInterval = .seconds(1)
    }

    /// Selects readings of one stream; the number of a reading is its time in tenths of a second, after the first.
    private mutating func select(
        _ readings: [(Int64, [(String, SampleValue)])],
        at now: Duration = .zero
    )
        -> DeliverySelection
    {
        var selection = DeliverySelection()
        for (time, values) in readings {
            let reading = JournalReading.test(seq: time, at: Timestamp(microseconds: time * 100_000), values)
            filter.select(reading, under: policy, into: &selection, wall: reading.time, at: now)
        }
        return selection
    }

    private func number(_ time: Int64, _ value: Int64) -> (Int64, [(String, SampleValue)]) {
        (time, [("t", .integer(value))])
    }

    @Test mutating func `of suppressed readings the last is delayed to the end of the interval`() {
        let selection = select([number(10, 1), number(13, 2), number(16, 3)])
        #expect(selection.skipped == [13] && selection.delayed == [16])
        #expect(filter.nextRelease == .milliseconds(400))
        #expect(filter.release(at: .milliseconds(399)) == [])
        #expect(filter.release(at: .milliseconds(400)) == [16])
        #expect(filter.nextRelease == nil)
    }

    @Test mutating func `a newer reading that is published replaces a delayed one`() {
        let first = select([number(10, 1), number(13, 2)])
        #expect(first.delayed == [13])
        let second = select([number(21, 3)])
        #expect(second.dropped == [13] && second.delayed.isEmpty && second.skipped.isEmpty)
        #expect(filter.nextRelease == nil)
    }

    @Test mutating func `the next interval begins when the delayed reading is published`() {
        _ = select([number(10, 1), number(13, 2)])
        #expect(filter.release(at: .seconds(1)) == [13])
        let next = select([number(22, 3)])
        #expect(next.delayed == [22], "published at 2.0 s, so that 3.0 s is the next time")
        #expect(filter.nextRelease == .milliseconds(800))
    }

    @Test mutating func `a late reading with a time before the end of the interval waits for the next interval`() {
        _ = select([number(10, 1), number(13, 2)])
        #expect(filter.release(at: .seconds(1)) == [13])
        let late = select([number(19, 3)])
        #expect(late.delayed == [19])
        #expect(filter.nextRelease == .seconds(1), "never longer than an interval")
    }

    @Test mutating func `on change, a value that returned to the published one is not published`() {
        policy.isOnChange = true
        let selection = select([number(10, 1), number(13, 2), number(16, 1)])
        #expect(selection.skipped == [13, 16] && selection.delayed.isEmpty)
        #expect(filter.nextRelease == nil)
    }

    @Test mutating func `on change, a reading without the changed metric does not end the delay`() {
        policy.isOnChange = true
        _ = select([(10, [("t", .integer(1)), ("h", .integer(5))])])
        let selection = select([(13, [("t", .integer(2))]), (16, [("h", .integer(5))])])
        #expect(selection.skipped == [16] && selection.delayed == [13])
        #expect(filter.releaseAll() == [13])
    }

    @Test mutating func `within the deadband nothing is delayed`() {
        policy.isOnChange = true
        policy.deadband = 2
        let selection = select([number(10, 1), number(13, 3), number(16, 4)])
        #expect(selection.skipped == [13] && selection.delayed == [16])
    }

    @Test mutating func `a wrong clock delays no reading longer than the interval`() {
        var selection = DeliverySelection()
        for time in [10, 13] as [Int64] {
            let reading = JournalReading.test(seq: time, at: Timestamp(microseconds: time * 100_000))
            filter.select(
                reading,
                under: policy,
                into: &selection,
                wall: Timestamp(microseconds: -9_000_000),
                at: .zero
            )
        }
        #expect(filter.nextRelease == .seconds(1))
    }

    @Test mutating func `a delayed reading of a removed device is dropped`() {
        _ = select([number(10, 1), number(13, 2)])
        filter.forget("d")
        #expect(filter.releaseAll() == [])
    }
}
