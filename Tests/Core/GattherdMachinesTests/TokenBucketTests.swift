import GattherdMachines
import Testing

@Suite("TokenBucket")
struct TokenBucketTests {
    /// How many readings go out in `seconds` when there are always more, with `commits` a second coming in.
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

    @Test("A backlog goes out at the given rate")
    func base() {
        #expect((39_900...40_200).contains(drained(10)))
    }

    @Test("Twice as many go out as are committed, so that a backlog always shrinks", arguments: [3000, 20_000])
    func busy(commits: Int) {
        #expect(drained(10, commits: commits) >= 2 * commits * 9)
    }

    @Test("A burst after a rest is bounded")
    func burst() {
        var pace = TokenBucket(rate: 2000, burst: 50)
        #expect(pace.allowance(at: .seconds(1000)) == 50)
    }

    @Test("After the pause something may go out")
    func pause() {
        var pace = TokenBucket(rate: 2000, burst: 50)
        pace.spend(pace.allowance(at: .zero))
        #expect(pace.allowance(at: .zero) == 0)
        #expect(pace.allowance(at: pace.pause(at: .zero)) >= 10)
    }
}
