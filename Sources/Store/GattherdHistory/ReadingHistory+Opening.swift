import GattherdLog
import GattherdModel
import GattherdSync

extension ReadingHistory {
    /// Opens the file; what may be well later is no error.
    func begin() throws(StoreFault) {
        do throws(StoreFault) {
            try openFile()
        } catch {
            guard error.isTransient else { throw error }
            notice(error)
        }
        beginPass()
    }

    /// Opens the file in place of the one before, if there was one.
    ///
    /// What is damaged is moved aside: better a new history than none.
    func openFile(isDoubtful: Bool = false) throws(StoreFault) {
        try FileContent.expectHistory(options.path)
        var heritage = try takeHeritage()
        heritage.isDoubtful = isDoubtful
        let lost = lostMark
        do throws(StoreFault) {
            adopt(try HistoryFile(options, heritage, log))
            if let lost, !isMovedAside { sayLost(lost) }
        } catch {
            guard error.kind == .damaged else { throw error }
            try moveAside(error)
            adopt(try HistoryFile(options, heritage, log))
        }
        isMovedAside = false
    }

    /// How far readings were numbered in a history that is missing, or empty, by the file beside it; else `nil`.
    private var lostMark: Int64? {
        guard FileContent(options.path) == .nothing else { return nil }
        guard case .mark(let mark) = SequenceFile(path: options.path + "-seq").read(), mark > 0 else { return nil }
        return mark
    }

    private func sayLost(_ mark: Int64) {
        isNewAfterLoss = true
        log(
            .error,
            "the history is missing or empty, although readings were stored in it: a new one is begun",
            [
                LogField("path", options.path), LogField("numbered.below", mark),
                LogField("advice", "to bring back a backup, stop the daemon and run 'gattherd db restore FILE'"),
            ]
        )
        tell.yield(.lost(path: options.path))
        report()
    }

    private func takeHeritage() throws(StoreFault) -> HistoryFile.Heritage {
        if let heritage { return heritage }
        let first = HistoryFile.Heritage(lock: try FileLock(database: options.path), tail: tail)
        heritage = first
        return first
    }

    private func adopt(_ new: HistoryFile) {
        let cursor = abandonFile()
        if let outbox = new.outbox { outbox.acknowledge(through: min(cursor, new.head)) }
        if !new.clock.isSynchronised() {
            log(.notice, "the clock is not synchronised yet: times are put right as soon as it is")
        }
        file = new
        tail.forget()
        heritage?.sequence = new.sequence
        newest.set(max(new.head, newest.state))
        report()
        if new.outbox?.isSaveDue == true { scheduleCursor() }
    }

    /// Lets go of the file without touching it any more.
    ///
    /// - Returns: How far it was delivered.
    @discardableResult
    func abandonFile() -> Int64 {
        guard let file else { return 0 }
        file.connection.keepsLogOnClose(true)
        upkeep.undeliveredBefore += file.undelivered
        self.file = nil
        return file.outbox?.cursor ?? 0
    }

    func moveAside(_ fault: StoreFault) throws(StoreFault) {
        let place = try DamagedFile(path: options.path).moveAside(at: options.clock.now())
        damages = DamageCount()
        isMovedAside = true
        log(
            .error,
            "the history is damaged: it was moved aside, and a new one is begun",
            [LogField("history.error", fault.detail), LogField("path", place)]
        )
        tell.yield(.movedAside(to: place, error: fault.detail))
    }
}

extension HistoryFile {
    fileprivate convenience init(_ options: HistoryOptions, _ heritage: Heritage, _ log: Log) throws(StoreFault) {
        try self.init(
            path: options.path,
            keepsLog: options.keepsLog,
            limits: options.limits,
            heritage: heritage,
            clock: options.clock,
            log: log
        )
    }
}
