import GattherdMachines
import Testing

@Suite("Backoff")
struct BackoffTests {
    private let backoff = Backoff(minimum: .milliseconds(500), maximum: .seconds(10))

    @Test(
        "The ceiling doubles with each failure up to the maximum",
        arguments: [(0, 500), (1, 1000), (2, 2000), (3, 4000), (4, 8000), (5, 10_000), (1_000_000, 10_000)]
    )
    func ceiling(failures: Int, milliseconds: Int) {
        #expect(backoff.ceiling(after: failures) == .milliseconds(milliseconds))
    }

    @Test("Every delay lies between the minimum and the ceiling", arguments: 1...8)
    func bounds(failures: Int) {
        var random = SplitMix64(seed: 7)
        for _ in 0..<500 {
            let delay = backoff.delay(after: failures, using: &random)
            #expect(delay >= backoff.minimum && delay <= backoff.ceiling(after: failures))
        }
    }

    @Test("The jitter is full: delays fill the whole span, the first one included")
    func spread() {
        var random = SplitMix64(seed: 1)
        let delays = (0..<500).map { _ in backoff.delay(after: 1, using: &random) }
        #expect(delays.contains { $0 < .milliseconds(600) })
        #expect(delays.contains { $0 > .milliseconds(900) })
    }

    @Test("The same seed gives the same delays")
    func isRepeatable() {
        var one = SplitMix64(seed: 42)
        var other = SplitMix64(seed: 42)
        let delays = (1...20).map { backoff.delay(after: $0, using: &one) }
        #expect(delays == (1...20).map { backoff.delay(after: $0, using: &other) })
    }

    @Test("A maximum below the minimum counts as the minimum")
    func inverted() {
        var random = SplitMix64(seed: 1)
        let backoff = Backoff(minimum: .seconds(5), maximum: .seconds(1))
        #expect(backoff.delay(after: 9, using: &random) == .seconds(5))
    }
}
