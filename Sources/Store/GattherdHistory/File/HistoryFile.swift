import GattherdLog
import GattherdModel

/// The history's database, open for writing; its functions run on one thread and may wait for the disk.
final class HistoryFile {
    let connection: SQLiteConnection
    /// The journal of undelivered readings; `nil` while delivery is off.
    let journal: Journal?
    let clock: ClockMonitor
    let rollups: Rollups
    /// The `seq` of the newest committed entry.
    private(set) var head: Int64
    let sequence: SequenceSource
    private let state: StateTable
    private let devices: DeviceTable
    private let enrolled: EnrolledTable
    private let records: RecordCursorTable
    private let meter: BacklogMeter
    private let retention: Retention
    private let writer: BatchWriter
    private let epochs: EpochTable
    private let contacts: ContactTable
    /// True if the next step of background work may rebuild extents although other work is due.
    private var isScanNext = true
    private var checkpointer: WALCheckpointer
    private var gaps: [Journal.Gap] = []
    /// The latest time of a sample; `nil` before the first.
    private var newest: Int64?
    /// The file lock, declared last so that it is released after the connection is closed.
    let lock: FileLock

    /// State that is carried over when the file is reopened.
    struct CarriedOver {
        let lock: FileLock
        var sequence: SequenceSource?
        var tail: JournalTail?
        /// The epoch of the file that was open before.
        var epoch: String?
    }

    /// Opens the file, or creates it.
    ///
    /// - Parameters:
    ///   - path: The database; `-wal`, `-shm`, `-lock` and `-seq` are appended for the files beside it.
    ///   - consumers: The consumers for which readings are kept until they are acknowledged.
    ///   - limits: The retention times and the size limit.
    ///   - carriedOver: The state of the file before it was reopened.
    ///   - clock: The gateway's clocks.
    ///   - log: The log for faults that were overcome.
    /// - Throws: ``StoreFault`` as ``ReadingHistory/open(_:log:)`` does, and when the file is damaged.
    init(
        path: String,
        consumers: [JournalConsumerOptions],
        limits: HistoryLimits = HistoryLimits(),
        carriedOver: CarriedOver? = nil,
        clock: GatewayClock = GatewayClock(now: { Timestamp(microseconds: 0) }),
        log: Log
    ) throws(StoreFault) {
        if let carriedOver { lock = carriedOver.lock } else { lock = try FileLock(database: path) }
        connection = try HistoryDatabase.open(path)
        checkpointer = try WALCheckpointer(connection, pages: limits.walPages)
        state = try StateTable(connection)
        let stored = try Self.newestReading(connection, state)
        sequence = try .continuing(
            carriedOver?.sequence,
            path: path,
            above: max(stored, try state.value(of: .seq)),
            log
        )
        epochs = try EpochTable(connection, state)
        let formerLink = try state.optionalValue(of: .link)
        try epochs.link(to: sequence, isEmpty: stored == 0, previous: carriedOver?.epoch)
        contacts = try ContactTable(connection)
        sequence.limits = try contacts.limits(before: sequence.last, isNewRun: carriedOver?.sequence == nil)
        if stored == 0, formerLink == nil { contacts.recordCreation() }
        meter = try BacklogMeter(connection)
        let cursors = try CursorTable(connection)
        let tail = carriedOver?.tail ?? JournalTail(consumers: consumers.map(\.name))
        // Numbers of the file before belong to entries that may still be in memory.
        let next = carriedOver?.sequence == nil ? sequence.last : stored
        journal =
            consumers.isEmpty
            ? nil : try Journal(consumers, connection, cursors, state, meter, tail, head: stored, next: next)
        journal?.addUnused(sequence.unused, above: stored)
        // The gap of a crash is over: the next numbers are consecutive.
        head = sequence.last
        rollups = try Rollups(connection, state)
        let backlog = try Backlog(connection, state, saved: cursors.lowest(), journal, meter, limits)
        retention = try Retention(limits, connection, state, rollups, backlog)
        newest = try connection.optionalInteger("SELECT max(ts) FROM sample")
        devices = try DeviceTable(connection)
        enrolled = try EnrolledTable(connection)
        records = try RecordCursorTable(connection)
        writer = try BatchWriter(connection, sequence, state, rollups, journal)
        self.clock = try ClockMonitor(clock, connection, state, rollups, sequence, newest: newest)
        if self.clock.currentShift != nil { journal?.discardTail() }
        // A run that was killed may have left a WAL, and the start has more time than the watchdog grants later.
        checkpointer.copy()
    }

    // MARK: - Readings and events

    /// Commits the whole batch in one transaction, together with a cursor that has moved.
    ///
    /// The numbers of a failed batch are not reused: after an I/O error it is unknown if the commit reached the disk.
    func append(_ batch: ReadingBatch) throws(StoreFault) {
        try batch.validate(path: connection.path)
        try checkClock(clock.reading)
        let batch = clock.corrected(batch)
        try commit(numbers: batch.numberCount) { () throws(StoreFault) in
            try state.raise(replayMarks: batch.replayMarks)
            try records.set(batch.cursors.values)
            try clock.recordPast(in: batch)
            try writer.write(batch, at: clock.reading.wall)
        }
        if !batch.rejects.isEmpty { retention.didChangeLists() }
        for reading in batch.readings { newest = max(newest ?? .min, reading.time.microseconds) }
    }

    /// Returns entries after `seq` that a consumer has not acknowledged, in order, at most `limit`.
    func entries(after seq: Int64, limit: Int, for consumer: String) throws(StoreFault) -> JournalBatch {
        // Numbers above the head belong to batches that could not be committed.
        guard let journal else { return JournalBatch([], through: sequence.last) }
        return try journal.entries(after: seq, limit: limit, for: consumer, head: sequence.last, clock.pendingShifts)
    }

    /// True while readings after `seq` are being collected, for a consumer that was not configured for some time.
    func isRebuilding(after seq: Int64) -> Bool { journal?.isRebuilding(after: seq) ?? false }

    // MARK: - Going back

    /// The current epoch.
    func epoch() throws(StoreFault) -> JournalEpoch { try epochs.current() }

    /// Moves the cursor of a consumer to `seq`; its entries are complete when ``isScanDue`` is false.
    ///
    /// - Throws: ``StoreFault`` if the file cannot be written; `busy` if it never had the number, so that a new epoch
    ///   was started, once while the file is open.
    func rewind(_ consumer: String, to seq: Int64) throws(StoreFault) {
        guard let journal else { throw StoreFault("\(connection.path): delivery is off") }
        let highest = sequence.highest(of: consumer, acknowledged: journal.acknowledged(by: consumer) ?? 0)
        guard seq <= highest else {
            let fault = "\(connection.path): '\(consumer)' has entries up to \(seq), which this file never had"
            // Another epoch would not help: the receiver is at fault, and would cause one after the other.
            guard !epochs.hasStartedAnew else { throw StoreFault("\(fault): correct the receiver's cursor", .busy) }
            let common = sequence.common(with: consumer)
            try commit { () throws(StoreFault) in try epochs.startAnew(common: common) }
            epochs.didStartAnew()
            throw StoreFault("\(fault): a new epoch", .busy)
        }
        let places = journal.places
        do throws(StoreFault) {
            try commit { () throws(StoreFault) in
                try journal.rewind(consumer, to: seq, head: head)
                try contacts.recordContact(of: consumer)
            }
        } catch {
            journal.restore(places)
            throw error
        }
        sequence.recordContact(of: consumer)
    }

    func record(_ events: [LifecycleEvent]) throws(StoreFault) {
        try commit(numbers: events.count) { () throws(StoreFault) in try writer.write(events) }
        retention.didChangeLists()
    }

    func replayMarks() throws(StoreFault) -> [String: UInt32] { try state.replayMarks() }

    func recordCursors() throws(StoreFault) -> [RecordCursor] { try records.cursors() }

    // MARK: - Devices

    func record(_ device: DeviceRecord, seenAt time: Timestamp) throws(StoreFault) {
        try commit { () throws(StoreFault) in try devices.upsert(device, seenAt: time) }
    }

    /// Removes the events, the rejects and the entries of devices that never had a reading.
    func removeTraces(of names: [String]) throws(StoreFault) {
        try commit { () throws(StoreFault) in
            for name in names { try devices.removeTraces(of: name) }
        }
        retention.didChangeLists()
    }

    func setHeld(_ device: String, _ isHeld: Bool) throws(StoreFault) {
        try commit { () throws(StoreFault) in try devices.setHeld(device, isHeld) }
    }

    func heldDevices() throws(StoreFault) -> Set<String> { try devices.held() }

    func setEnrolled(_ list: [EnrolledDevice]) throws(StoreFault) {
        try commit { () throws(StoreFault) in try enrolled.replace(with: list) }
    }

    func enrolledDevices() throws(StoreFault) -> [EnrolledDevice] { try enrolled.devices() }

    // MARK: - Transactions

    /// Runs `body`, which assigns at most `count` numbers, in a transaction, and hands its entries to the consumers.
    private func commit(numbers count: Int, _ body: () throws(StoreFault) -> Void) throws(StoreFault) {
        let mark = try sequence.prepare(count)
        let before = sequence.last
        do throws(StoreFault) {
            try commit { () throws(StoreFault) in
                if let mark { try state.set(.seq, to: mark) }
                try body()
            }
        } catch {
            sequence.addUnused(after: before)
            journal?.addUnused(sequence.unused, above: before)
            throw error
        }
        if let mark { sequence.didStore(mark) }
        head = sequence.last
        journal?.release(after: before, through: head)
    }

    /// Runs `body` in a transaction, which also saves the cursors that have moved.
    func commit(deletesAll: Bool = false, _ body: () throws(StoreFault) -> Void) throws(StoreFault) {
        var progress: Journal.Progress?
        do throws(StoreFault) {
            try connection.transaction { () throws(StoreFault) in
                try body()
                if let journal, deletesAll || journal.isSaveDue { progress = try journal.save(deletesAll: deletesAll) }
            }
        } catch {
            writer.didRollBack()
            meter.didRollBack()
            journal?.didRollBack()
            clock.didRollBack()
            makeRoom(after: error)
            throw error
        }
        meter.didCommit()
        if let progress { journal?.didSave(progress) }
        journal?.didCommit()
        retention.didCommit()
    }

    /// Copies the WAL after a commit for which the disk had no room.
    ///
    /// A reader may have let the WAL fill the disk. When it has ended, the next commits need no other space.
    private func makeRoom(after fault: StoreFault) {
        if fault.kind == .full { checkpointer.copy() }
    }

    /// Commits a cursor that no other commit has saved.
    func saveCursor() throws(StoreFault) {
        guard let journal, journal.isSaveDue else { return }
        try commit { () throws(StoreFault) in }
    }

    /// Writes the exact mark and empties the WAL unless it is large; the file must not be used afterwards.
    func close() throws(StoreFault) {
        let link = EpochTable.newLink()
        try commit(deletesAll: true) { () throws(StoreFault) in
            try clock.saveLast()
            try state.set(.seq, to: sequence.last)
            try epochs.setLink(link, before: sequence.file.link())
        }
        try sequence.file.write(sequence.last, link: link)
        checkpointer.close()
    }

    // MARK: - Background work

    /// The database's size in bytes, without the WAL.
    var size: Int64 { retention.size }

    /// The number of readings dropped before delivery since the file was opened.
    var undelivered: Int { retention.undelivered }

    /// Copies the WAL into the file if it has grown enough.
    func checkpointIfDue() {
        checkpointer.runIfDue()
    }

    /// Copies and truncates the WAL, if no reader needs it.
    func truncateWAL() {
        checkpointer.truncate()
    }

    /// Writes pending state that no commit has saved, and truncates the WAL unless another thread must copy it first.
    func flushPendingState() throws(StoreFault) {
        if let journal, !journal.isFullySaved { try commit(deletesAll: true) { () throws(StoreFault) in } }
        checkpointer.flush()
    }

    /// Checks the clocks, and starts a retention pass.
    func startPass() throws(StoreFault) {
        try startPass(clock.reading)
    }

    func startPass(_ reading: ClockReading) throws(StoreFault) {
        try checkClock(reading)
        if retention.isCaughtUp { try checkClock(reading, isCaughtUp: true) }
        if clock.currentShift == nil, let newest { try rollups.lowerMarks(to: newest) }
        retention.startPass(try clock.agePlan(reading), uptime: reading.uptime)
    }

    /// Checks if the wall clock was changed since the last check, and records a change in the file.
    private func checkClock(_ reading: ClockReading, isCaughtUp: Bool = false) throws(StoreFault) {
        let change = clock.change(reading, hasSamples: newest != nil, isCaughtUp: isCaughtUp)
        if change.isSaveDue {
            try commit { () throws(StoreFault) in
                try clock.save(change)
                // Rows of a wrong clock that was trusted may have been deleted in the future.
                if change.isTrustedNow { try retention.limitPurged(to: reading.wall) }
            }
            if change.isTrustedNow { try retention.readPurged() }
        }
        if change.concernsRows { retention.cancelPass() }
        try clock.adopt(change)
        if change.concernsRows, clock.currentShift != nil { journal?.discardTail() }
    }

    /// True if there are rows to correct, to summarise or to delete.
    var isUpkeepDue: Bool {
        clock.currentShift != nil || isSkipDue || isScanDue || isSummaryDue || retention.isDue
    }

    /// True if extents are being rebuilt for a consumer that goes back.
    var isScanDue: Bool { journal?.isScanDue ?? false }

    private var isSkipDue: Bool { journal?.isSkipDue(head: head) ?? false }

    /// The gaps in the consumers' entries since the last call.
    func drainGaps() -> [Journal.Gap] {
        defer { gaps.removeAll() }
        return gaps
    }

    private var isSummaryDue: Bool { newest.map { rollups.isBehind($0) } ?? false }

    /// Runs one short step of background work.
    func upkeep() throws(StoreFault) {
        do throws(StoreFault) {
            try runStep()
        } catch {
            makeRoom(after: error)
            throw error
        }
        checkpointIfDue()
    }

    private func runStep() throws(StoreFault) {
        if clock.currentShift != nil {
            try correctTimestamps()
        } else if let journal, isSkipDue {
            gaps += try journal.skip(head: head)
        } else if isScanDue, isScanNext || !(isSummaryDue || retention.isDue) {
            isScanNext = false
            try rebuildExtents()
        } else if let newest, isSummaryDue {
            isScanNext = true
            try rollups.step(newest)
        } else {
            isScanNext = true
            try retention.step(newest ?? .min)
        }
    }

    private func rebuildExtents() throws(StoreFault) {
        guard let journal else { return }
        try commit { () throws(StoreFault) in try journal.stepScan() }
        try journal.readStart()
    }

    private func correctTimestamps() throws(StoreFault) {
        // Readings after the head could not be stored, so the tail does not have them.
        let before = sequence.last
        guard let entry = try clock.correctRows() else { return }
        writer.didCorrectTimes()
        journal?.append(entry)
        journal?.release(after: before, through: sequence.last)
        head = sequence.last
        try retention.readPurged()
        newest = try connection.optionalInteger("SELECT max(ts) FROM sample")
    }
}
