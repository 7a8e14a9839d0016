/// Decides when received values are committed.
///
/// A commit costs far more than a value in it. Values therefore wait for others, unless the last commit was long ago or
/// enough values wait.
struct CommitPacing {
    enum Step: Hashable {
        case commit
        /// Ask again after this time.
        case wakeUp(Duration)
        /// Ask again when a value arrives or the pending timer fires.
        case wait
    }

    /// The number of values that justifies a commit: half of the values read from the bus at a time.
    static let enough = 64

    /// The shortest time between two commits of few values.
    private let interval: Duration
    /// The earliest time of the next commit of few values.
    private var due: SuspendingClock.Instant?
    private var isWakeUpSet = false

    init(interval: Duration) {
        self.interval = interval
    }

    /// Returns the next step for `count` waiting values; a commit is assumed to be carried out.
    mutating func next(for count: Int, at now: SuspendingClock.Instant) -> Step {
        guard count > 0 else { return .wait }
        if let due, due > now, count < Self.enough {
            defer { isWakeUpSet = true }
            return isWakeUpSet ? .wait : .wakeUp(due - now)
        }
        due = now + interval
        isWakeUpSet = false
        return .commit
    }
}
