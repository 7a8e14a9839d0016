import Testing

@testable import GattherdDBus

/// When a busy connection is read next.
struct ReadPacingTests {
    private let start = SuspendingClock.now

    @Test func `messages that come now and then are read at once`() {
        var pacing = ReadPacing()
        for turn in 0..<100 {
            #expect(pacing.read(1, isAll: true, at: start + .milliseconds(25) * turn) == nil)
        }
    }

    /// One that has just been read for the eighth time, a millisecond after the seventh, and a pause begins.
    private func busy() -> (pacing: ReadPacing, now: SuspendingClock.Instant) {
        var pacing = ReadPacing()
        for turn in 0..<8 { #expect(pacing.read(1, isAll: true, at: start + .milliseconds(turn)) == nil) }
        #expect(pacing.read(1, isAll: true, at: start + .milliseconds(8)) == ReadPacing.longest)
        return (pacing, start + .milliseconds(8))
    }

    @Test func `messages that come fast are read together, until they are few`() {
        var (pacing, now) = busy()
        for count in [16, 100, 2] {
            now += ReadPacing.longest
            #expect(pacing.read(count, isAll: true, at: now) == ReadPacing.longest)
        }
        #expect(pacing.read(1, isAll: true, at: now + ReadPacing.longest) == nil)
        #expect(pacing.read(1, isAll: true, at: now + ReadPacing.longest + .milliseconds(1)) == nil)
    }

    /// In microseconds.
    @Test(arguments: [(500, 40_000), (3000, 40_000), (12_500, 10_000), (50_000, 2500), (100_000, 2000)])
    func `a pause lasts as long as it takes for some to come, whatever the rate`(rate: Int, pause: Int) {
        var (pacing, now) = busy()
        var next = ReadPacing.longest
        for _ in 0..<20 {
            now += next
            let count = Int((next * rate / .seconds(1)).rounded())
            next = pacing.read(count, isAll: true, at: now) ?? .zero
        }
        #expect((0.95...1.05).contains(next / .microseconds(pause)))
    }

    @Test func `as many as a socket holds make the next pause shorter, though not all were there`() {
        var (pacing, now) = busy()
        now += ReadPacing.longest
        #expect(pacing.read(250, isAll: true, at: now) == ReadPacing.longest / 2)
    }

    @Test func `what is more than a turn can handle is not waited for`() {
        var (pacing, now) = busy()
        #expect(pacing.read(256, isAll: false, at: now + .milliseconds(5)) == nil)
        #expect(pacing.read(256, isAll: false, at: now + .milliseconds(6)) == nil)
        let shorter = ReadPacing.longest * ReadPacing.wanted / 256
        #expect(pacing.read(20, isAll: true, at: now + .milliseconds(7)) == shorter)
    }

    @Test func `a turn without messages changes nothing`() {
        var (pacing, now) = busy()
        #expect(pacing.read(0, isAll: true, at: now + .milliseconds(1)) == nil)
        #expect(pacing.read(3, isAll: true, at: now + .milliseconds(5)) == ReadPacing.longest)
    }
}
