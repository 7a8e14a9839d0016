/// A task that a gateway does at the centre beside its entries.
///
/// No delivery depends on it, so a failure is only reported.
package enum CentreUpkeep: String, Hashable, Sendable {
    case correction
    case retention

    /// Receives a failure that must be reported.
    package typealias FailureHandler = @Sendable (CentreUpkeep, _ detail: String) -> Void
}

/// The failures that were reported, so that one that lasts is reported once an hour.
struct UpkeepReports: Sendable {
    /// The shortest time between two reports of a task.
    private static let pause = Duration.seconds(60)
    /// The time after which the same text is reported again.
    private static let repetition = Duration.seconds(3600)

    private var last: [CentreUpkeep: (detail: String, time: SuspendingClock.Instant)] = [:]

    /// Returns true if the failure must be reported, which then counts as done.
    mutating func isDue(_ task: CentreUpkeep, _ detail: String, at now: SuspendingClock.Instant) -> Bool {
        if let last = last[task] {
            let pause = last.detail == detail ? Self.repetition : Self.pause
            guard now - last.time >= pause else { return false }
        }
        last[task] = (detail, now)
        return true
    }
}
