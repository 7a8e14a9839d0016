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
        #expect(pacing.read(1, isAll: true, at: start + .milliseconds(8)) == ReadPacing.pause)
        return (pacing, start + .milliseconds(8))
    }

    @Test func `messages that come fast are read together, until they are few`() {
        var (pacing, now) = busy()
        for count in [16, 200, 2] {
            now += ReadPacing.pause
            #expect(pacing.read(count, isAll: true, at: now) == ReadPacing.pause)
        }
        #expect(pacing.read(1, isAll: true, at: now + ReadPacing.pause) == nil)
        #expect(pacing.read(1, isAll: true, at: now + ReadPacing.pause + .milliseconds(1)) == nil)
    }

    @Test func `what is more than a turn can handle is not waited for`() {
        var (pacing, now) = busy()
        #expect(pacing.read(256, isAll: false, at: now + .milliseconds(5)) == nil)
        #expect(pacing.read(256, isAll: false, at: now + .milliseconds(6)) == nil)
        #expect(pacing.read(20, isAll: true, at: now + .milliseconds(7)) == ReadPacing.pause)
    }

    @Test func `a turn without messages changes nothing`() {
        var (pacing, now) = busy()
        #expect(pacing.read(0, isAll: true, at: now + .milliseconds(1)) == nil)
        #expect(pacing.read(3, isAll: true, at: now + .milliseconds(5)) == ReadPacing.pause)
    }
}
