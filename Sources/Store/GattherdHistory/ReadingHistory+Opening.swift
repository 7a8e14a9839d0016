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
    /// Opens the file. A damaged file is moved aside and replaced by a new one.
    func openFile(isSuspect: Bool = false) throws(StoreFault) {
        try FileContent.expectHistory(options.path)
        var carriedOver = try takeHeritage()
        carriedOver.isSuspect = isSuspect
        let lost = lostMark
        do throws(StoreFault) {
            adopt(try HistoryFile(options, carriedOver, log))
            if let lost, !isMovedAside { sayLost(lost) }
        } catch {
            guard error.kind == .damaged else { throw error }
            try moveAside(error)
            adopt(try HistoryFile(options, carriedOver, log))
        }
        isMovedAside = false
    }

    /// The last number of a missing or empty history, read from the sequence file; otherwise `nil`.
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

    private func takeHeritage() throws(StoreFault) -> HistoryFile.CarriedOver {
        if let carriedOver { return carriedOver }
        let first = HistoryFile.CarriedOver(lock: try FileLock(database: options.path), tail: tail)
        carriedOver = first
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
        carriedOver?.sequence = new.sequence
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
        file.connection.keepsWALOnClose(true)
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
    fileprivate convenience init(_ options: HistoryOptions, _ carriedOver: CarriedOver, _ log: Log) throws(StoreFault) {
        try self.init(
            path: options.path,
            keepsJournal: options.keepsJournal,
            limits: options.limits,
            carriedOver: carriedOver,
            clock: options.clock,
            log: log
        )
    }
}
