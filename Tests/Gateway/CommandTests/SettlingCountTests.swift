import Testing

@testable import gattherd

@Suite struct SettlingCountTests {
    @Test func `a count is settled once it is above zero and has not changed for the time`() {
        let start = ContinuousClock.now
        var count = SettlingCount(time: .seconds(1))
        let steps: [(count: Int, seconds: Double, isSettled: Bool)] = [
            (0, 0, false), (0, 5, false),
            (2, 5.5, false), (2, 6.25, false),
            (3, 6.4, false), (3, 7.3, false), (3, 7.4, true), (3, 9, true),
        ]
        for step in steps {
            #expect(count.isSettled(step.count, at: start + .seconds(step.seconds)) == step.isSettled, "\(step)")
        }
    }
}
