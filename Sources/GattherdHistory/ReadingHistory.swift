public import GattherdLog
public import GattherdModel
import GattherdSync

/// Keeps readings, events and rejects in one SQLite file, and what is not delivered yet.
///
/// It has a thread of its own, for SQLite waits for the disk. A batch is one transaction that is durable
/// when ``append(_:)`` returns; ``heads()`` tells of it afterwards, so that nothing is published that history
/// does not have. Between commits it sums up, deletes what is too old, and gives space back.
public actor ReadingHistory {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }
    /// What the world should hear of; for one listener.
    public nonisolated let notices: AsyncStream<HistoryNotice>

    let loop = EventLoop(name: "history")
    let options: HistoryOptions
    let log: Log
    let tell: AsyncStream<HistoryNotice>.Continuation
    nonisolated let newest = StateBoard<Int64>(0)
    private nonisolated let board = StateBoard(HistoryStatus())
    /// Nothing before it is opened, and after it is closed.
    private(set) var file: HistoryFile?
    var upkeep = UpkeepState()

    private init(_ options: HistoryOptions, log: Log) {
        self.options = options
        self.log = log
        (notices, tell) = AsyncStream.makeStream(of: HistoryNotice.self, bufferingPolicy: .bufferingNewest(64))
    }

    deinit {
        tell.finish()
        loop.stop()
    }

    /// Opens the history, or begins one; there is one opener at a time, over all processes.
    ///
    /// - Parameters:
    ///   - options: Where, and what is kept for how long.
    ///   - log: Is told what was odd and has been survived.
    /// - Returns: The open history, to be closed with ``close()``.
    /// - Throws: ``StoreFault`` when the directory is missing, the file is another program's or a newer
    ///   gattherd's, or another daemon has it.
    public static func open(_ options: HistoryOptions, log: Log) async throws(StoreFault) -> ReadingHistory {
        let history = ReadingHistory(options, log: log)
        try await history.open()
        return history
    }

    /// The `seq` of the newest committed reading.
    public nonisolated var newestSeq: Int64 { newest.state }

    /// Where history stands; from any thread.
    public nonisolated var status: HistoryStatus { board.state }

    /// Writes what is left to write and closes the file; later calls throw.
    ///
    /// - Throws: ``StoreFault`` when the end could not be written; the file is closed and consistent all the same.
    public func close() throws(StoreFault) {
        guard let file else { return }
        self.file = nil
        tell.finish()
        try file.close()
    }

    private func open() throws(StoreFault) {
        let lock = try FileLock(database: options.path)
        let file = try openFile(lock)
        newest.set(file.head)
        self.file = file
        report(file)
        if file.outbox?.isSaveDue == true { scheduleCursor() }
        beginPass()
    }

    /// What is damaged is moved aside: better a new history than none.
    private func openFile(_ lock: FileLock) throws(StoreFault) -> HistoryFile {
        do throws(StoreFault) {
            return try HistoryFile(options, lock, log)
        } catch {
            guard error.kind == .damaged else { throw error }
            let place = try DamagedFile(path: options.path).moveAside(at: options.now())
            log(
                .error,
                "the history is damaged: it was moved aside, and a new one is begun",
                [LogField("history.error", error.detail), LogField("path", place)]
            )
            tell.yield(.movedAside(to: place, error: error.detail))
            return try HistoryFile(options, lock, log)
        }
    }

    private func opened() throws(StoreFault) -> HistoryFile {
        guard let file else { throw StoreFault("\(options.path): the history is closed") }
        return file
    }

    func report(_ file: HistoryFile) {
        board.update { status in
            status.size = file.size
            status.undelivered = file.undelivered
        }
    }
}

extension HistoryFile {
    fileprivate convenience init(_ options: HistoryOptions, _ lock: FileLock, _ log: Log) throws(StoreFault) {
        try self.init(path: options.path, keepsLog: options.keepsLog, limits: options.limits, lock: lock, log: log)
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
