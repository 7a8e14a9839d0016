public import GattherdLog
public import GattherdModel
public import GattherdSync

/// Stores readings, events and rejects in one SQLite file, with the journal of undelivered readings.
///
/// The actor has its own thread, because SQLite blocks on the disk. A batch is one transaction that is durable when
/// ``append(_:)`` returns. ``heads()`` reports it afterwards, so that only stored readings are published. Between
/// commits the actor summarises samples, deletes old rows and returns free space.
public actor ReadingHistory {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }
    /// Notices for one listener.
    public nonisolated let notices: AsyncStream<HistoryNotice>

    /// The actor's thread; callers on it append a batch without a thread switch.
    public nonisolated let loop = EventLoop(name: "history")
    /// -1 until a file has been opened.
    nonisolated let newest = LatestValue<Int64>(-1)
    private nonisolated let tail: JournalTail
    private nonisolated let board = LatestValue(HistoryStatus())
    private let options: HistoryOptions
    private let reporter: HistoryReporter
    private var opener: HistoryOpener
    /// The open file; `nil` before opening, after closing and while the file is unusable.
    private(set) var file: HistoryFile?
    private var failures: FileFailures
    private var requests: ConsumerRequests
    private var schedule: UpkeepSchedule
    private var isClosed = false
    /// True while another thread checks a damaged file.
    private var isChecking = false
    private var maintenance = HistoryMaintenance()

    private init(_ options: HistoryOptions, log: Log) {
        self.options = options
        let (notices, continuation) = AsyncStream.makeStream(
            of: HistoryNotice.self,
            bufferingPolicy: .bufferingNewest(64)
        )
        self.notices = notices
        reporter = HistoryReporter(log, continuation)
        let consumers = options.consumers.map(\.name)
        tail = JournalTail(consumers: consumers)
        requests = ConsumerRequests(consumers: consumers)
        opener = HistoryOpener(options, tail, log, reporter)
        failures = FileFailures(options)
        schedule = UpkeepSchedule(reopeningDelay: options.pause)
    }

    deinit {
        reporter.finish()
        loop.stop()
    }

    /// Opens the history, or creates it; only one process can have it open.
    ///
    /// If the disk is full or cannot be written, the history is opened later.
    ///
    /// - Parameters:
    ///   - options: The path and the limits.
    ///   - log: The log for faults that were overcome.
    /// - Returns: The open history, to be closed with ``close()``.
    /// - Throws: ``StoreFault`` if the directory is missing, the file is another program's or a newer gattherd's, or
    ///   another daemon has it.
    public static func open(_ options: HistoryOptions, log: Log) async throws(StoreFault) -> ReadingHistory {
        var options = options
        options.path = DatabaseName.resolved(options.path)
        let history = ReadingHistory(options, log: log)
        try await history.start()
        return history
    }

    /// The `seq` of the newest committed entry; 0 without entries.
    public nonisolated var newestSeq: Int64 { max(0, newest.state) }

    /// The current status; any thread may read it.
    public nonisolated var status: HistoryStatus { board.state }

    /// Opens the file; a fault that may end later is not an error.
    private func start() throws(StoreFault) {
        do throws(StoreFault) {
            try openFile()
        } catch {
            guard error.isTransient else { throw error }
            recordFailure(error)
        }
        startPass()
    }

    /// Writes pending state and closes the file; later calls throw.
    ///
    /// - Throws: ``StoreFault`` if the pending state could not be written; the file is closed and consistent anyway.
    public func close() throws(StoreFault) {
        isClosed = true
        reporter.finish()
        if requests.unstoredLeft > 0 { reporter.closed(withUnstored: requests.unstoredLeft) }
        requests.resume()
        guard let file else { return }
        self.file = nil
        opener.close()
        try file.close()
    }

    private func opened() throws(StoreFault) -> HistoryFile {
        if let file { return file }
        guard !isClosed, let fault = failures.fault else {
            throw StoreFault("\(options.path): the history is closed")
        }
        throw fault
    }

    private func publishHead(of file: HistoryFile) {
        if file.head > newest.state { newest.set(file.head) }
    }

    /// Commits a change of the file, and schedules the upkeep after it.
    private func change(_ body: (HistoryFile) throws(StoreFault) -> Void) throws(StoreFault) {
        let file = try opened()
        try body(file)
        didCommit(file)
    }

    private func updateStatus() {
        board.update { status in
            if let file {
                status.size = file.size
                status.unused = file.journal?.unused ?? UnusedNumbers()
            }
            status.undelivered = undelivered
            status.unstored = requests.unstoredCount
            status.fault = failures.fault
            status.clockDoubt = maintenance.clockDoubt
            status.isNewAfterLoss = opener.isNewAfterLoss
        }
    }
}

// MARK: - Devices and events

extension ReadingHistory: ReadingStore {
    /// Commits the whole batch in one transaction; on a throw nothing of it is stored.
    ///
    /// A reading without a sample gets no `seq` and is not delivered. While the file cannot be written, the batch is
    /// handled according to ``HistoryOptions/whenFull``.
    public func append(_ batch: ReadingBatch) throws(StoreFault) {
        guard !batch.isEmpty else { return }
        if let file, failures.skipsFile(at: .now) { return try deliverUnstored(batch, file) }
        do throws(StoreFault) {
            let file = try opened()
            try file.append(batch)
            if !failures.isDamaged { recover() }
            newest.set(file.head)
            didCommit(file)
        } catch {
            guard !isClosed else { throw error }
            recordFailure(error)
            failures.postponeWriting(at: .now)
            guard let file, failures.mayDeliverUnstored(at: .now) else { throw error }
            try deliverUnstored(batch, file)
        }
    }

    public func replayMarks() throws(StoreFault) -> [String: UInt32] {
        try opened().replayMarks()
    }

    public func recordCursors() throws(StoreFault) -> [RecordCursor] {
        try opened().recordCursors()
    }

    public func record(_ events: [LifecycleEvent]) throws(StoreFault) {
        guard !events.isEmpty else { return }
        try change { (file) throws(StoreFault) in
            try file.record(events)
            publishHead(of: file)
        }
    }

    /// Adds or updates a device; each call is a commit, so do not call it for every advertisement.
    public func record(_ device: DeviceRecord, seenAt time: Timestamp) throws(StoreFault) {
        try change { (file) throws(StoreFault) in try file.record(device, seenAt: time) }
    }

    public func setHeld(_ device: String, _ isHeld: Bool) throws(StoreFault) {
        try change { (file) throws(StoreFault) in try file.setHeld(device, isHeld) }
    }

    public func heldDevices() throws(StoreFault) -> Set<String> {
        try opened().heldDevices()
    }

    /// The enrolled devices, by name.
    public func enrolledDevices() throws(StoreFault) -> [EnrolledDevice] {
        try opened().enrolledDevices()
    }

    /// Replaces the stored list of enrolled devices.
    public func setEnrolled(_ devices: [EnrolledDevice]) throws(StoreFault) {
        try change { (file) throws(StoreFault) in try file.setEnrolled(devices) }
    }

    /// Removes the events, the rejects and the entries of devices that never had a reading.
    public func removeTraces(of devices: [String]) throws(StoreFault) {
        guard !devices.isEmpty else { return }
        try change { (file) throws(StoreFault) in try file.removeTraces(of: devices) }
    }
}

// MARK: - Journal

extension ReadingHistory {
    /// The journal as the consumer with this name sees it.
    public nonisolated func consumer(_ name: String) -> HistoryConsumer {
        let options = options.consumers.first { $0.name == name } ?? JournalConsumerOptions(name: name)
        return HistoryConsumer(self, options, tail)
    }

    /// Returns entries, after the end of a correction that concerns them.
    ///
    /// - Throws: ``StoreFault`` if the file cannot be read; `busy` while the entries are being searched.
    func entries(after seq: Int64, limit: Int, for consumer: String) async throws(StoreFault) -> JournalBatch {
        while true {
            if file?.isRebuilding(after: seq) == true {
                throw StoreFault("the readings since '\(consumer)' was configured last are being searched", .busy)
            }
            do throws(StoreFault) {
                return try requests.entries(after: seq, limit: limit, for: consumer, in: try opened())
            } catch {
                let isBeingCorrected = error.kind == .busy && file?.clock.currentShift != nil
                guard isBeingCorrected, !isClosed else {
                    if !isClosed { recordFailure(error) }
                    throw error
                }
            }
            await waitForUpkeep()
        }
    }

    func acknowledged(by consumer: String) throws(StoreFault) -> Int64 {
        requests.acknowledged(by: consumer, in: try opened())
    }

    /// Moves a cursor, which is saved with the next commit or after a short delay.
    ///
    /// A cursor that has passed many readings is committed at once, so that a crash repeats few of them.
    func acknowledge(through seq: Int64, by consumer: String) throws(StoreFault) {
        let file = try opened()
        requests.acknowledge(through: seq, by: consumer, in: file)
        guard let journal = file.journal, journal.isSaveDue else { return }
        if journal.isSaveUrgent, !maintenance.hasFailed { saveCursor() } else { scheduleWork(.cursor) }
    }

    func epoch() throws(StoreFault) -> JournalEpoch { try opened().epoch() }

    /// Moves a cursor back or forward; returns when the entries after it are complete.
    func rewind(to seq: Int64, for consumer: String) async throws(StoreFault) {
        let file = try opened()
        try change { (file) throws(StoreFault) in try file.rewind(consumer, to: seq) }
        while file.isScanDue {
            await waitForUpkeep()
            guard self.file === file else { throw StoreFault("\(options.path): the history was opened again", .busy) }
        }
    }

    /// Waits until a correction or a scan is complete, or the file is closed.
    private func waitForUpkeep() async {
        await withCheckedContinuation { requests.wait($0) }
    }
}

// MARK: - Faults

extension ReadingHistory {
    private func deliverUnstored(_ batch: ReadingBatch, _ file: HistoryFile) throws(StoreFault) {
        let readings = try batch.numberedUnstored(by: file.sequence, path: options.path)
        let isFirst = failures.recordUnstored(readings: readings.count, rejects: batch.rejects.count)
        if isFirst { reporter.deliveringUnstored() }
        requests.append(readings)
        file.journal?.lost.addUnstored(through: file.sequence.last)
        tail.removeAll()
        newest.set(file.sequence.last)
        updateStatus()
        reportDropped()
    }

    private func recover() {
        if let unstored = failures.recover() { reporter.recovered(unstored) }
    }

    /// Reports a fault once, and schedules a reopening if it may help.
    func recordFailure(_ fault: StoreFault) {
        if failures.record(fault, at: .now) { reporter.failing(fault) }
        if failures.isReopeningDue(isOpen: file != nil) { scheduleWork(.reopening) }
        updateStatus()
    }

    private func reopen() {
        guard let fault = failures.fault, !isClosed, !isChecking else { return }
        guard failures.isDamaged, !failures.isReplacementDue else { return replaceFile(fault) }
        checkFile()
    }

    /// Checks the damaged file on a thread of its own.
    ///
    /// The check of a large file takes longer than the watchdog's limit, and this thread must stay responsive
    /// meanwhile.
    private func checkFile() {
        abandonFile()
        isChecking = true
        updateStatus()
        let (path, check) = (options.path, options.check)
        let isStarted = NamedThread.start(name: "history check") { [weak self, loop] in
            let verdict = Result { () throws(StoreFault) in try check(path) }
            loop.execute { self?.assumeIsolated { $0.didCheck(verdict) } }
        }
        if !isStarted { didCheck(.failure(StoreFault("\(path): no thread can be started to check it", .busy))) }
    }

    private func didCheck(_ verdict: Result<Void, StoreFault>) {
        isChecking = false
        guard !isClosed else { return }
        switch verdict {
        case .success: replaceFile(nil)
        case .failure(let fault) where fault.kind == .damaged: replaceFile(fault)
        case .failure(let fault):
            recordFailure(fault)
            scheduleWork(.reopening)
        }
    }

    /// Opens the file again; a file with `damage` is moved aside before.
    private func replaceFile(_ damage: StoreFault?) {
        do throws(StoreFault) {
            let isDamaged = failures.isDamaged
            if isDamaged { abandonFile() }
            if isDamaged, let damage { try moveAside(damage) }
            let wasOpen = file != nil
            try openFile()
            if !wasOpen { recover() }
        } catch {
            recordFailure(error)
            scheduleWork(.reopening)
        }
        updateStatus()
    }

    /// Opens the path again if another program has deleted, renamed or replaced the file in use.
    func reopenIfReplaced() {
        guard file?.connection.isReplaced == true else { return }
        recordFailure(StoreFault("\(options.path): the file was deleted or replaced while it was in use", .disk))
        // A renamed file gets all commits.
        file?.truncateWAL()
        abandonFile()
        opener.expectRemains()
        replaceFile(nil)
    }

    /// Opens the file in place of the one before, if there was one; a damaged file is replaced by a new one.
    private func openFile() throws(StoreFault) {
        do throws(StoreFault) {
            adopt(try opener.open())
        } catch {
            guard error.kind == .damaged else { throw error }
            try moveAside(error)
            adopt(try opener.open())
        }
    }

    private func moveAside(_ fault: StoreFault) throws(StoreFault) {
        try opener.moveAside(fault)
        failures.didReplaceFile()
    }

    private func adopt(_ new: HistoryFile) {
        let cursors = abandonFile()
        new.journal?.acknowledge(cursors, through: new.head)
        new.journal?.lost.addUnstored(through: requests.lastUnstored)
        if !options.clock.isSynchronised() { reporter.openedUnsynchronised() }
        file = new
        tail.removeAll()
        newest.set(max(new.head, newest.state))
        updateStatus()
        if new.journal?.isSaveDue == true { scheduleWork(.cursor) }
    }

    /// Releases the file without writing to it any more; returns the cursors.
    @discardableResult
    private func abandonFile() -> [String: Int64] {
        guard let file else { return [:] }
        file.connection.keepsWALOnClose(true)
        maintenance.fileWasClosed(dropped: file.undelivered)
        self.file = nil
        requests.resume()
        return file.journal?.cursorsByName ?? [:]
    }
}

// MARK: - Background work, on the same thread between callers' jobs

extension ReadingHistory {
    /// Starts upkeep after a commit, when the caller and the subscribers know of the commit.
    private func didCommit(_ file: HistoryFile) {
        schedule.didCommit()
        file.checkpointIfDue()
        updateStatus()
        scheduleStep()
        scheduleWork(.flushing)
    }

    /// Starts retention passes at intervals.
    private func startPass() {
        guard !isClosed else { return }
        loop.schedule(after: options.limits.passInterval) { [weak self] in
            self?.assumeIsolated { $0.startPass() }
        }
        reopenIfReplaced()
        if let file {
            maintain { () throws(StoreFault) in try file.startPass() }
            maintenance.setClockDoubt(file.clock.doubt, reporter)
            maintenance.setWALPages(file.connection.walPages, reporter)
            updateStatus()
        }
        scheduleStep()
    }

    private func scheduleStep() {
        if file?.isUpkeepDue == true { scheduleWork(.step) }
    }

    private func scheduleWork(_ work: UpkeepSchedule.Work) {
        guard let delay = schedule.add(work) else { return }
        let run: @Sendable () -> Void = { [weak self] in
            self?.assumeIsolated { $0.run(work) }
        }
        if delay == .zero { loop.execute(run) } else { loop.schedule(after: delay, run) }
    }

    private func run(_ work: UpkeepSchedule.Work) {
        let isIdle = schedule.start(work)
        switch work {
        case .step: step()
        case .cursor:
            guard file?.journal?.isSaveDue == true else { return }
            // Another commit has saved an earlier cursor.
            if isIdle { saveCursor() } else { scheduleWork(.cursor) }
        case .flushing:
            guard let file else { return }
            guard isIdle else { return scheduleWork(.flushing) }
            maintain { () throws(StoreFault) in try file.flushPendingState() }
        case .dropReport: reportDropped()
        case .reopening: reopen()
        }
    }

    /// Runs upkeep step by step between other jobs until nothing is due.
    private func step() {
        guard let file else { return }
        let wasScanDue = file.isScanDue
        let isDone = maintain { () throws(StoreFault) in try file.upkeep() }
        updateStatus()
        reportDropped()
        publishHead(of: file)
        let corrections = file.clock.drainCompleted()
        for correction in corrections { reporter.corrected(correction) }
        if !corrections.isEmpty || wasScanDue && !file.isScanDue { requests.resume() }
        for gap in file.drainGaps() { record(gap) }
        if isDone { scheduleStep() }
        scheduleWork(.flushing)
    }

    private func record(_ gap: Journal.Gap) {
        board.update { $0.skipped[gap.consumer, default: 0] += UInt64(max(0, gap.readings)) }
        reporter.skipped(gap)
    }

    /// Commits the cursor now.
    private func saveCursor() {
        guard let file else { return }
        let isSaved = maintain { () throws(StoreFault) in try file.saveCursor() }
        if isSaved, file.journal?.isSaveDue == true { scheduleWork(.cursor) }
        scheduleWork(.flushing)
    }

    /// The number of readings dropped before they were delivered.
    private var undelivered: Int {
        maintenance.dropped(byFile: file?.undelivered ?? 0, fromMemory: requests.droppedCount)
    }

    private func reportDropped() {
        guard !schedule.contains(.dropReport) else { return }
        let count = maintenance.reportDrops(undelivered)
        guard count > 0 else { return }
        reporter.dropped(count)
        scheduleWork(.dropReport)
    }

    /// Runs background work; a fault of the file is handled.
    @discardableResult
    private func maintain(_ body: () throws(StoreFault) -> Void) -> Bool {
        guard let fault = maintenance.run(reporter, body) else { return true }
        if fault.kind == .damaged || fault.kind == .disk { recordFailure(fault) }
        return false
    }
}
