/// A timer that has not fired; meaningless afterwards.
public struct LoopTimer: Hashable, Sendable {
    let id: UInt64
}

extension EventLoop {
    /// Calls `action` once on the loop, not before `delay` has passed; suspended time does not count.
    ///
    /// On the loop's thread only.
    @discardableResult
    public func schedule(after delay: Duration, _ action: @escaping () -> Void) -> LoopTimer {
        checkIsolated()
        return LoopTimer(id: timers.insert(SuspendingClock.now.advanced(by: delay), action))
    }

    /// Takes a timer back; one that has fired is ignored.
    ///
    /// On the loop's thread only.
    public func cancel(_ timer: LoopTimer) {
        checkIsolated()
        timers.remove(timer.id)
    }

    /// Runs the actions that are due; those that they schedule wait for the next turn.
    func fireTimers() {
        guard timers.count > 0 else { return }
        let now = SuspendingClock.now
        let limit = timers.nextID
        while let action = timers.takeDue(at: now, before: limit) { action() }
    }

    /// Rounded up, so that nothing fires early; -1 without a timer.
    func nanosecondsUntilTimer() -> Int64 {
        guard let deadline = timers.nextDeadline() else { return -1 }
        let (seconds, attoseconds) = (deadline - SuspendingClock.now).components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 2_000_000 else { return 2_000_000_000_000_000 }
        return seconds * 1_000_000_000 + (attoseconds + 999_999_999) / 1_000_000_000
    }
}
