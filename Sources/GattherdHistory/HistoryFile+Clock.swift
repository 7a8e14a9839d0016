import GattherdModel

/// A wall clock that is not set at the start: what is stored meanwhile gets its right times afterwards.
extension HistoryFile {
    /// Goes on with the stretch that another process began since the machine was started, or begins one.
    func beginStretch(_ reading: ClockReading) throws(StoreFault) {
        if watch.isSet, try clockTable.isEmpty() { return }
        let marks = try rowMarks()
        try connection.transaction { () throws(StoreFault) in
            try clockTable.forgetOthers()
            let offset = try clockTable.openOffset()
            let lasts = offset.map { abs($0 &- reading.offset) < ClockWatch.tolerance } ?? false
            if lasts && !watch.isSet { return }
            try clockTable.end(uptime: reading.uptime, through: marks)
            if watch.isSet {
                try clockTable.settle(offset: reading.offset)
            } else {
                try clockTable.begin(offset: reading.offset, after: marks)
            }
        }
        try restamping.reload()
    }

    /// Looks whether the wall clock has been set since it was looked at last, and notes it in the file.
    func lookAtClock() throws(StoreFault) {
        guard !watch.isSet else { return }
        let reading = clock.reading
        var next = watch
        let finding = next.look(reading)
        if finding != .nothing {
            let marks = try rowMarks()
            try connection.transaction { () throws(StoreFault) in
                try clockTable.end(uptime: reading.uptime, through: marks)
                if finding == .set {
                    try clockTable.settle(offset: reading.offset)
                } else {
                    try clockTable.begin(offset: reading.offset, after: marks)
                }
            }
            try restamping.reload()
        }
        watch = next
        if finding == .set { trusted = TrustedClock() }
    }

    /// The batch with the times that it should have, when some of it was stamped before the clock was set.
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

    /// Puts some of what was stored in a stretch right.
    func restamp() throws(StoreFault) {
        guard let done = try restamping.step() else { return }
        restamped.append(done)
        newest = try connection.optionalInteger("SELECT max(ts) FROM sample")
    }

    /// What was put right since this was asked last.
    func takeRestamped() -> [ClockShift] {
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
