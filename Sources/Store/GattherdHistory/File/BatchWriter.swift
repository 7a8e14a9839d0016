import GattherdModel

/// Writes the rows of batches: samples with their newest positions, late summaries, the journal, and rejects.
final class BatchWriter {
    private let path: String
    private let sequence: SequenceSource
    private let state: StateTable
    private let catalogue: SeriesCatalogue
    private let rows: RowInserts
    private let rollups: Rollups
    private let journal: Journal?

    init(
        _ connection: SQLiteConnection,
        _ sequence: SequenceSource,
        _ state: StateTable,
        _ rollups: Rollups,
        _ journal: Journal?
    ) throws(StoreFault) {
        path = connection.path
        self.sequence = sequence
        self.state = state
        self.rollups = rollups
        self.journal = journal
        catalogue = try SeriesCatalogue(connection)
        rows = try RowInserts(connection)
    }

    /// Writes a valid batch, which arrived at `now`, and assigns its numbers; only in a transaction.
    func write(_ batch: ReadingBatch, at now: Int64) throws(StoreFault) {
        for reject in batch.rejects {
            let seq = sequence.next()
            try rows.insert(reject, seq: seq)
            journal?.append(.reject(reject, seq: seq))
        }
        for reading in batch.readings where !reading.samples.isEmpty {
            let seq = sequence.next()
            let stream = try catalogue.position(of: reading.stream)
            try write(reading, of: batch, seq: seq, stream: stream)
            try journal?.append(batch.journalReading(reading, seq: seq), at: now)
        }
        try journal?.flush()
        try catalogue.writeHeads()
        if let past = catalogue.removeNewestPast() { try state.set(.newestPast, to: past) }
        try rollups.writeLate()
    }

    private func write(_ reading: Reading, of batch: ReadingBatch, seq: Int64, stream: Int) throws(StoreFault) {
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

    /// Writes events; only in a transaction.
    func write(_ events: [LifecycleEvent]) throws(StoreFault) {
        for event in events {
            let seq = sequence.next()
            try rows.insert(event, seq: seq)
            journal?.append(.event(event, seq: seq))
        }
    }

    /// Discards the cached state of rows whose times were corrected.
    func didCorrectTimes() {
        catalogue.removeAll()
    }

    /// Discards references to rows that were rolled back.
    func didRollBack() {
        catalogue.removeAll()
        rollups.discardLate()
    }
}

extension ReadingBatch {
    /// Throws if the batch contradicts itself, which is a bug and must not become rows.
    func validate(path: String) throws(StoreFault) {
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

    /// Assigns numbers to the readings of a batch that cannot be stored, for delivery only.
    ///
    /// Only the reservation of the numbers needs the disk.
    func numberedUnstored(by sequence: SequenceSource, path: String) throws(StoreFault) -> [JournalReading] {
        try validate(path: path)
        if let mark = try sequence.prepare(readings.count) { sequence.didStore(mark) }
        return readings.filter { !$0.samples.isEmpty }.map { reading in
            journalReading(reading, seq: sequence.next(), isStored: false)
        }
    }

    fileprivate func journalReading(_ reading: Reading, seq: Int64, isStored: Bool = true) -> JournalReading {
        JournalReading(
            seq: seq,
            stream: reading.stream,
            time: reading.time,
            source: reading.source,
            isStored: isStored,
            samples: samples[reading.samples]
        )
    }

    /// The maximum count of journal numbers that the batch uses.
    var numberCount: Int { readings.count + rejects.count }
}
