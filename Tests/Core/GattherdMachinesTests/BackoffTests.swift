import GattherdMachines
import Testing

@Suite struct BackoffTests {
    private let backoff = Backoff(minimum: .milliseconds(500), maximum: .seconds(10))

    @Test(
        arguments: [(0, 500), (1, 1000), (2, 2000), (3, 4000), (4, 8000), (5, 10_000), (1_000_000, 10_000)]
    )
    func `the ceiling doubles with each failure up to the maximum`(failures: Int, milliseconds: Int) {
        #expect(backoff.ceiling(after: failures) == .milliseconds(milliseconds))
    }

    @Test(arguments: 1...8)
    func `every delay lies between the minimum and the ceiling`(failures: Int) {
        var random = SplitMix64(seed: 7)
        for _ in 0..<500 {
            let delay = backoff.delay(after: failures, using: &random)
            #expect(delay >= backoff.minimum && delay <= backoff.ceiling(after: failures))
        }
    }

    @Test func `the jitter is full: delays fill the whole range, including the first`() {
        var random = SplitMix64(seed: 1)
        let delays = (0..<500).map { _ in backoff.delay(after: 1, using: &random) }
        #expect(delays.contains { $0 < .milliseconds(600) })
        #expect(delays.contains { $0 > .milliseconds(900) })
    }

    @Test func `equal seeds give equal delays`() {
        var one = SplitMix64(seed: 42)
        var other = SplitMix64(seed: 42)
        let delays = (1...20).map { backoff.delay(after: $0, using: &one) }
        #expect(delays == (1...20).map { backoff.delay(after: $0, using: &other) })
    }

    @Test func `a maximum below the minimum counts as the minimum`() {
        var random = SplitMix64(seed: 1)
        let backoff = Backoff(minimum: .seconds(5), maximum: .seconds(1))
        #expect(backoff.delay(after: 9, using: &random) == .seconds(5))
    }
}
