/// When what has come is committed.
///
/// A commit costs far more than a value in it. So values wait for others, unless nothing was committed lately or they
/// are enough already.
struct CommitPacing {
    enum Step: Hashable {
        case commit
        /// Ask again after this time.
        case wakeUp(Duration)
        /// Ask again when something comes, or as was said before.
        case wait
    }

    /// So many values are worth a commit of their own: half of what the bus is read for at a time.
    static let enough = 64

    /// The shortest time between two commits of few values.
    private let interval: Duration
    /// When the next commit may be, however few there are.
    private var due: SuspendingClock.Instant?
    private var isWakeUpSet = false

    init(interval: Duration) {
        self.interval = interval
    }

    /// Says what to do about `count` values that have come; a commit is taken as done.
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
