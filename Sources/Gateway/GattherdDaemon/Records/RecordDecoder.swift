import GattherdMachines
import GattherdModel

/// Converts decoded values into records: numbers and dates them, and omits stored ones.
struct RecordDecoder {
    private struct Tracked {
        let address: String
        let rule: RecordRule
        var tracker: RecordTracker
        var block: DownloadFacts.Block?
        var payloads = 0
        var requests = 0
        /// The number of losses that the tracker knows.
        var losses: UInt64 = 0
        /// The last record, whether it was new or not.
        var last: (number: Int64, continued: Int64, time: Timestamp)?

        /// Marks the tracker as incomplete if values were lost since the last call.
        mutating func recordLosses(of records: RecordStream) {
            let count = records.losses.count
            guard count != losses else { return }
            losses = count
            tracker.hasLosses = true
        }
    }

    /// A finding and its stream.
    struct Finding {
        let key: RecordCursor.Key
        let notice: RecordTracker.Notice
    }

    /// The age in microseconds from which a record counts as one of the past, not as a new value.
    private static let past: Int64 = 60_000_000
    private var stored: [RecordCursor.Key: RecordCursor]?
    private var tracked: [RecordCursor.Key: Tracked] = [:]
    private var changed: Set<RecordCursor.Key> = []
    private var findings: [Finding] = []
    /// True while history stores nothing, so that no request may begin.
    private var isSuspended = false
    /// The streams whose download was given up because history stored nothing.
    ///
    /// The rest of its records is left out, because the next download brings them again.
    private var abandoned: Set<RecordCursor.Key> = []
    /// The gateway's clock, whose steps move the times of records; `nil` if it has none.
    private var clock: RecordClock?

    init(clock: RecordClock? = nil) {
        self.clock = clock
    }

    /// True if the cursors from before the start are known.
    var isLoaded: Bool { stored != nil }

    /// Sets the cursors from before the start.
    mutating func load(_ cursors: [RecordCursor]) {
        stored = Dictionary(cursors.map { ($0.key, $0) }) { first, _ in first }
    }

    /// Adds the cursors that moved to the batch of their readings.
    mutating func addCursors(to batch: inout ReadingBatch) {
        for key in changed {
            guard let entry = tracked[key] else { continue }
            let position = entry.tracker.position
            batch.cursors[key] = RecordCursor(
                key: key,
                address: entry.address,
                number: position?.number,
                time: position?.time,
                state: entry.tracker.state
            )
        }
        changed.removeAll(keepingCapacity: true)
    }

    /// Lets requests begin again after a batch was stored.
    mutating func resume() {
        isSuspended = false
    }

    /// Suspends downloads after a batch was not stored.
    mutating func suspend() {
        isSuspended = true
        for (key, entry) in tracked where entry.tracker.isRequested {
            abandoned.insert(key)
            tracked[key]?.tracker.end()
        }
    }

    /// Returns to the stored cursors of streams, so that records that were not stored are requested again.
    ///
    /// - Parameters:
    ///   - streams: The streams with records in the batch that was not stored.
    ///   - cursors: The stored cursors; `nil` if they cannot be read now.
    mutating func revert(_ streams: some Sequence<RecordCursor.Key>, to cursors: [RecordCursor]?) {
        for key in streams { tracked[key] = nil }
        stored = nil
        if let cursors { load(cursors) }
    }

    /// True if the records of a stream, or those to which they belong, are left out.
    private func isAbandoned(_ records: RecordStream) -> Bool {
        abandoned.contains(records.key) || records.companion.map(abandoned.contains) ?? false
    }

    mutating func removeFindings() -> [Finding] {
        defer { findings.removeAll() }
        return findings
    }

    /// Returns the time of a receipt on a clock that has no steps, for the pauses between values.
    mutating func steady(_ time: Timestamp) -> Timestamp {
        guard let base = clock?.read(), let corrected = clock?.corrected(time) else { return time }
        return Timestamp(microseconds: corrected.microseconds &- base)
    }

    // MARK: - Messages

    /// Handles the next message of a download, which was posted at `now`.
    mutating func handleMessage(of records: RecordStream, at now: Timestamp) {
        guard let (message, losses) = records.removeMessage() else { return }
        guard isLoaded, !isRefused(message, of: records.key) else {
            return records.publishUnavailable(isAnswer: true)
        }
        var entry = follow(records)
        let now = clock?.corrected(now) ?? now
        switch message {
        case .open, .end, .close: entry.tracker.end()
        case .compare(let device, let gateway):
            entry.tracker.compare(device: device, gateway: clock?.corrected(gateway) ?? gateway)
        case .tell(let time): entry.tracker.tell(clock?.corrected(time) ?? time)
        case .begin(let request, let relation):
            entry.tracker.begin(request, relation, at: now)
            // Values of this request may have been lost since the message was posted.
            entry.losses = losses
            entry.recordLosses(of: records)
            (entry.payloads, entry.block) = (0, nil)
            entry.requests += 1
        case .complete: entry.tracker.complete()
        case .drain: break
        }
        keep(entry, of: records)
        if case .drain = message { return publish(entry, records, isAnswer: true) }
        if case .close = message { return }
        changed.insert(records.key)
        publish(entry, records, isAnswer: false)
    }

    /// True if a message is not carried out because history stored nothing during the download.
    private mutating func isRefused(_ message: RecordStream.Message, of key: RecordCursor.Key) -> Bool {
        switch message {
        case .open:
            // The cursor of a new download shows whether history stores again.
            if !isSuspended { abandoned.remove(key) }
            return false
        case .close:
            abandoned.remove(key)
            return false
        // Later records are live ones.
        case .complete: return abandoned.remove(key) != nil || isSuspended
        case .begin where isSuspended:
            abandoned.insert(key)
            return true
        case .compare, .tell, .begin, .end, .drain: return isSuspended || abandoned.contains(key)
        }
    }

    /// Returns the state of a stream with its losses, in times of the current clock.
    private mutating func follow(_ records: RecordStream) -> Tracked {
        var entry = tracked(records)
        if let base = clock?.read() { entry.tracker.setBase(base) }
        entry.recordLosses(of: records)
        return entry
    }

    private func tracked(_ records: RecordStream) -> Tracked {
        let known = tracked[records.key].flatMap { $0.address == records.address ? $0 : nil }
        if let known, known.rule == records.rule { return known }
        let cursor = stored?[records.key].flatMap { $0.address == records.address ? $0 : nil }
        let tracker = RecordTracker(
            records.rule,
            restoring: known?.tracker.state ?? cursor?.state ?? "",
            boot: clock?.boot ?? "",
            correction: cursor?.correction ?? 0
        )
        var entry = Tracked(address: records.address, rule: records.rule, tracker: tracker)
        // Requests are counted on, so that facts of an earlier download are not taken for those of this one.
        entry.requests = known?.requests ?? 0
        return entry
    }

    private mutating func keep(_ entry: Tracked, of records: RecordStream) {
        var entry = entry
        findings += entry.tracker.removeNotices().map { Finding(key: records.key, notice: $0) }
        tracked[records.key] = entry
    }

    private func publish(_ entry: Tracked, _ records: RecordStream, isAnswer: Bool) {
        var facts = DownloadFacts(entry.tracker)
        (facts.block, facts.payloads, facts.requests) = (entry.block, entry.payloads, entry.requests)
        records.publish(facts, isAnswer: isAnswer)
    }

    // MARK: - Values

    /// Replaces the samples of one payload from `start` on by the readings of its new records.
    ///
    /// - Returns: The number of readings.
    mutating func append(
        _ entry: Intake.Buffer.Entry,
        _ octets: Span<UInt8>,
        from start: Int,
        into batch: inout ReadingBatch
    ) -> Int {
        guard let records = entry.binding.records else { return 0 }
        guard !isAbandoned(records) else {
            batch.samples.removeSubrange(start...)
            records.publishUnavailable(isAnswer: false)
            return 0
        }
        guard isLoaded else {
            batch.readings.append(reading(entry, entry.time, start..<batch.samples.count, at: entry.time))
            return 1
        }
        var known = follow(records)
        let now = clock?.corrected(entry.time) ?? entry.time
        let samples = Array(batch.samples[start...])
        batch.samples.removeSubrange(start...)
        let payload = RecordPayload(samples, records.rule, octets, at: now)
        var count = 0
        for index in 0..<payload.count {
            let record = payload.record(index)
            let outcome = outcome(of: record, records, &known, at: now)
            guard case .store(let time, let doubt) = outcome else { continue }
            let first = batch.samples.count
            payload.append(index, to: &batch.samples)
            if let doubt { batch.samples.append(Sample(metric: records.rule.doubt, value: .text(doubt))) }
            batch.readings.append(reading(entry, time, first..<batch.samples.count, at: now))
            count += 1
        }
        known.payloads += 1
        known.block = payload.block(after: known.tracker.newest)
        changed.insert(records.key)
        keep(known, of: records)
        publish(known, records, isAnswer: false)
        return count
    }

    /// Examines a record, with the time of its companion if there is one.
    private func outcome(
        of record: ReceivedRecord,
        _ records: RecordStream,
        _ known: inout Tracked,
        at now: Timestamp
    ) -> RecordTracker.Outcome {
        guard let companion = records.companion else {
            let outcome = known.tracker.receive(record, at: now)
            var time = known.tracker.lastTime ?? known.tracker.newest
            if case .store(let new, _) = outcome { time = new }
            if let number = record.number, let time {
                known.last = (number, known.tracker.lastNumber ?? number, time)
            }
            return outcome
        }
        let main = tracked[companion]
        let isNew = record.number.map { number in
            let continued = main?.last.flatMap { $0.number == number ? $0.continued : nil } ?? number
            return known.tracker.receive(companion: continued, generation: main?.tracker.generation ?? 0)
        }
        guard isNew ?? true else { return .duplicate }
        if let last = main?.last, last.number == record.number { return .store(last.time, doubt: nil) }
        return .store(now, doubt: "the record to which it belongs is missing")
    }

    private func reading(
        _ entry: Intake.Buffer.Entry,
        _ time: Timestamp,
        _ samples: Range<Int>,
        at now: Timestamp
    ) -> Reading {
        var reading = Reading(stream: entry.binding.stream, time: time, source: entry.source, samples: samples)
        reading.isPast = time.microseconds < now.microseconds &- Self.past
        reading.isDated = clock != nil && isLoaded
        return reading
    }
}

extension RecordStream {
    /// Publishes that history cannot be used.
    ///
    /// The counts stay: the next download does not count the records of this one as its own.
    fileprivate func publishUnavailable(isAnswer: Bool) {
        var unavailable = facts
        unavailable.isLoaded = false
        publish(unavailable, isAnswer: isAnswer)
    }
}
