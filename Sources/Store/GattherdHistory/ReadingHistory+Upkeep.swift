import GattherdLog
import GattherdModel
import GattherdSync

/// Background work, done on the same thread between callers' jobs.
extension ReadingHistory {
    /// The longest time for which an acknowledgement waits to be saved with another commit.
    private static let cursorDelay = Duration.milliseconds(250)
    /// The number of readings that the cursor may pass before it is committed at once.
    private static let cursorCount: Int64 = 250
    /// The idle time after which the WAL is truncated.
    private static let idleDelay = Duration.seconds(5)
    /// The minimum time between two reports of dropped readings.
    private static let reportInterval = Duration.seconds(60)

    struct UpkeepState {
        fileprivate var commits = 0
        fileprivate var isStepScheduled = false
        fileprivate var isCursorTimerSet = false
        fileprivate var isIdleTimerSet = false
        fileprivate var isReportTimerSet = false
        fileprivate var isUntidy = false
        /// The number of dropped readings that have been reported.
        fileprivate var reported = 0
        /// The number of readings dropped by files that were opened before.
        var undeliveredBefore = 0
        /// The doubt about the clock that has been reported.
        fileprivate(set) var clockDoubt: ClockDoubt?
    }

    /// Starts upkeep after a commit, when the caller and the subscribers know of the commit.
    func didCommit(_ file: HistoryFile) {
        upkeep.commits += 1
        file.checkpointIfDue()
        report()
        scheduleStep()
        scheduleSettling()
    }

    /// Starts retention passes at intervals.
    func beginPass() {
        guard !isClosed else { return }
        schedule(after: options.limits.passInterval) { $0.beginPass() }
        if let file {
            tidyUp { () throws(StoreFault) in try file.beginPass() }
            reportClock(file.clockDoubt)
        }
        scheduleStep()
    }

    /// Runs upkeep step by step between other jobs until nothing is due.
    private func scheduleStep() {
        guard !upkeep.isStepScheduled, file?.isUpkeepDue == true else { return }
        upkeep.isStepScheduled = true
        loop.execute { [weak self] in
            self?.assumeIsolated { $0.step() }
        }
    }

    private func step() {
        upkeep.isStepScheduled = false
        guard let file else { return }
        let isDone = tidyUp { () throws(StoreFault) in try file.upkeep() }
        report()
        reportDropped()
        reportRestamped(file)
        if isDone { scheduleStep() }
        scheduleSettling()
    }

    /// The number of readings dropped before they were delivered.
    var undelivered: Int { upkeep.undeliveredBefore + (file?.undelivered ?? 0) + unstored.dropped }

    func reportDropped() {
        let count = undelivered - upkeep.reported
        guard count > 0, !upkeep.isReportTimerSet else { return }
        upkeep.reported = undelivered
        upkeep.isReportTimerSet = true
        log(
            .error,
            "readings were given up before anybody had got them: there is no room for more",
            [LogField("readings", count)]
        )
        tell.yield(.backlogDropped(readings: count))
        schedule(after: Self.reportInterval) { history in
            history.upkeep.isReportTimerSet = false
            history.reportDropped()
        }
    }

    /// Reports the start and the end of doubt about the clock.
    private func reportClock(_ doubt: ClockDoubt?) {
        let before = upkeep.clockDoubt
        upkeep.clockDoubt = doubt
        report()
        guard (before == nil) != (doubt == nil) || before?.isLimited != doubt?.isLimited else { return }
        if let doubt {
            log(.warning, "the clock is doubted", [LogField("clock", doubt.text)])
        } else {
            log(.notice, "the clock is trusted again: rows are deleted by it")
        }
        tell.yield(.clock(doubt))
    }

    private func reportRestamped(_ file: HistoryFile) {
        for shift in file.takeCorrections() {
            log(
                .notice,
                "the clock was set: readings from before it have their right times now",
                [
                    LogField("shift", "\(Duration.microseconds(shift.shift))"), LogField("after", shift.start.seq),
                    LogField("through", shift.end.seq),
                ]
            )
            tell.yield(
                .restamped(after: shift.start.seq, through: shift.end.seq, by: .microseconds(shift.shift))
            )
        }
    }

    /// Saves a cursor that has moved.
    ///
    /// If it has passed many readings, at once; else with the next commit or after a short delay.
    func keepCursor() {
        guard let outbox = file?.outbox, outbox.isSaveDue else { return }
        if outbox.unsaved >= Self.cursorCount, !upkeep.isUntidy { saveCursor() } else { scheduleCursor() }
    }

    func scheduleCursor() {
        guard !upkeep.isCursorTimerSet else { return }
        upkeep.isCursorTimerSet = true
        let before = upkeep.commits
        schedule(after: Self.cursorDelay) { $0.saveCursor(unlessAfter: before) }
    }

    /// Saves the cursor after a delay unless another commit has saved it.
    private func saveCursor(unlessAfter before: Int) {
        upkeep.isCursorTimerSet = false
        guard let file, file.outbox?.isSaveDue == true else { return }
        guard upkeep.commits == before else { return scheduleCursor() }
        saveCursor()
    }

    /// Commits the cursor now.
    private func saveCursor() {
        guard let file else { return }
        let isSaved = tidyUp { () throws(StoreFault) in try file.saveCursor() }
        if isSaved, file.outbox?.isSaveDue == true { scheduleCursor() }
        scheduleSettling()
    }

    private func scheduleSettling() {
        guard !upkeep.isIdleTimerSet else { return }
        upkeep.isIdleTimerSet = true
        let before = upkeep.commits
        schedule(after: Self.idleDelay) { $0.settle(unlessAfter: before) }
    }

    /// Returns free space, or waits longer if something was committed meanwhile.
    private func settle(unlessAfter before: Int) {
        upkeep.isIdleTimerSet = false
        guard let file else { return }
        guard upkeep.commits == before else { return scheduleSettling() }
        tidyUp { () throws(StoreFault) in try file.tidyUp() }
    }

    /// Runs background work; reports its first failure, and no further one until it succeeds again.
    @discardableResult
    private func tidyUp(_ body: () throws(StoreFault) -> Void) -> Bool {
        do throws(StoreFault) {
            try body()
            upkeep.isUntidy = false
        } catch {
            if error.kind == .damaged || error.kind == .disk { notice(error) }
            if !upkeep.isUntidy { log(.warning, "history could not tidy up", [LogField("error", error.detail)]) }
            upkeep.isUntidy = true
        }
        return !upkeep.isUntidy
    }

    func schedule(after delay: Duration, _ body: @escaping @Sendable (isolated ReadingHistory) -> Void) {
        loop.schedule(after: delay) { [weak self] in
            self?.assumeIsolated { body($0) }
        }
    }
}
