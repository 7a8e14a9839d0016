/// A count that grows from zero, until it has been the same for some time.
struct SettlingCount {
    private let time: Duration
    private var count = 0
    private var change: ContinuousClock.Instant?

    init(time: Duration) {
        self.time = time
    }

    /// Returns true if the count is above zero and has not changed for the time.
    mutating func isSettled(_ next: Int, at now: ContinuousClock.Instant) -> Bool {
        if next != count { (count, change) = (next, now) }
        guard count > 0, let change else { return false }
        return now - change >= time
    }
}
