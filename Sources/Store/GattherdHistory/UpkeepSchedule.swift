/// The background work of a history that waits for its time, each kind once.
struct UpkeepSchedule {
    enum Work: Int, CaseIterable {
        /// A step of corrections, summaries or retention, between other jobs.
        case step
        /// Saves an acknowledgement, unless another commit does it first.
        case cursor
        /// Truncates the WAL and releases space when writing has stopped.
        case flushing
        /// Reports dropped readings again, if more were dropped.
        case dropReport
        /// Reopens the file after a fault.
        case reopening
    }

    /// The delay before a cursor gets a commit of its own: the next commit of a gateway in use comes earlier.
    private static let cursorDelay = Duration.milliseconds(250)
    /// The pause without commits after which the gateway counts as idle; active devices send more often.
    private static let flushingDelay = Duration.seconds(5)
    /// The interval between reports of dropped readings: one line a minute does not fill a log.
    private static let dropReportInterval = Duration.seconds(60)

    private let reopeningDelay: Duration
    private var commits = 0
    /// The number of commits at which each kind of work was scheduled; `nil` while it is not scheduled.
    private var scheduled: [Int?] = Array(repeating: nil, count: Work.allCases.count)

    /// - Parameter reopeningDelay: The time between two attempts to open the file.
    init(reopeningDelay: Duration) {
        self.reopeningDelay = reopeningDelay
    }

    /// Counts one commit.
    mutating func didCommit() {
        commits += 1
    }

    /// True if the work is scheduled.
    func contains(_ work: Work) -> Bool { scheduled[work.rawValue] != nil }

    /// Schedules the work; returns the time after which to start it, or `nil` if it is scheduled already.
    mutating func add(_ work: Work) -> Duration? {
        guard !contains(work) else { return nil }
        scheduled[work.rawValue] = commits
        return delay(of: work)
    }

    /// Starts the work, which may then be scheduled again; returns true if nothing was committed while it waited.
    mutating func start(_ work: Work) -> Bool {
        defer { scheduled[work.rawValue] = nil }
        return scheduled[work.rawValue] == commits
    }

    private func delay(of work: Work) -> Duration {
        switch work {
        case .step: .zero
        case .cursor: Self.cursorDelay
        case .flushing: Self.flushingDelay
        case .dropReport: Self.dropReportInterval
        case .reopening: reopeningDelay
        }
    }
}
