import GattherdModel

/// Watches a wall clock that may be wrong: records its changes in the file and corrects stored timestamps.
///
/// Also decides by which time rows age. A change is saved in a transaction first and adopted after the commit.
final class ClockMonitor {
    /// The state after the clocks were read; it is saved if that is due, and then adopted.
    struct Change {
        fileprivate let reading: ClockReading
        fileprivate let trust: ClockTrust
        fileprivate let watch: ClockWatch
        fileprivate let finding: ClockWatch.Finding
        /// True if the wall clock is trusted from now on.
        let isTrustedNow: Bool
        /// True if the change must be in the file before it is adopted.
        fileprivate(set) var isSaveDue = false

        /// True if rows may age by another clock from now on, or have wrong timestamps.
        var concernsRows: Bool { finding != .nothing || isTrustedNow }
    }

    private let connection: SQLiteConnection
    private let clock: GatewayClock
    private let sequence: SequenceSource
    private let marks: ClockMarkTable
    private let spans: ClockTable
    private let correction: TimestampCorrection
    private var trust: ClockTrust
    private var watch: ClockWatch
    /// Completed corrections that have not been reported.
    private var completed: [ClockCorrection] = []

    /// Continues the clock span of an earlier process of this boot, or starts a new one.
    ///
    /// - Parameters:
    ///   - clock: The gateway's clocks.
    ///   - connection: The database.
    ///   - state: Its named numbers.
    ///   - rollups: The summaries, which follow corrected samples.
    ///   - sequence: The numbers of readings.
    ///   - newest: The latest time of a sample; `nil` without one.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    init(
        _ clock: GatewayClock,
        _ connection: SQLiteConnection,
        _ state: StateTable,
        _ rollups: Rollups,
        _ sequence: SequenceSource,
        newest: Int64?
    ) throws(StoreFault) {
        self.connection = connection
        self.clock = clock
        self.sequence = sequence
        let reading = clock.reading
        marks = try ClockMarkTable(connection)
        trust = ClockTrust(
            reading,
            boot: clock.boot,
            saved: marks.mark,
            earliest: clock.earliest.microseconds,
            newest: newest,
            isEmpty: try connection.integer(Self.countRows) == 0,
            hasImports: try state.value(of: .imported) != 0
        )
        watch = ClockWatch(reading, past: newest ?? .min, isDoubted: !trust.isTrusted)
        spans = try ClockTable(connection, boot: clock.boot)
        correction = try TimestampCorrection(connection, spans, state, rollups, sequence)
        try beginSpan(reading, lastUptime: marks.mark?.uptime ?? 0)
    }

    private static let countRows = """
        SELECT EXISTS (SELECT 1 FROM sample) + EXISTS (SELECT 1 FROM hour) + EXISTS (SELECT 1 FROM event)
        """

    /// The clocks now.
    var reading: ClockReading { clock.reading }
    /// True if the wall clock agrees with the proven time.
    var isTrusted: Bool { trust.isTrusted }
    /// True if the wall clock is set: rows are stored with their right times.
    var isSet: Bool { watch.isSet }
    /// The doubt about the clock, for status output.
    var doubt: ClockDoubt? { trust.doubt(clock.reading) }

    // MARK: - Changes

    /// Compares the clocks with their last reading.
    ///
    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - hasSamples: True if the file has samples.
    ///   - isCaughtUp: True if no row is too old by the claimed time, so that the time can be trusted.
    /// - Returns: The change, for ``save(_:)`` and ``adopt(_:)``.
    func change(_ reading: ClockReading, hasSamples: Bool, isCaughtUp: Bool = false) -> Change {
        var (nextTrust, nextWatch) = (trust, watch)
        nextTrust.isFileEmpty = nextTrust.isFileEmpty && !hasSamples
        if isCaughtUp { nextTrust.recordCaughtUp(reading) }
        nextTrust.observe(reading)
        let finding = nextWatch.observe(reading, isDoubted: !nextTrust.isTrusted)
        var change = Change(
            reading: reading,
            trust: nextTrust,
            watch: nextWatch,
            finding: finding,
            isTrustedNow: nextTrust.isTrusted && !trust.isTrusted
        )
        change.isSaveDue = change.concernsRows || marks.isDue(nextTrust.mark)
        return change
    }

    /// Writes the change; only in a transaction.
    func save(_ change: Change) throws(StoreFault) {
        try marks.save(change.trust.mark)
        try record(change.finding, change.reading)
        if change.isTrustedNow { try spans.estimateOthers(now: change.reading.wall) }
    }

    /// Records that the change is committed, if it had to be saved.
    func adopt(_ change: Change) throws(StoreFault) {
        (trust, watch) = (change.trust, change.watch)
        if change.concernsRows { try correction.reload() }
    }

    /// Writes the clocks' state before the file is closed; only in a transaction.
    func saveLast() throws(StoreFault) {
        trust.observe(clock.reading)
        try marks.save(trust.mark)
    }

    /// Marks the saved state as unknown after a failed commit.
    func didRollBack() {
        marks.invalidate()
    }

    private func record(_ finding: ClockWatch.Finding, _ reading: ClockReading) throws(StoreFault) {
        guard finding != .nothing else { return }
        let first = try spans.firstStart()
        try spans.end(uptime: reading.uptime, through: sequence.last)
        switch finding {
        case .nothing: break
        case .stepped:
            try spans.begin(offset: reading.offset, start(reading))
        case .claimed:
            try spans.resolveAndBegin(offset: reading.offset, first ?? start(reading))
        case .set:
            try spans.resolve(offset: reading.offset)
        }
    }

    // MARK: - Spans

    private func beginSpan(_ reading: ClockReading, lastUptime: Int64) throws(StoreFault) {
        if watch.isSet, try spans.isEmpty() { return }
        try connection.transaction { () throws(StoreFault) in
            try spans.closeOthers(uptime: lastUptime, through: sequence.last)
            try resolveOthers(reading)
            let offset = try spans.openOffset()
            let lasts = offset.map { abs($0 &- reading.offset) < ClockWatch.tolerance } ?? false
            if lasts && !watch.isSet { return }
            try spans.end(uptime: reading.uptime, through: sequence.last)
            if watch.isSet {
                try spans.resolve(offset: reading.offset)
            } else {
                try spans.begin(offset: reading.offset, start(reading))
            }
        }
        try correction.reload()
    }

    /// Corrects the spans of earlier boots if the clock is trusted.
    private func resolveOthers(_ reading: ClockReading) throws(StoreFault) {
        if trust.isTrusted {
            try spans.estimateOthers(now: reading.wall)
        } else {
            try spans.removeOthers(all: false)
        }
    }

    private func start(_ reading: ClockReading) -> ClockSpanStart {
        ClockSpanStart(after: sequence.last, uptime: reading.uptime, base: trust.mark.base.map { $0 &- trust.mark.lag })
    }

    /// Returns the clocks by which rows age.
    func agePlan(_ reading: ClockReading) throws(StoreFault) -> AgePlan {
        let spans = try spans.pending(uptime: reading.uptime &- trust.mark.lag)
        return AgePlan(
            proven: trust.proven(reading),
            latest: max(reading.wall, trust.mark.proven(reading) ?? .min),
            claimed: trust.claimed(reading),
            spans
        )
    }

    // MARK: - Corrections

    /// The correction of stored rows in progress, if any.
    var currentShift: ClockShift? { correction.current }
    /// All corrections of stored rows that are not complete, in order.
    var pendingShifts: [ClockShift] { correction.pending }

    /// Corrects some of the rows of a clock span; after the last one it returns the correction as an entry of the
    /// journal.
    func correctRows() throws(StoreFault) -> JournalEntry? {
        let entry = try correction.step()
        if case .correction(let done, _)? = entry { completed.append(done) }
        return entry
    }

    /// Returns the corrections completed since the last call.
    func drainCompleted() -> [ClockCorrection] {
        defer { completed.removeAll() }
        return completed
    }

    /// Records how far back the times of past records reach, so that a correction finds their rows; only in a
    /// transaction.
    func recordPast(in batch: ReadingBatch) throws(StoreFault) {
        let past = batch.readings.lazy.filter(\.isPast).map(\.time.microseconds).min()
        if let past { try spans.extend(to: past) }
    }

    /// Returns the batch with corrected times if parts of it were stamped before the clock was set.
    func corrected(_ batch: ReadingBatch) -> ReadingBatch {
        let now = clock.reading
        guard watch.mayCorrect(now) else { return batch }
        var batch = batch
        for index in batch.readings.indices {
            let reading = batch.readings[index]
            // A record of the past has its time from a comparison with the current clock.
            guard !reading.isPast, !reading.isDated else { continue }
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
}
