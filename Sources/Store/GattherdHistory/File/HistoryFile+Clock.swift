import GattherdModel

/// Handling of a wall clock that is not set at the start; stored timestamps are corrected afterwards.
extension HistoryFile {
    /// Continues the clock span of an earlier process of this boot, or starts a new one.
    ///
    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - lastUptime: The last uptime in the file.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func beginSpan(_ reading: ClockReading, lastUptime: Int64) throws(StoreFault) {
        if watch.isSet, try clockTable.isEmpty() { return }
        let marks = try rowMarks()
        try connection.transaction { () throws(StoreFault) in
            try clockTable.closeOthers(uptime: lastUptime, through: marks)
            try resolveOthers(trust, reading)
            let offset = try clockTable.openOffset()
            let lasts = offset.map { abs($0 &- reading.offset) < ClockWatch.tolerance } ?? false
            if lasts && !watch.isSet { return }
            try clockTable.end(uptime: reading.uptime, through: marks)
            if watch.isSet {
                try clockTable.resolve(offset: reading.offset)
            } else {
                try clockTable.begin(offset: reading.offset, start(marks, reading))
            }
        }
        try correction.reload()
    }

    /// Checks if the wall clock was changed since the last check, and records a change in the file.
    func checkClock() throws(StoreFault) {
        try checkClock(clock.reading)
    }

    /// Checks the clocks.
    ///
    /// - Parameters:
    ///   - reading: The clocks as they are now.
    ///   - isCaughtUp: True if no row is too old by the claimed time, so that the time can be trusted.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func checkClock(_ reading: ClockReading, isCaughtUp: Bool = false) throws(StoreFault) {
        var (nextTrust, nextWatch) = (trust, watch)
        nextTrust.isFileEmpty = nextTrust.isFileEmpty && newest == nil
        if isCaughtUp { nextTrust.recordCaughtUp(reading) }
        nextTrust.observe(reading)
        let finding = nextWatch.observe(reading, isDoubted: !nextTrust.isTrusted)
        let isTrustedNow = nextTrust.isTrusted && !trust.isTrusted
        if finding != .nothing || isTrustedNow || clockMarks.isDue(nextTrust.mark) {
            try commit { () throws(StoreFault) in
                try clockMarks.save(nextTrust.mark)
                try note(finding, reading)
                if isTrustedNow { try trustClock(at: reading.wall) }
            }
            if isTrustedNow { try retention.readPurged() }
        }
        (trust, watch) = (nextTrust, nextWatch)
        guard finding != .nothing || isTrustedNow else { return }
        retention.cancelPass()
        try correction.reload()
    }

    /// Corrects timestamps of wrong clocks by a time that is trusted from now on.
    private func trustClock(at now: Int64) throws(StoreFault) {
        try clockTable.estimateOthers(now: now)
        try retention.limitPurged(to: now)
    }

    private func note(_ finding: ClockWatch.Finding, _ reading: ClockReading) throws(StoreFault) {
        guard finding != .nothing else { return }
        let marks = try rowMarks()
        let first = try clockTable.firstStart()
        try clockTable.end(uptime: reading.uptime, through: marks)
        switch finding {
        case .nothing: break
        case .stepped:
            try clockTable.begin(offset: reading.offset, start(marks, reading))
        case .claimed:
            try clockTable.resolve(offset: reading.offset)
            try clockTable.begin(offset: reading.offset, first ?? start(marks, reading))
        case .set:
            try clockTable.resolve(offset: reading.offset)
        }
    }

    /// Corrects the spans of earlier boots once the clock is trusted.
    private func resolveOthers(_ trust: ClockTrust, _ reading: ClockReading) throws(StoreFault) {
        if trust.isTrusted {
            try clockTable.estimateOthers(now: reading.wall)
        } else {
            try clockTable.forgetOthers(all: false)
        }
    }

    private func start(_ marks: RowMarks, _ reading: ClockReading) -> ClockSpanStart {
        ClockSpanStart(marks: marks, uptime: reading.uptime, base: trust.mark.base.map { $0 &- trust.mark.lag })
    }

    /// The clocks by which rows age.
    func agePlan(_ reading: ClockReading) throws(StoreFault) -> AgePlan {
        let spans = try clockTable.pending(uptime: reading.uptime &- trust.mark.lag)
        return AgePlan(
            proven: trust.proven(reading),
            latest: max(reading.wall, trust.mark.proven(reading) ?? .min),
            claimed: trust.claimed(reading),
            spans
        )
    }

    /// The doubt about the clock, for status output.
    var clockDoubt: ClockDoubt? { trust.doubt(clock.reading) }

    /// Returns the batch with corrected times if parts of it were stamped before the clock was set.
    func corrected(_ batch: ReadingBatch) -> ReadingBatch {
        let now = clock.reading
        guard watch.mayCorrect(now) else { return batch }
        var batch = batch
        for index in batch.readings.indices {
            let reading = batch.readings[index]
            let time = Timestamp(microseconds: watch.corrected(reading.time.microseconds, now))
            guard time != reading.time else { continue }
            batch.readings[index] = Reading(
                stream: reading.stream,
                time: time,
                source: reading.source,
                samples: reading.samples
            )
        }
        return batch
    }

    /// Corrects some of the rows of a clock span.
    func restamp() throws(StoreFault) {
        guard let done = try correction.step() else { return }
        restamped.append(done)
        try retention.readPurged()
        newest = try connection.optionalInteger("SELECT max(ts) FROM sample")
    }

    /// Returns the corrections completed since the last call.
    func takeCorrections() -> [ClockShift] {
        defer { restamped.removeAll() }
        return restamped
    }

    private func rowMarks() throws(StoreFault) -> RowMarks {
        RowMarks(
            seq: sequence.last,
            event: try connection.integer("SELECT max(id) FROM event"),
            reject: try connection.integer("SELECT max(id) FROM reject")
        )
    }
}
