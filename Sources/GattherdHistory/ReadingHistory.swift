public import GattherdLog
public import GattherdModel
import GattherdSync

/// Keeps readings, events and rejects in one SQLite file, and what is not delivered yet.
///
/// It has a thread of its own, for SQLite waits for the disk. A batch is one transaction that is durable
/// when ``append(_:)`` returns; ``heads()`` tells of it afterwards, so that nothing is published that history
/// does not have.
public actor ReadingHistory {
    /// How long an acknowledgement waits for a commit that takes it along.
    private static let cursorDelay = Duration.milliseconds(250)
    /// How long nothing must happen before the write-ahead log's space is given back.
    private static let idleDelay = Duration.seconds(5)

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    private let loop = EventLoop(name: "history")
    private let newest = StateBoard<Int64>(0)
    private let path: String
    private let log: Log
    /// Nothing before it is opened, and after it is closed.
    private var file: HistoryFile?
    private var commits = 0
    private var isCursorTimerSet = false
    private var isIdleTimerSet = false
    private var isUpkeepScheduled = false
    private var isUntidy = false

    private init(path: String, log: Log) {
        self.path = path
        self.log = log
    }

    deinit {
        loop.stop()
    }

    /// Opens the history at `path`, or begins one; there is one opener at a time, over all processes.
    ///
    /// - Parameters:
    ///   - path: The database file in a directory that exists; other files are kept beside it.
    ///   - keepsLog: Readings are kept for ``ReadingLog`` until they are acknowledged. Those that come in
    ///     while this is false are never delivered.
    ///   - log: Is told what was odd and has been survived.
    /// - Returns: The open history, to be closed with ``close()``.
    /// - Throws: ``StoreFault`` when the directory is missing, the file is damaged, another program's or a
    ///   newer gattherd's, or another daemon has it.
    public static func open(path: String, keepsLog: Bool, log: Log) async throws(StoreFault) -> ReadingHistory {
        let history = ReadingHistory(path: path, log: log)
        try await history.open(keepsLog: keepsLog)
        return history
    }

    /// The `seq` of the newest committed reading.
    public nonisolated var newestSeq: Int64 { newest.state }

    /// Writes what is left to write and closes the file; later calls throw.
    ///
    /// - Throws: ``StoreFault`` when the end could not be written; the file is closed and consistent all the same.
    public func close() throws(StoreFault) {
        guard let file else { return }
        self.file = nil
        try file.close()
    }

    private func open(keepsLog: Bool) throws(StoreFault) {
        let file = try HistoryFile(path: path, keepsLog: keepsLog, log: log)
        newest.set(file.head)
        self.file = file
        if file.outbox?.isSaveDue == true { scheduleCursor() }
        scheduleUpkeep()
    }

    private func opened() throws(StoreFault) -> HistoryFile {
        guard let file else { throw StoreFault("\(path): the history is closed", isTransient: false) }
        return file
    }
}

extension ReadingHistory: ReadingStore {
    /// Commits the whole batch in one transaction; on a throw nothing of it is stored.
    ///
    /// A reading without a sample says nothing: it gets no `seq` and is not delivered.
    public func append(_ batch: ReadingBatch) throws(StoreFault) {
        guard !batch.isEmpty else { return }
        let file = try opened()
        try file.append(batch)
        newest.set(file.head)
        didCommit(file)
    }

    public func record(_ events: [LifecycleEvent]) throws(StoreFault) {
        guard !events.isEmpty else { return }
        let file = try opened()
        try file.record(events)
        didCommit(file)
    }

    /// Adds a device, or changes what is known about it: a commit each, so not for every advertisement.
    public func note(_ device: DeviceRecord, seenAt time: Timestamp) throws(StoreFault) {
        let file = try opened()
        try file.commit { () throws(StoreFault) in try file.devices.note(device, seenAt: time) }
        didCommit(file)
    }

    public func setHeld(_ device: String, _ isHeld: Bool) throws(StoreFault) {
        let file = try opened()
        try file.commit { () throws(StoreFault) in try file.devices.setHeld(device, isHeld) }
        didCommit(file)
    }

    public func heldDevices() throws(StoreFault) -> Set<String> {
        try opened().devices.held()
    }
}

extension ReadingHistory: ReadingLog {
    public nonisolated func heads() -> AsyncStream<Int64> {
        newest.watch()
    }

    public func readings(after seq: Int64, limit: Int) throws(StoreFault) -> [LoggedReading] {
        try opened().outbox?.readings(after: seq, limit: limit) ?? []
    }

    public func acknowledged() throws(StoreFault) -> Int64 {
        let file = try opened()
        return file.outbox?.cursor ?? file.head
    }

    /// Moves the cursor, which the next commit takes along, or one of its own a moment later.
    ///
    /// After a crash the last acknowledgements may be forgotten: their readings are delivered twice.
    public func acknowledge(through seq: Int64) throws(StoreFault) {
        let file = try opened()
        file.outbox?.acknowledge(through: min(seq, file.head))
        if file.outbox?.isSaveDue == true { scheduleCursor() }
    }
}

extension ReadingHistory {
    /// The caller has its commit, subscribers know of it: now there is time for the rest.
    private func didCommit(_ file: HistoryFile) {
        commits += 1
        file.checkpointIfDue()
        scheduleUpkeep()
        scheduleSettling()
    }

    /// Goes on with upkeep, one step between others' jobs, until nothing is left.
    private func scheduleUpkeep() {
        guard !isUpkeepScheduled, file?.isUpkeepDue == true else { return }
        isUpkeepScheduled = true
        loop.execute { [weak self] in
            self?.assumeIsolated { $0.upkeep() }
        }
    }

    private func upkeep() {
        isUpkeepScheduled = false
        guard let file else { return }
        if tidyUp({ () throws(StoreFault) in try file.upkeep() }) { scheduleUpkeep() }
    }

    private func scheduleCursor() {
        guard !isCursorTimerSet else { return }
        isCursorTimerSet = true
        loop.schedule(after: Self.cursorDelay) { [weak self] in
            self?.assumeIsolated { $0.saveCursor() }
        }
    }

    private func saveCursor() {
        isCursorTimerSet = false
        guard let file else { return }
        let isSaved = tidyUp { () throws(StoreFault) in try file.saveCursor() }
        if isSaved, file.outbox?.isSaveDue == true { scheduleCursor() }
        scheduleSettling()
    }

    private func scheduleSettling() {
        guard !isIdleTimerSet else { return }
        isIdleTimerSet = true
        let before = commits
        loop.schedule(after: Self.idleDelay) { [weak self] in
            self?.assumeIsolated { $0.settle(unlessAfter: before) }
        }
    }

    /// Gives space back, or waits longer if something was committed meanwhile.
    private func settle(unlessAfter before: Int) {
        isIdleTimerSet = false
        guard let file else { return }
        guard commits == before else { return scheduleSettling() }
        tidyUp { () throws(StoreFault) in try file.settle() }
    }

    /// Does what nobody waits for; says once that it fails, until it succeeds again.
    @discardableResult
    private func tidyUp(_ body: () throws(StoreFault) -> Void) -> Bool {
        do throws(StoreFault) {
            try body()
            isUntidy = false
        } catch {
            if !isUntidy { log(.warning, "history could not tidy up", [LogField("error", error.detail)]) }
            isUntidy = true
        }
        return !isUntidy
    }
}
