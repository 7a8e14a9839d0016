import GattherdModel

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

/// The outcome of background work, and the losses and doubts that it found.
struct HistoryMaintenance {
    /// The size of the WAL in pages of 4 KiB that only a long read transaction explains: 256 MiB.
    static let largeWAL = 65_536

    /// True if the last background work failed.
    private(set) var hasFailed = false
    /// The doubt about the clock that has been reported.
    private(set) var clockDoubt: ClockDoubt?
    /// True if the loss of the file's name has been reported.
    private var isOutOfReach = false
    /// True if a large WAL has been reported.
    private var isWALReported = false
    /// The number of dropped readings that have been reported.
    private var reportedDrops = 0

    /// Runs background work; reports its first failure, and no further one until it succeeds again.
    ///
    /// - Returns: The fault; `nil` if the work succeeded.
    mutating func run(_ reporter: HistoryReporter, _ body: () throws(StoreFault) -> Void) -> StoreFault? {
        do throws(StoreFault) {
            try body()
            hasFailed = false
            return nil
        } catch {
            if !hasFailed { reporter.maintenanceFailed(error) }
            hasFailed = true
            return error
        }
    }

    /// Reports a change of the doubt about the clock.
    mutating func setClockDoubt(_ doubt: ClockDoubt?, _ reporter: HistoryReporter) {
        let before = clockDoubt
        clockDoubt = doubt
        reporter.clock(doubt, before: before)
    }

    /// Reports once that the open file has lost its name and its folder.
    mutating func setOutOfReach(_ isOut: Bool, _ path: String, _ reporter: HistoryReporter) {
        if isOut, !isOutOfReach { reporter.outOfReach(path) }
        isOutOfReach = isOut
    }

    /// Reports once that another program keeps the WAL from being copied and used again.
    mutating func setWALPages(_ pages: Int, _ reporter: HistoryReporter) {
        let isLarge = pages >= Self.largeWAL
        if isLarge, !isWALReported { reporter.walIsLarge(bytes: Int64(pages) * 4096) }
        isWALReported = isLarge || isWALReported && pages >= Self.largeWAL / 2
    }

    /// Returns the number of dropped readings that have not been reported; they count as reported then.
    mutating func reportDrops(_ dropped: Int) -> Int {
        defer { reportedDrops = dropped }
        return dropped - reportedDrops
    }
}
