import GattherdLog
import GattherdModel
import GattherdSync

/// A fault of the file, and the state of its handling.
struct FileFailure {
    fileprivate(set) var fault: StoreFault
    fileprivate let since: ContinuousClock.Instant
    /// The time before which the disk is not accessed.
    fileprivate var nextTry: ContinuousClock.Instant
    /// True if readings are delivered from memory.
    fileprivate var isDelivering = false
    /// The number of readings that will not be stored.
    fileprivate var unstored = 0
    fileprivate var unstoredRejects = 0
    /// True if damage was found: the file must be reopened even if it can be written.
    fileprivate var isDamaged = false
    fileprivate var isReopening = false

    fileprivate init(_ fault: StoreFault, at now: ContinuousClock.Instant) {
        self.fault = fault
        since = now
        nextTry = now
    }
}

extension ReadingHistory {
    /// Commits the batch, or handles it according to ``HistoryOptions/whenFull``.
    func store(_ batch: ReadingBatch) throws(StoreFault) {
        if let trouble, let file, trouble.isDelivering, .now < trouble.nextTry {
            return try deliverUnstored(batch, file)
        }
        do throws(StoreFault) {
            let file = try opened()
            try file.append(batch)
            if trouble?.isDamaged != true { recovered() }
            newest.set(file.head)
            didCommit(file)
        } catch {
            guard !isClosed else { throw error }
            notice(error)
            trouble?.nextTry = .now.advanced(by: options.pause)
            guard mayDeliverUnstored, let file else { throw error }
            try deliverUnstored(batch, file)
        }
    }

    private var mayDeliverUnstored: Bool {
        guard let trouble, options.keepsJournal, options.whenFull == .deliver else { return false }
        return .now - trouble.since >= options.patience
    }

    private func deliverUnstored(_ batch: ReadingBatch, _ file: HistoryFile) throws(StoreFault) {
        let readings = try HistoryFile.unstored(batch, file.sequence, path: options.path)
        if trouble?.isDelivering == false {
            log(.error, "readings are delivered without being stored until history can be written again")
            tell.yield(.delivering)
        }
        trouble?.isDelivering = true
        trouble?.unstored += readings.count
        trouble?.unstoredRejects += batch.rejects.count
        unstored.append(readings)
        tail.forget()
        newest.set(file.sequence.last)
        report()
        reportDropped()
    }

    private func recovered() {
        guard let past = trouble else { return }
        trouble = nil
        log(
            .notice,
            "history is being written again",
            [LogField("unstored", past.unstored), LogField("unstored.rejects", past.unstoredRejects)]
        )
        tell.yield(.recovered(unstored: past.unstored, rejects: past.unstoredRejects))
    }

    /// Reports a fault once, and schedules a reopening if it may help.
    func notice(_ fault: StoreFault) {
        if trouble == nil {
            log(.error, "history cannot be used; trying again", [LogField("history.error", fault.detail)])
            tell.yield(.failing(error: fault.detail))
        }
        trouble = trouble ?? FileFailure(fault, at: .now)
        trouble?.fault = fault
        if fault.kind == .damaged, trouble?.isDamaged == false {
            trouble?.isDamaged = true
            damages.add(at: .now)
        }
        if file == nil || fault.kind == .damaged || fault.kind == .disk { scheduleReopening() }
        report()
    }

    private func scheduleReopening() {
        guard trouble?.isReopening == false else { return }
        trouble?.isReopening = true
        schedule(after: options.pause) { $0.reopen() }
    }

    /// After an I/O error the state of the connection is unreliable.
    private func reopen() {
        trouble?.isReopening = false
        guard let trouble, !isClosed else { return }
        do throws(StoreFault) {
            if trouble.isDamaged { abandonFile() }
            // A file that seems intact although damage was found.
            if trouble.isDamaged, damages.isRepeated { try moveAside(trouble.fault) }
            let wasOpen = file != nil
            try openFile(isSuspect: trouble.isDamaged)
            if !wasOpen { recovered() }
        } catch {
            notice(error)
            scheduleReopening()
        }
        report()
    }
}
