import GattherdMachines
import Testing

@Suite struct TokenBucketTests {
    /// Returns the number of readings published in `seconds` from an endless backlog, with `commits` new ones per
    /// second.
    private func drained(_ seconds: Int, commits: Int = 0) -> Int {
        var pace = TokenBucket()
        var total = 0
        for millisecond in 0..<(seconds * 1000) {
            let now = Duration.milliseconds(millisecond)
            if millisecond % 100 == 0 { pace.committed(commits / 10, at: now) }
            let count = pace.allowance(at: now)
            #expect(count <= pace.burst)
            pace.spend(count)
            total += count
        }
        return total
    }

    @Test func `a backlog is published at the given rate`() {
        #expect((39_900...40_200).contains(drained(10)))
    }

    @Test(arguments: [3000, 20_000])
    func `twice the commit rate is published, so that a backlog always shrinks`(commits: Int) {
        #expect(drained(10, commits: commits) >= 2 * commits * 9)
    }

    @Test func `a burst after a rest is bounded`() {
        var pace = TokenBucket(rate: 2000, burst: 50)
        #expect(pace.allowance(at: .seconds(1000)) == 50)
    }

    @Test func `the allowance is positive after the pause`() {
        var pace = TokenBucket(rate: 2000, burst: 50)
        pace.spend(pace.allowance(at: .zero))
        #expect(pace.allowance(at: .zero) == 0)
        #expect(pace.allowance(at: pace.pause(at: .zero)) >= 10)
    }
}
