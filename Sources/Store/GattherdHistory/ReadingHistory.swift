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
    let options: HistoryOptions
    let log: Log
    let tell: AsyncStream<HistoryNotice>.Continuation
    /// -1 until a file has been opened.
    nonisolated let newest = LatestValue<Int64>(-1)
    nonisolated let tail = JournalTail()
    private nonisolated let board = LatestValue(HistoryStatus())
    /// The open file; `nil` before opening, after closing and while the file is unusable.
    var file: HistoryFile?
    var carriedOver: HistoryFile.CarriedOver?
    private(set) var isClosed = false
    var trouble: FileFailure?
    var damages = DamageCount()
    var unstored = UnstoredReadings()
    /// True if an earlier file was missing or empty when it was opened.
    var isNewAfterLoss = false
    /// True if a damaged file was moved aside and no new one is open yet; the missing file is no loss to report then.
    var isMovedAside = false
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
        try await history.begin()
        return history
    }

    /// The `seq` of the newest committed reading; 0 when there is none.
    public nonisolated var newestSeq: Int64 { max(0, newest.state) }

    /// The current status; any thread may read it.
    public nonisolated var status: HistoryStatus { board.state }

    /// Writes pending state and closes the file; later calls throw.
    ///
    /// - Throws: ``StoreFault`` if the pending state could not be written; the file is closed and consistent anyway.
    public func close() throws(StoreFault) {
        isClosed = true
        tell.finish()
        if !unstored.isEmpty {
            log(
                .error,
                "closed with readings that were neither stored nor delivered",
                [LogField("readings", unstored.left)]
            )
        }
        guard let file else { return }
        self.file = nil
        carriedOver = nil
        try file.close()
    }

    func opened() throws(StoreFault) -> HistoryFile {
        if let file { return file }
        guard !isClosed, let trouble else { throw StoreFault("\(options.path): the history is closed") }
        throw trouble.fault
    }

    func report() {
        board.update { status in
            if let file { status.size = file.size }
            status.undelivered = undelivered
            status.unstored = unstored.count
            status.fault = trouble?.fault
            status.clockDoubt = upkeep.clockDoubt
            status.isNewAfterLoss = isNewAfterLoss
        }
    }
}

extension ReadingHistory {
    /// The enrolled devices, by name.
    public func enrolledDevices() throws(StoreFault) -> [EnrolledDevice] {
        try opened().enrolled.devices()
    }

    /// Replaces the stored list of enrolled devices.
    public func setEnrolled(_ devices: [EnrolledDevice]) throws(StoreFault) {
        let file = try opened()
        try file.commit { () throws(StoreFault) in try file.enrolled.replace(with: devices) }
        didCommit(file)
    }
}

extension ReadingHistory {
    /// Removes the events, the rejects and the entries of devices that never had a reading.
    public func removeTraces(of devices: [String]) throws(StoreFault) {
        guard !devices.isEmpty else { return }
        let file = try opened()
        try file.commit { () throws(StoreFault) in
            for device in devices { try file.devices.removeTraces(of: device) }
        }
        file.retention.didChangeLists()
        didCommit(file)
    }
}

extension ReadingHistory: ReadingStore {
    /// Commits the whole batch in one transaction; on a throw nothing of it is stored.
    ///
    /// A reading without a sample gets no `seq` and is not delivered.
    public func append(_ batch: ReadingBatch) throws(StoreFault) {
        guard !batch.isEmpty else { return }
        try store(batch)
    }

    public func replayMarks() throws(StoreFault) -> [String: UInt32] {
        try opened().state.replayMarks()
    }

    public func record(_ events: [LifecycleEvent]) throws(StoreFault) {
        guard !events.isEmpty else { return }
        let file = try opened()
        try file.record(events)
        didCommit(file)
    }

    /// Adds or updates a device; each call is a commit, so do not call it for every advertisement.
    public func record(_ device: DeviceRecord, seenAt time: Timestamp) throws(StoreFault) {
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
