/// A scheduled timer, until it fires.
public struct LoopTimer: Hashable, Sendable {
    let id: UInt64
}

extension EventLoop {
    /// Calls `action` once on the loop after `delay`.
    ///
    /// Time in which the system is suspended does not count.
    ///
    /// On the loop's thread only.
    @discardableResult
    public func schedule(after delay: Duration, _ action: @escaping () -> Void) -> LoopTimer {
        checkIsolated()
        return LoopTimer(id: timers.insert(SuspendingClock.now.advanced(by: delay), action))
    }

    /// Cancels a timer, if it has not fired.
    ///
    /// On the loop's thread only.
    public func cancel(_ timer: LoopTimer) {
        checkIsolated()
        timers.remove(timer.id)
    }

    /// Runs the actions that are due.
    ///
    /// Timers that they schedule wait for the next turn.
    func fireTimers() {
        guard timers.count > 0 else { return }
        let now = SuspendingClock.now
        let limit = timers.nextID
        while let action = timers.removeDue(at: now, before: limit) { action() }
    }

    /// Returns the time until the next timer, rounded up so that no timer fires early; -1 without a timer.
    func nanosecondsUntilTimer() -> Int64 {
        guard let deadline = timers.nextDeadline() else { return -1 }
        let (seconds, attoseconds) = (deadline - SuspendingClock.now).components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        // A later timer is found at the next turn; the limit keeps the product below from overflowing.
        guard seconds < 2_000_000 else { return 2_000_000_000_000_000 }
        return seconds * 1_000_000_000 + (attoseconds + 999_999_999) / 1_000_000_000
    }
}
