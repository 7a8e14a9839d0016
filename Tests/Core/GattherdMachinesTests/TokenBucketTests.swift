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
            let count = pace.allowance(for: 1000, at: now)
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
        #expect(pace.allowance(for: 1000, at: .seconds(1000)) == 50)
    }

    @Test func `after a burst, readings are published a fifth of a burst at a time`() {
        var pace = TokenBucket(rate: 2000, burst: 50)
        pace.spend(pace.allowance(for: 1000, at: .zero))
        let pause = pace.pause(for: 1000, at: .zero)
        #expect(pause == .milliseconds(5))
        #expect(pace.allowance(for: 1000, at: pause - .microseconds(1)) == 0)
        #expect(pace.allowance(for: 1000, at: pause) == 10)
    }

    @Test func `fewer readings wait for no more than they need`() {
        var pace = TokenBucket(rate: 2000, burst: 50)
        pace.spend(pace.allowance(for: 1000, at: .zero))
        let pause = pace.pause(for: 3, at: .zero)
        #expect(pause == .microseconds(1500))
        #expect(pace.allowance(for: 3, at: pause) == 3)
    }

    @Test(arguments: [(10.0, 100, 1), (500, 50, 10), (4000, 5, 20), (1_000_000, 1, 100)])
    func `after a burst, a wake-up publishes the readings of 1 to 20 ms`(rate: Double, milliseconds: Int, count: Int) {
        var pace = TokenBucket(rate: rate, burst: 100)
        pace.spend(pace.allowance(for: 1000, at: .zero))
        let pause = pace.pause(for: 1000, at: .zero)
        #expect(pause <= .milliseconds(milliseconds))
        #expect(pace.allowance(for: 1000, at: pause) == count)
    }

    @Test func `the pause counts readings that are published now`() {
        var pace = TokenBucket(rate: 2000, burst: 50)
        let count = pace.allowance(for: 60, at: .zero)
        let pause = pace.pause(for: 60 - count, after: count, at: .zero)
        pace.spend(count)
        #expect(count == 50)
        #expect(pause == pace.pause(for: 10, at: .zero))
        #expect(pause == .milliseconds(5))
    }
}
