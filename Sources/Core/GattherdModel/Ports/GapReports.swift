/// Gaps that are reported one by one while they are few, and joined while they are many.
///
/// A damaged history may have a gap after each entry.
public struct GapReports: Sendable {
    /// The maximum number of reports within ``period``.
    public static let burst = 20
    public static let period = Duration.seconds(60)

    private var startedAt: SuspendingClock.Instant?
    private var count = 0
    private var waiting: JournalGap?

    public init() {}

    /// Adds a gap; returns the gap to be reported now, which contains those that were not reported.
    public mutating func add(_ gap: JournalGap, at now: SuspendingClock.Instant) -> JournalGap? {
        let joined = waiting.map {
            JournalGap(after: min($0.after, gap.after), through: max($0.through, gap.through), reason: gap.reason)
        }
        if startedAt.map({ now >= $0 + Self.period }) ?? true { (startedAt, count) = (now, 0) }
        guard count < Self.burst else {
            waiting = joined ?? gap
            return nil
        }
        count += 1
        waiting = nil
        return joined ?? gap
    }

    /// Returns the gap that was not reported, once it is due.
    ///
    /// Call this repeatedly, because no other gap may follow.
    ///
    /// - Parameters:
    ///   - now: The time now.
    ///   - isLast: True at the end, when the gap is due at once.
    /// - Returns: The gap to be reported now, if any.
    public mutating func due(at now: SuspendingClock.Instant, isLast: Bool = false) -> JournalGap? {
        guard let gap = waiting, isLast || startedAt.map({ now >= $0 + Self.period }) ?? true else { return nil }
        (startedAt, count, waiting) = (now, 1, nil)
        return gap
    }
}

/// Entries that a receiver refuses and that are skipped; they are reported together, at most once a minute.
public struct SkipReports<Subject: Sendable>: Sendable {
    public struct Report: Sendable {
        /// The number of skipped entries since the last report.
        public fileprivate(set) var count: Int64
        /// The newest of them, or the newest preferred one, if any.
        public fileprivate(set) var subject: Subject
    }

    private var waiting: Report?
    private var reportedAt: SuspendingClock.Instant?

    public init() {}

    /// Adds skipped entries.
    ///
    /// - Parameters:
    ///   - count: Their number.
    ///   - subject: The description of one of them.
    ///   - isPreferred: False if another entry describes the report better.
    public mutating func add(_ count: Int, _ subject: Subject, isPreferred: Bool = true) {
        let sum = (waiting?.count ?? 0) + Int64(count)
        if waiting == nil || isPreferred { waiting = Report(count: sum, subject: subject) }
        waiting?.count = sum
    }

    /// Returns the entries to be reported now, if any; if `isLast`, all are due.
    ///
    /// Call this repeatedly, because no other entry may be skipped that would report these.
    public mutating func due(at now: SuspendingClock.Instant, isLast: Bool = false) -> Report? {
        guard let waiting, isLast || reportedAt.map({ now >= $0 + GapReports.period }) ?? true else { return nil }
        (reportedAt, self.waiting) = (now, nil)
        return waiting
    }
}
