import Testing

@testable import GattherdDaemon

/// When what has come is committed.
struct CommitPacingTests {
    private let start = SuspendingClock.now
    private let interval = Duration.milliseconds(50)

    @Test func `What comes alone is committed at once`() {
        var pacing = CommitPacing(interval: interval)
        for turn in 0..<10 { #expect(pacing.next(for: 1, at: start + interval * turn) == .commit) }
    }

    @Test func `What comes soon after a commit waits, with one timer for all of it`() {
        var pacing = CommitPacing(interval: interval)
        #expect(pacing.next(for: 1, at: start) == .commit)
        #expect(pacing.next(for: 1, at: start + .milliseconds(10)) == .wakeUp(.milliseconds(40)))
        #expect(pacing.next(for: 2, at: start + .milliseconds(20)) == .wait)
        #expect(pacing.next(for: 2, at: start + interval) == .commit)
        #expect(pacing.next(for: 1, at: start + interval + .milliseconds(1)) == .wakeUp(.milliseconds(49)))
    }

    @Test func `What is enough does not wait`() {
        var pacing = CommitPacing(interval: interval)
        #expect(pacing.next(for: 1, at: start) == .commit)
        #expect(pacing.next(for: CommitPacing.enough - 1, at: start + .milliseconds(1)) != .commit)
        #expect(pacing.next(for: CommitPacing.enough, at: start + .milliseconds(1)) == .commit)
    }

    @Test func `Nothing is not waited for`() {
        var pacing = CommitPacing(interval: interval)
        #expect(pacing.next(for: 0, at: start) == .wait)
        #expect(pacing.next(for: 1, at: start) == .commit)
        #expect(pacing.next(for: 0, at: start + .milliseconds(1)) == .wait)
        #expect(pacing.next(for: 1, at: start + .milliseconds(2)) == .wakeUp(.milliseconds(48)))
    }
}
