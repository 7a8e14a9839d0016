import GattherdMachines
import GattherdModel
import Testing

@Suite struct DeliveryFilterTests {
    /// Returns whether each reading of one stream passes; times are in tenths of a second.
    private func passed(
        _ readings: [(Int64, [String: DeliveryFilter.Value])],
        _ change: (inout DeliveryPolicy) -> Void
    ) -> [Bool] {
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        change(&policy)
        return readings.map { time, metrics in
            let content = DeliveryFilter.Content(time: Timestamp(microseconds: time * 100_000), metrics: metrics)
            return filter.passes(content, of: "d", "s", under: policy)
        }
    }

    private func numbers(_ values: Double...) -> [(Int64, [String: DeliveryFilter.Value])] {
        values.enumerated().map { (Int64($0) * 10, ["t": .number($1)]) }
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
        let readings: [(Int64, [String: DeliveryFilter.Value])] = [
            (0, ["t": .number(1), "h": .number(1)]), (1, ["t": .number(1.2), "h": .number(5)]),
            (2, ["t": .number(1.4), "h": .number(5)]), (3, ["t": .number(1.4), "h": .number(11)]),
        ]
        let passed = passed(readings) { policy in
            policy.isOnChange = true
            policy.deadband = 0.3
            policy.deadbands = ["h": 5]
        }
        #expect(passed == [true, false, true, true])
    }

    @Test func `a missing metric is no change, a new or unknown one is`() {
        let readings: [(Int64, [String: DeliveryFilter.Value])] = [
            (0, ["t": .number(1)]), (1, [:]), (2, ["t": .number(1), "c": .text("true")]), (3, ["t": .number(1)]),
            (4, ["t": .text("null")]), (5, ["t": .text("null"), "c": .text("true")]), (6, ["c": .text("false")]),
        ]
        #expect(passed(readings) { $0.isOnChange = true } == [true, false, true, false, true, false, true])
    }

    @Test func `no reading passes within the shortest interval, not even a change`() {
        let passed = passed((0..<7).map { ($0 * 5, ["t": .number(Double($0))]) }) { $0.minimumInterval = .seconds(1) }
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
        let passed = passed([(1000, ["t": .number(1)]), (10, ["t": .number(1)]), (15, ["t": .number(1)])]) { policy in
            policy.minimumInterval = .seconds(1)
        }
        #expect(passed == [true, true, false])
    }

    @Test func `streams and devices are independent`() {
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        policy.isOnChange = true
        let content = DeliveryFilter.Content(time: Timestamp(microseconds: 0), metrics: ["t": .number(1)])
        let places = [("a", "s"), ("b", "s"), ("a", "x"), ("a", "s")]
        #expect(places.map { filter.passes(content, of: $0, $1, under: policy) } == [true, true, true, false])
    }

    @Test func `all values of a removed device are new, those of other devices are not`() {
        var (filter, policy) = (DeliveryFilter(), DeliveryPolicy())
        policy.isOnChange = true
        let content = DeliveryFilter.Content(time: Timestamp(microseconds: 0), metrics: ["t": .number(1)])
        for device in ["a", "b"] { _ = filter.passes(content, of: device, "s", under: policy) }
        filter.forget("a")
        let passed = ["a", "b"].map { filter.passes(content, of: $0, "s", under: policy) }
        #expect(passed == [true, false])
    }
}
