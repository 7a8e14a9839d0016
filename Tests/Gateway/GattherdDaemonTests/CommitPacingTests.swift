import Testing

@testable import GattherdDaemon

/// The time of commits.
struct CommitPacingTests {
    private let start = SuspendingClock.now
    private let interval = Duration.milliseconds(50)

    @Test func `a single value is committed at once`() {
        var pacing = CommitPacing(interval: interval)
        for turn in 0..<10 { #expect(pacing.next(for: 1, at: start + interval * turn) == .commit) }
    }

    @Test func `values soon after a commit share one timer`() {
        var pacing = CommitPacing(interval: interval)
        #expect(pacing.next(for: 1, at: start) == .commit)
        #expect(pacing.next(for: 1, at: start + .milliseconds(10)) == .wakeUp(.milliseconds(40)))
        #expect(pacing.next(for: 2, at: start + .milliseconds(20)) == .wait)
        #expect(pacing.next(for: 2, at: start + interval) == .commit)
        #expect(pacing.next(for: 1, at: start + interval + .milliseconds(1)) == .wakeUp(.milliseconds(49)))
    }

    @Test func `a full batch is committed at once`() {
        var pacing = CommitPacing(interval: interval)
        #expect(pacing.next(for: 1, at: start) == .commit)
        #expect(pacing.next(for: CommitPacing.enough - 1, at: start + .milliseconds(1)) != .commit)
        #expect(pacing.next(for: 1, isUrgent: true, at: start + .milliseconds(1)) == .commit)
        #expect(pacing.next(for: CommitPacing.enough, at: start + .milliseconds(1)) == .commit)
    }

    @Test func `no value needs no timer`() {
        var pacing = CommitPacing(interval: interval)
        #expect(pacing.next(for: 0, at: start) == .wait)
        #expect(pacing.next(for: 1, at: start) == .commit)
        #expect(pacing.next(for: 0, at: start + .milliseconds(1)) == .wait)
        #expect(pacing.next(for: 1, at: start + .milliseconds(2)) == .wakeUp(.milliseconds(48)))
    }

    @Test func `values in groups are committed with the last group in time`() {
        var pacing = CommitPacing(interval: interval)
        #expect(pacing.next(for: 5, at: start) == .commit)
        #expect(pacing.next(for: 5, at: start + .milliseconds(20)) == .wakeUp(.milliseconds(30)))
        // The next group would come at 60 ms.
        #expect(pacing.next(for: 10, at: start + .milliseconds(40)) == .commit)
        #expect(pacing.next(for: 5, at: start + .milliseconds(60)) == .wakeUp(.milliseconds(30)))
    }

    @Test func `a timer without new values does not commit before its time`() {
        var pacing = CommitPacing(interval: interval)
        #expect(pacing.next(for: 5, at: start) == .commit)
        #expect(pacing.next(for: 5, at: start + .milliseconds(20)) == .wakeUp(.milliseconds(30)))
        #expect(pacing.next(for: 5, at: start + .milliseconds(40)) == .wait)
        #expect(pacing.next(for: 5, at: start + interval) == .commit)
    }
}
