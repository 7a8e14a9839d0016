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
    private var current: CurrentFile
    private var requests: ConsumerRequests
    private var schedule: UpkeepSchedule
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
        current = CurrentFile(options, HistoryOpener(options, tail, log, reporter), reporter)
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
            didOpen(try current.open())
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
        reporter.finish()
        if requests.unstoredLeft > 0 { reporter.closed(withUnstored: requests.unstoredLeft) }
        requests.resume()
        try current.close()
    }

    /// The open file; `nil` before opening, after closing and while the file is unusable.
    var file: HistoryFile? { current.file }

    private func publishHead(of file: HistoryFile) {
        if file.head > newest.state { newest.set(file.head) }
    }

    /// Commits a change of the file, and schedules the upkeep after it.
    private func change(_ body: (HistoryFile) throws(StoreFault) -> Void) throws(StoreFault) {
        let file = try current.opened()
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
            status.fault = current.fault
            status.clockDoubt = maintenance.clockDoubt
            status.isNewAfterLoss = current.isNewAfterLoss
        }
    }
}

// MARK: - Devices and events

extension ReadingHistory: ReadingStore {
    /// Commits the whole batch in one transaction; on a throw nothing of it is stored.
    ///
    /// A reading without a sample gets no `seq` and is not delivered. While the file cannot be written, the batch is
    /// handled according to ``HistoryOptions/whenFull``.
    @discardableResult
    public func append(_ batch: ReadingBatch) throws(StoreFault) -> Bool {
        guard !batch.isEmpty else { return true }
        if let file = current.unwritableFile { return try deliverUnstored(batch, file) }
        do throws(StoreFault) {
            let file = try current.append(batch)
            newest.set(file.head)
            didCommit(file)
            return true
        } catch {
            guard !current.isClosed else { throw error }
            recordFailure(error)
            guard let file = current.postponeWriting() else { throw error }
            return try deliverUnstored(batch, file)
        }
    }

    public func replayMarks() throws(StoreFault) -> [String: UInt32] {
        try current.opened().replayMarks()
    }

    public func recordCursors() throws(StoreFault) -> [RecordCursor] {
        try current.opened().recordCursors()
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
        try current.opened().heldDevices()
    }

    /// The enrolled devices, by name.
    public func enrolledDevices() throws(StoreFault) -> [EnrolledDevice] {
        try current.opened().enrolledDevices()
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
    /// - Throws: ``StoreFault`` if the file cannot be read; `busy` while the entries are being collected.
    func entries(after seq: Int64, limit: Int, for consumer: String) async throws(StoreFault) -> JournalBatch {
        while true {
            if file?.isRebuilding(after: seq) == true {
                throw StoreFault("the readings since '\(consumer)' was last configured are being collected", .busy)
            }
            do throws(StoreFault) {
                return try requests.entries(after: seq, limit: limit, for: consumer, in: try current.opened())
            } catch {
                let isBeingCorrected = error.kind == .busy && file?.clock.currentShift != nil
                guard isBeingCorrected, !current.isClosed else {
                    if !current.isClosed { recordFailure(error) }
                    throw error
                }
            }
            await waitForUpkeep()
        }
    }

    func acknowledged(by consumer: String) throws(StoreFault) -> Int64 {
        requests.acknowledged(by: consumer, in: try current.opened())
    }

    /// Moves a cursor, which is saved with the next commit or after a short delay.
    ///
    /// A cursor that has passed many readings is committed at once, so that a crash repeats few of them.
    func acknowledge(through seq: Int64, by consumer: String) throws(StoreFault) {
        let file = try current.opened()
        requests.acknowledge(through: seq, by: consumer, in: file)
        guard let journal = file.journal, journal.isSaveDue else { return }
        if journal.isSaveUrgent, !maintenance.hasFailed { saveCursor() } else { scheduleWork(.cursor) }
    }

    func epoch() throws(StoreFault) -> JournalEpoch { try current.opened().epoch() }

    /// Moves a cursor back or forward; returns when the entries after it are complete.
    func rewind(to seq: Int64, for consumer: String) async throws(StoreFault) {
        let file = try current.opened()
        let epoch = try file.epoch()
        do throws(StoreFault) {
            try change { (file) throws(StoreFault) in try file.rewind(consumer, to: seq) }
        } catch {
            if let next = try? file.epoch(), next != epoch { reporter.startedEpoch(for: consumer, at: seq) }
            throw error
        }
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
    /// Delivers a batch from memory; returns false, because it is not stored.
    private func deliverUnstored(_ batch: ReadingBatch, _ file: HistoryFile) throws(StoreFault) -> Bool {
        requests.append(try current.number(unstored: batch, by: file))
        tail.removeAll()
        newest.set(file.sequence.last)
        updateStatus()
        reportDropped()
        return false
    }

    /// Reports a fault once, and schedules a reopening if it may help.
    func recordFailure(_ fault: StoreFault) {
        current.record(fault)
        if current.isReopeningDue { scheduleWork(.reopening) }
        updateStatus()
    }

    private func reopen() {
        switch current.recovery {
        case .check: checkFile()
        case .replace(let fault): replaceFile(fault)
        case nil: break
        }
    }

    /// Checks the damaged file on a thread of its own.
    ///
    /// The check of a large file takes longer than the watchdog's limit, and this thread must stay responsive
    /// meanwhile.
    private func checkFile() {
        current.startCheck()
        requests.resume()
        updateStatus()
        let (path, check) = (options.path, options.check)
        let isStarted = NamedThread.start(name: "history check") { [weak self, loop] in
            let verdict = Result { () throws(StoreFault) in try check(path) }
            loop.execute { self?.assumeIsolated { $0.didCheck(verdict) } }
        }
        if !isStarted { didCheck(.failure(StoreFault("\(path): no thread can be started to check it", .busy))) }
    }

    private func didCheck(_ verdict: Result<Void, StoreFault>) {
        current.endCheck()
        guard !current.isClosed else { return }
        switch verdict {
        case .success: replaceFile(nil)
        case .failure(let fault) where fault.kind == .damaged: replaceFile(fault)
        case .failure(let fault): recordFailure(fault)
        }
    }

    /// Opens the path again if another program has deleted, renamed or replaced the file in use.
    func reopenIfReplaced() {
        guard current.isReplaced else { return }
        recordFailure(StoreFault("\(options.path): the file was deleted or replaced while it was in use", .disk))
        current.abandonReplaced()
        replaceFile(nil)
    }

    /// Opens the file again; a file with `damage` is moved aside before.
    private func replaceFile(_ damage: StoreFault?) {
        do throws(StoreFault) {
            didOpen(try current.replace(damage))
        } catch {
            requests.resume()
            recordFailure(error)
            scheduleWork(.reopening)
        }
    }

    private func didOpen(_ file: HistoryFile) {
        file.journal?.lost.addUnstored(through: requests.lastUnstored)
        requests.resume()
        tail.removeAll()
        newest.set(max(file.head, newest.state))
        updateStatus()
        if file.journal?.isSaveDue == true { scheduleWork(.cursor) }
    }
}

// MARK: - Background work, on the same thread between callers' jobs

extension ReadingHistory {
    /// Starts maintenance after callers and subscribers learn of a commit.
    private func didCommit(_ file: HistoryFile) {
        schedule.didCommit()
        file.checkpointIfDue()
        updateStatus()
        scheduleStep()
        scheduleWork(.flushing)
    }

    /// Starts retention passes at intervals.
    private func startPass() {
        guard !current.isClosed else { return }
        loop.schedule(after: options.limits.passInterval) { [weak self] in
            self?.assumeIsolated { $0.startPass() }
        }
        reopenIfReplaced()
        if let file {
            maintain { () throws(StoreFault) in try file.startPass() }
            maintenance.setClockDoubt(file.clock.doubt, reporter)
            maintenance.setOutOfReach(file.connection.isOutOfReach, options.path, reporter)
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
        current.undelivered + requests.droppedCount
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
