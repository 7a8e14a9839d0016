import GattherdLog
import GattherdModel

/// Reports changes of the history's state in the log and as notices.
struct HistoryReporter {
    private let log: Log
    private let notices: AsyncStream<HistoryNotice>.Continuation

    init(_ log: Log, _ notices: AsyncStream<HistoryNotice>.Continuation) {
        self.log = log
        self.notices = notices
    }

    /// Ends the notices.
    func finish() {
        notices.finish()
    }

    // MARK: - Faults

    func failing(_ fault: StoreFault) {
        log(.error, "history cannot be used; trying again", [LogField("history.error", fault.detail)])
        notices.yield(.failing(error: fault.detail))
    }

    func deliveringUnstored() {
        log(.error, "readings are delivered without being stored until history can be written again")
        notices.yield(.delivering)
    }

    func recovered(_ unstored: FileFailures.Unstored) {
        log(
            .notice,
            "history can be written again",
            [LogField("unstored", unstored.readings), LogField("unstored.rejects", unstored.rejects)]
        )
        notices.yield(.recovered(unstored: unstored.readings, rejects: unstored.rejects))
    }

    /// Reports a damaged file that has the name `place` now.
    func movedAside(to place: String, _ fault: StoreFault) {
        log(
            .error,
            "the history is damaged: it was moved aside, and a new one was created",
            [LogField("history.error", fault.detail), LogField("path", place)]
        )
        notices.yield(.movedAside(to: place, error: fault.detail))
    }

    /// Reports a missing or empty file whose readings had numbers up to `mark`.
    func lost(_ path: String, mark: Int64) {
        log(
            .error,
            "the history is missing or empty, although readings were stored in it: a new one was created",
            [
                LogField("path", path), LogField("numbered.below", mark),
                LogField("advice", "to bring back a backup, stop the daemon and run 'gattherd db restore FILE'"),
            ]
        )
        notices.yield(.lost(path: path))
    }

    /// Reports a new epoch, because the receiver of a consumer has numbers up to `seq` that the file never had.
    func startedEpoch(for consumer: String, at seq: Int64) {
        log(
            .warning,
            "the history is an older copy: an output continues in a new epoch",
            [LogField("output", consumer), LogField("received.through", seq)]
        )
        notices.yield(.olderCopy(output: consumer, through: seq))
    }

    /// Reports that the folder of the open file is gone, or that no other file can be created in it.
    func outOfReach(_ path: String) {
        log(
            .error,
            "the history was deleted with its folder: what is stored from now on is lost when the daemon ends",
            [
                LogField("path", path),
                LogField("advice", "create the folder for the service's user, then restart the daemon"),
            ]
        )
    }

    func maintenanceFailed(_ fault: StoreFault) {
        log(.warning, "history maintenance failed", [LogField("error", fault.detail)])
    }

    /// Reports a write-ahead log that grows because another program reads the history for long.
    func walIsLarge(bytes: Int64) {
        log(
            .warning,
            "the write-ahead log of the history grows: another program keeps a read transaction open",
            [LogField("bytes", bytes), LogField("advice", "end programs that read the database, such as sqlite3")]
        )
    }

    // MARK: - Readings

    /// Reports readings that a consumer has skipped, because too many waited for it.
    func skipped(_ gap: Journal.Gap) {
        log(
            .warning,
            "readings were skipped: the output is too far behind",
            [
                LogField("output", gap.consumer), LogField("readings", gap.readings), LogField("after", gap.after),
                LogField("through", gap.through),
            ]
        )
        notices.yield(
            .skipped(output: gap.consumer, readings: gap.readings, after: gap.after, through: gap.through)
        )
    }

    func dropped(_ count: Int) {
        log(
            .error,
            "undelivered readings were dropped: the backlog limit is reached",
            [LogField("readings", count)]
        )
        notices.yield(.backlogDropped(readings: count))
    }

    /// Reports readings in memory that are lost at the end.
    func closed(withUnstored count: Int) {
        log(.error, "closed with readings that were neither stored nor delivered", [LogField("readings", count)])
    }

    // MARK: - Clock

    func openedUnsynchronised() {
        log(.notice, "the clock is not synchronised yet: times will be corrected when it is")
    }

    /// Reports the start and the end of doubt about the clock, and its limits.
    func clock(_ doubt: ClockDoubt?, before: ClockDoubt?) {
        guard (before == nil) != (doubt == nil) || before?.isLimited != doubt?.isLimited else { return }
        if let doubt {
            log(.warning, "the clock may be wrong", [LogField("clock", doubt.text)])
        } else {
            log(.notice, "the clock is trusted again; retention uses it")
        }
        notices.yield(.clock(doubt))
    }

    func corrected(_ correction: ClockCorrection) {
        let (first, last, distance) = (correction.after, correction.through, correction.shift)
        log(
            .notice,
            "the clock was set; times of earlier readings were corrected",
            [LogField("shift", "\(distance)"), LogField("after", first), LogField("through", last)]
        )
        notices.yield(.restamped(after: first, through: last, by: distance))
    }
}
