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

    @Test func `an unchanged reading does not pass on change`() {
        #expect(passed(numbers(1, 1, 2, 2, 1)) { $0.isOnChange = true } == [true, false, true, false, true])
    }

    @Test func `a deadband counts from the last published value, so that slow drift is seen`() {
        let passed = passed(numbers(0, 0.4, 0.8, 1.2, 0.9)) { policy in
            policy.isOnChange = true
            policy.deadband = 0.5
        }
        #expect(passed == [true, false, true, false, false])
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

    @Test func `a missing metric is no change, a new or unknown one is`() {
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
