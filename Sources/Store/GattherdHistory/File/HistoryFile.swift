import CSQLite
import GattherdLog
import GattherdModel

/// The history's database, open for writing; its functions run on one thread and may wait for the disk.
final class HistoryFile {
    let connection: SQLiteConnection
    let outbox: Journal?
    let state: StateTable
    let devices: DeviceTable
    let enrolled: EnrolledTable
    /// The newest committed reading.
    private(set) var head: Int64
    let sequence: SequenceSource
    /// The WAL size in pages at which it is copied into the file.
    let checkpointPages: Int
    var nextCheckpoint: Int
    /// The WAL size in pages at the last check.
    var lastWALPages = 0
    private let catalogue: SeriesCatalogue
    let rollups: Rollups
    private let meter: BacklogMeter
    let retention: Retention
    var trust: ClockTrust
    let clockMarks: ClockMarkTable
    /// The latest time of a sample; `nil` before the first.
    var newest: Int64?
    let clock: GatewayClock
    var watch: ClockWatch
    let clockTable: ClockTable
    let correction: TimestampCorrection
    /// Completed corrections that have not been reported.
    var restamped: [ClockShift] = []
    private let rows: RowInserts
    /// The file lock, declared last so that it is released after the connection is closed.
    let lock: FileLock

    /// State that is carried over when the file is reopened.
    struct CarriedOver {
        let lock: FileLock
        var sequence: SequenceSource?
        var tail = JournalTail()
        /// True if the file may be damaged, so that all of it is checked.
        var isSuspect = false
    }

    /// Opens the file, or creates it.
    ///
    /// - Parameters:
    ///   - path: The database; `-wal`, `-shm`, `-lock` and `-seq` are appended for the files beside it.
    ///   - keepsJournal: True if readings are kept for delivery until they are acknowledged.
    ///   - limits: The retention times and the size limit.
    ///   - carriedOver: The state of the file before it was reopened.
    ///   - clock: The gateway's clocks.
    ///   - log: The log for faults that were overcome.
    /// - Throws: ``StoreFault`` as ``ReadingHistory/open(_:log:)`` does, and when the file is damaged.
    init(
        path: String,
        keepsJournal: Bool,
        limits: HistoryLimits = HistoryLimits(),
        carriedOver: CarriedOver? = nil,
        clock: GatewayClock = GatewayClock(now: { Timestamp(microseconds: 0) }),
        log: Log
    ) throws(StoreFault) {
        if let carriedOver { lock = carriedOver.lock } else { lock = try FileLock(database: path) }
        connection = try Schema.open(path, isSuspect: carriedOver?.isSuspect ?? false)
        checkpointPages = limits.walPages
        nextCheckpoint = checkpointPages
        try connection.execute("PRAGMA journal_size_limit = \(checkpointPages * 5150)")
        state = try StateTable(connection)
        let stored = max(
            0,
            try connection.integer("SELECT max(seq) FROM head"),
            // An import may have given all series newer heads with numbers below zero.
            try state.value(of: .cursor),
            try connection.integer("SELECT max(last) FROM outbox")
        )
        let mark = max(stored, try state.value(of: .seq))
        sequence = carriedOver?.sequence ?? SequenceSource(path: path + "-seq", above: mark, log)
        try Self.raise(sequence, above: mark, path: path)
        meter = try BacklogMeter(connection)
        outbox =
            keepsJournal ? try Journal(connection, state, meter, carriedOver?.tail ?? JournalTail(), head: stored) : nil
        // The gap of a crash is over: the next numbers are consecutive.
        head = sequence.last
        catalogue = try SeriesCatalogue(connection)
        rollups = try Rollups(connection, state)
        let backlog = try Backlog(connection, state, outbox, meter, limits)
        retention = try Retention(limits, connection, state, rollups, backlog)
        newest = try connection.optionalInteger("SELECT max(ts) FROM sample")
        devices = try DeviceTable(connection)
        enrolled = try EnrolledTable(connection)
        rows = try RowInserts(connection)
        self.clock = clock
        let reading = clock.reading
        clockMarks = try ClockMarkTable(connection)
        trust = ClockTrust(
            reading,
            boot: clock.boot,
            saved: clockMarks.mark,
            earliest: clock.earliest.microseconds,
            newest: newest,
            isEmpty: try connection.integer(Self.countRows) == 0,
            hasImports: try state.value(of: .imported) != 0
        )
        watch = ClockWatch(reading, past: newest ?? .min, isDoubted: !trust.isTrusted)
        clockTable = try ClockTable(connection, boot: clock.boot)
        correction = try TimestampCorrection(connection, clockTable, state, rollups)
        try beginSpan(reading, lastUptime: clockMarks.mark?.uptime ?? 0)
    }

    private static let countRows = """
        SELECT EXISTS (SELECT 1 FROM sample) + EXISTS (SELECT 1 FROM hour) + EXISTS (SELECT 1 FROM event)
        """

    private static func raise(_ sequence: SequenceSource, above mark: Int64, path: String) throws(StoreFault) {
        sequence.raise(above: mark)
        guard sequence.last <= SequenceNumbers.highest else {
            throw StoreFault("\(path): its sequence numbers are used up; move the file aside")
        }
    }

    /// Commits the whole batch in one transaction, together with a cursor that has moved.
    ///
    /// The numbers of a failed batch are not reused: after an I/O error it is unknown if the commit reached the disk.
    func append(_ batch: ReadingBatch) throws(StoreFault) {
        try batch.validate(path: connection.path)
        try checkClock()
        let batch = corrected(batch)
        let mark = try sequence.prepare(batch.readings.count)
        let before = sequence.last
        try commit { () throws(StoreFault) in
            if let mark { try state.set(.seq, to: mark) }
            try state.raise(replayMarks: batch.replayMarks)
            for reject in batch.rejects { try rows.insert(reject) }
            try insert(batch)
        }
        if !batch.rejects.isEmpty { retention.didChangeLists() }
        if let mark { sequence.adopt(mark) }
        head = sequence.last
        outbox?.release(after: before, through: head)
        for reading in batch.readings { newest = max(newest ?? .min, reading.time.microseconds) }
    }

    /// Assigns numbers to the readings of a batch that cannot be stored, for delivery only.
    ///
    /// Only the reservation of the numbers needs the disk.
    static func unstored(
        _ batch: ReadingBatch,
        _ sequence: SequenceSource,
        path: String
    ) throws(StoreFault) -> [JournalReading] {
        try batch.validate(path: path)
        if let mark = try sequence.prepare(batch.readings.count) { sequence.adopt(mark) }
        return batch.readings.filter { !$0.samples.isEmpty }.map { reading in
            let seq = sequence.take()
            return JournalReading(unstored: reading, of: batch, seq: seq)
        }
    }

    /// Returns undelivered readings after `seq`, in order, at most `limit`.
    func readings(after seq: Int64, limit: Int) throws(StoreFault) -> [JournalReading] {
        try outbox?.readings(after: seq, limit: limit, correction.current) ?? []
    }

    func record(_ events: [LifecycleEvent]) throws(StoreFault) {
        try commit { () throws(StoreFault) in
            for event in events { try rows.insert(event) }
        }
        retention.didChangeLists()
    }

    /// Runs `body` in a transaction, which also saves the cursor if it has moved.
    func commit(tidily: Bool = false, _ body: () throws(StoreFault) -> Void) throws(StoreFault) {
        var progress: Journal.Progress?
        do throws(StoreFault) {
            try connection.transaction { () throws(StoreFault) in
                try body()
                if let outbox, tidily || outbox.isSaveDue { progress = try outbox.save(tidily: tidily) }
            }
        } catch {
            catalogue.forget()
            rollups.forgetLate()
            meter.forget()
            outbox?.forget()
            clockMarks.forget()
            throw error
        }
        meter.adopt()
        if let progress { outbox?.adopt(progress) }
        retention.didCommit()
    }

    /// Writes the exact mark and empties the WAL; the file must not be used afterwards.
    func close() throws(StoreFault) {
        trust.observe(clock.reading)
        try commit(tidily: true) { () throws(StoreFault) in
            try clockMarks.save(trust.mark)
            try state.set(.seq, to: sequence.last)
        }
        try sequence.file.write(sequence.last)
        connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
    }
}

extension HistoryFile {
    private func insert(_ batch: ReadingBatch) throws(StoreFault) {
        for reading in batch.readings where !reading.samples.isEmpty {
            let seq = sequence.take()
            let stream = try catalogue.position(of: reading.stream)
            try insert(reading, of: batch, seq: seq, stream: stream)
            try outbox?.append(reading, seq: seq, samples: batch.samples)
        }
        try outbox?.flush()
        try catalogue.writeHeads()
        try rollups.writeLate()
    }

    private func insert(_ reading: Reading, of batch: ReadingBatch, seq: Int64, stream: Int) throws(StoreFault) {
        let isLate = reading.time.microseconds < rollups.end
        var index: Int64 = 0
        for position in reading.samples {
            let metric = batch.samples[position].metric
            let value = batch.samples[position].value
            let key = try catalogue.touch(stream: stream, metric: metric, reading, seq: seq, index: index, value)
            try rows.insert(value, of: key.series, at: reading.time, seq: seq, index: index)
            if isLate { rollups.addLate(value, of: key.quantity, at: reading.time.microseconds) }
            index += 1
        }
    }
}

extension JournalReading {
    fileprivate init(unstored reading: Reading, of batch: ReadingBatch, seq: Int64) {
        let payload = JSONWriter.octets(reserving: 192) { writer in
            reading.writeJSON(seq: seq, samples: batch.samples, isStored: false, to: &writer)
        }
        self.init(seq: seq, device: reading.stream.device, stream: reading.stream.stream, payload: payload)
    }
}

extension ReadingBatch {
    /// A batch that contradicts itself is a bug, and must not become rows.
    fileprivate func validate(path: String) throws(StoreFault) {
        for reading in readings {
            let metrics = reading.stream.metrics.indices
            guard samples.indices.contains(reading.samples),
                samples[reading.samples].allSatisfy({ metrics.contains($0.metric) })
            else {
                let source = "\(reading.stream.device) \(reading.stream.stream)"
                throw StoreFault("\(path): a reading of \(source) has samples that are not its own")
            }
        }
    }
}
