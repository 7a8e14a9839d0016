import GattherdModel

/// The file in use, the fault that keeps it from being used, and the next file after a fault.
struct CurrentFile {
    /// The next step towards a file that can be used.
    enum Recovery {
        /// Check the damaged file, which is closed meanwhile.
        case check
        /// Open the file again; see ``replace(_:)``.
        case replace(StoreFault)
    }

    /// The open file; `nil` before opening, after closing and while the file is unusable.
    private(set) var file: HistoryFile?
    private(set) var isClosed = false
    private let options: HistoryOptions
    private let reporter: HistoryReporter
    private var opener: HistoryOpener
    private var failures: FileFailures
    /// True while another thread checks a damaged file.
    private var isChecking = false
    /// The number of readings dropped by files that were open before.
    private var droppedBefore = 0

    init(_ options: HistoryOptions, _ opener: HistoryOpener, _ reporter: HistoryReporter) {
        self.options = options
        self.opener = opener
        self.reporter = reporter
        failures = FileFailures(options)
    }

    /// The last fault; `nil` while the file can be used.
    var fault: StoreFault? { failures.fault }

    /// True if an earlier file was missing or empty when it was opened.
    var isNewAfterLoss: Bool { opener.isNewAfterLoss }

    /// The number of readings that the files have dropped before they were delivered.
    var undelivered: Int { droppedBefore + (file?.undelivered ?? 0) }

    /// Returns the open file.
    ///
    /// - Throws: The fault that keeps the file from being used, or an error after ``close()``.
    func opened() throws(StoreFault) -> HistoryFile {
        if let file { return file }
        guard !isClosed, let fault else { throw StoreFault("\(options.path): the history is closed") }
        throw fault
    }

    // MARK: - Opening and closing

    /// Opens the file in place of the one before, if there was one; a damaged file is replaced by a new one.
    mutating func open() throws(StoreFault) -> HistoryFile {
        let new = try openOrCreate()
        let cursors = abandon()
        new.journal?.acknowledge(cursors, through: new.head)
        if !options.clock.isSynchronised() { reporter.openedUnsynchronised() }
        file = new
        return new
    }

    private mutating func openOrCreate() throws(StoreFault) -> HistoryFile {
        do throws(StoreFault) {
            return try opener.open()
        } catch {
            guard error.kind == .damaged else { throw error }
            try moveAside(error)
            return try opener.open()
        }
    }

    private mutating func moveAside(_ damage: StoreFault) throws(StoreFault) {
        try opener.moveAside(damage)
        failures.didReplaceFile()
    }

    /// Writes pending state and closes the file for good.
    mutating func close() throws(StoreFault) {
        isClosed = true
        guard let file else { return }
        self.file = nil
        opener.close()
        try file.close()
    }

    /// Releases the file without writing to it any more; returns the cursors.
    @discardableResult
    private mutating func abandon() -> [String: Int64] {
        guard let file else { return [:] }
        file.connection.keepsWALOnClose(true)
        droppedBefore += file.undelivered
        self.file = nil
        return file.journal?.cursorsByName ?? [:]
    }

    // MARK: - Writing

    /// Commits a batch, which ends a fault other than damage.
    mutating func append(_ batch: ReadingBatch) throws(StoreFault) -> HistoryFile {
        let file = try opened()
        try file.append(batch)
        if !failures.isDamaged { recover() }
        return file
    }

    /// The open file, if readings are delivered from memory without trying to write them.
    var unwritableFile: HistoryFile? { failures.skipsFile(at: .now) ? file : nil }

    /// Records that a batch could not be written.
    ///
    /// - Returns: The file, if the batch may be delivered from memory.
    mutating func postponeWriting() -> HistoryFile? {
        failures.postponeWriting(at: .now)
        return failures.mayDeliverUnstored(at: .now) ? file : nil
    }

    /// Numbers the readings of a batch that `file` does not store.
    mutating func number(unstored batch: ReadingBatch, by file: HistoryFile) throws(StoreFault) -> [JournalReading] {
        let readings = try batch.numberedUnstored(by: file.sequence, path: options.path)
        let isFirst = failures.recordUnstored(readings: readings.count, rejects: batch.rejects.count)
        if isFirst { reporter.deliveringUnstored() }
        file.journal?.lost.addUnstored(through: file.sequence.last)
        return readings
    }

    // MARK: - Faults

    /// Records a fault, and reports the first one.
    mutating func record(_ fault: StoreFault) {
        if failures.record(fault, at: .now) { reporter.failing(fault) }
    }

    private mutating func recover() {
        if let unstored = failures.recover() { reporter.recovered(unstored) }
    }

    /// True if a reopening may help.
    var isReopeningDue: Bool { failures.isReopeningDue(isOpen: file != nil) }

    /// The next step after a fault; `nil` without one, and while another thread checks the file.
    var recovery: Recovery? {
        guard let fault, !isClosed, !isChecking else { return nil }
        return failures.isDamaged && !failures.isReplacementDue ? .check : .replace(fault)
    }

    /// Releases the file, so that another thread can check it.
    mutating func startCheck() {
        abandon()
        isChecking = true
    }

    mutating func endCheck() {
        isChecking = false
    }

    /// True if another program has deleted, renamed or replaced the file.
    var isReplaced: Bool { file?.connection.isReplaced == true }

    /// Releases a file that another program has deleted, renamed or replaced.
    mutating func abandonReplaced() {
        // A renamed file gets all commits.
        file?.truncateWAL()
        abandon()
        opener.expectRemains()
    }

    /// Opens the file again after a fault; a file with `damage` is moved aside before.
    mutating func replace(_ damage: StoreFault?) throws(StoreFault) -> HistoryFile {
        if failures.isDamaged {
            abandon()
            if let damage { try moveAside(damage) }
        }
        let wasOpen = file != nil
        let new = try open()
        if !wasOpen { recover() }
        return new
    }
}
