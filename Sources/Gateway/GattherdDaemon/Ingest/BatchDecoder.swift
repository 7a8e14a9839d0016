import GattherdGATT
import GattherdModel
import GattherdSync

/// Decodes buffers and keeps the decoder of each connection.
struct BatchDecoder {
    /// The key of the messages of one characteristic on one connection.
    private struct MessageKey: Hashable {
        let decoder: Int
        let characteristic: Int
    }

    private var decoders: [Int: any PayloadDecoder] = [:]
    /// The messages of one characteristic, and the notification that was received last.
    private struct OpenMessages {
        var assembly: MessageAssembly
        var newest: Intake.Buffer.Entry
    }

    private var messages: [MessageKey: OpenMessages] = [:]
    /// The newest replay counter of each sender.
    private var marks: [String: UInt32] = [:]
    /// The rejects that made a stream undecodable.
    private var undecodable: [Reject] = []
    /// Event metrics that wait to fall back (`reset` of a profile).
    private var resets = EventResets()
    /// The stored records of devices.
    var records: RecordDecoder
    /// True once ``marks`` includes the stored counters.
    private(set) var hasMarks = false

    init(clock: RecordClock? = nil) {
        records = RecordDecoder(clock: clock)
    }

    /// Merges the counters that the store has from before the start.
    mutating func loadMarks(_ stored: [String: UInt32]) {
        marks.merge(stored) { max($0, $1) }
        for decoder in decoders.values { decoder.resume(from: marks) }
        hasMarks = true
    }

    /// Appends a reading or a reject for each value to `batch`.
    mutating func decode(_ entries: ArraySlice<Intake.Buffer.Entry>, of octets: [UInt8], into batch: inout ReadingBatch)
    {
        for entry in entries { decode(entry, of: octets, into: &batch) }
        records.addCursors(to: &batch)
    }

    /// Removes and returns the rejects to report: one for each undecodable stream.
    mutating func removeUndecodable() -> [Reject] {
        defer { undecodable.removeAll() }
        return undecodable
    }

    /// Removes the decoders of connections that have ended, and rejects their unfinished messages.
    mutating func end(_ ended: [Int], into batch: inout ReadingBatch) {
        for number in ended { decoders[number] = nil }
        guard !ended.isEmpty else { return }
        resets.remove(decoders: Set(ended))
        for key in messages.keys where ended.contains(key.decoder) {
            guard var open = messages.removeValue(forKey: key) else { continue }
            open.assembly.finish { octets, reason in
                if let reason { reject(open.newest, octets, reason, into: &batch) }
                return false
            }
        }
    }

    /// The time of the next reset of an event; `nil` without one.
    var nextReset: SuspendingClock.Instant? { resets.next }

    /// Appends a reading for each stream with events whose time is over.
    mutating func resetEvents(at now: SuspendingClock.Instant, into batch: inout ReadingBatch) {
        for due in resets.removeDue(at: now) {
            let start = batch.samples.count
            batch.samples += due.samples
            let (binding, samples) = (due.binding, start..<batch.samples.count)
            batch.readings.append(
                Reading(stream: binding.stream, time: due.time, source: binding.source, samples: samples)
            )
            binding.meter.countReading(of: binding.stream.stream, at: due.time)
        }
    }

    private mutating func decode(_ entry: Intake.Buffer.Entry, of octets: [UInt8], into batch: inout ReadingBatch) {
        let payload = octets.span.extracting(entry.bytes)
        if entry.isRepetition { return renewEvents(entry, payload) }
        guard let rule = entry.binding.messages else {
            _ = decode(entry, payload, into: &batch)
            return
        }
        decodeMessages(entry, payload, rule, into: &batch)
    }

    /// Lets the events of a repeated advertisement, which is no reading, last longer.
    private mutating func renewEvents(_ entry: Intake.Buffer.Entry, _ payload: Span<UInt8>) {
        let binding = entry.binding
        var samples: [Sample] = []
        do throws(PayloadError) {
            try decoder(of: binding).decode(payload, characteristic: binding.characteristic, into: &samples)
        } catch {
            // The first copy made a reject.
            return
        }
        resets.renew(samples[...], of: binding, at: entry.time, now: .now)
    }

    /// Decodes the messages that a notification completes.
    private mutating func decodeMessages(
        _ entry: Intake.Buffer.Entry,
        _ payload: Span<UInt8>,
        _ rule: MessageRule,
        into batch: inout ReadingBatch
    ) {
        let key = MessageKey(decoder: entry.binding.decoder, characteristic: entry.binding.characteristic)
        var open = messages.removeValue(forKey: key) ?? OpenMessages(assembly: MessageAssembly(rule), newest: entry)
        open.newest = entry
        open.assembly.receive(payload, at: records.steady(entry.time)) { message, discarded in
            guard let discarded else { return decode(entry, message, into: &batch) }
            reject(entry, message, discarded, into: &batch)
            return false
        }
        messages[key] = open
    }

    /// Appends a reading, or a reject; returns false for a reject.
    private mutating func decode(
        _ entry: Intake.Buffer.Entry,
        _ payload: Span<UInt8>,
        into batch: inout ReadingBatch
    ) -> Bool {
        let binding = entry.binding
        let start = batch.samples.count
        if let stream = binding.records, endsRecords(stream, entry, payload) { return true }
        do throws(PayloadError) {
            try decoder(of: binding).decode(payload, characteristic: binding.characteristic, into: &batch.samples)
            // The history refuses a whole batch for one metric that it lacks.
            try batch.samples[start...].check(of: binding.stream.metrics)
            appendSignal(entry, from: start, to: &batch.samples)
            if binding.records != nil {
                appendRecords(entry, payload, from: start, into: &batch)
            } else {
                appendReading(entry, from: start, into: &batch)
            }
            if let answers = binding.answers { answers.update { $0 &+= 1 } }
            return true
        } catch {
            batch.samples.removeSubrange(start...)
            reject(entry, payload, error, into: &batch)
            return false
        }
    }

    /// Appends a reading with the samples from `start` on.
    private mutating func appendReading(
        _ entry: Intake.Buffer.Entry,
        from start: Int,
        into batch: inout ReadingBatch
    ) {
        let binding = entry.binding
        let samples = start..<batch.samples.count
        if let advertiser = binding.advertiser {
            record(decoder(of: binding).replayMarks, in: &batch)
            // An empty reading repeats an earlier one.
            guard !samples.isEmpty else { return }
            advertiser.metricCatalogue.record(batch.samples[samples], of: binding.stream)
        }
        batch.readings.append(
            Reading(stream: binding.stream, time: entry.time, source: entry.source, samples: samples)
        )
        binding.meter.countReading(of: binding.stream.stream, at: entry.time)
        binding.progress?.record(batch.samples[samples])
        if binding.shortestReset != nil {
            resets.record(batch.samples[samples], of: binding, at: entry.time, now: .now)
        }
        recordEcho(batch.samples[samples], of: binding)
    }

    /// Records the newest value of a stream's first metric, for a control that reads its echo there.
    private func recordEcho(_ samples: ArraySlice<Sample>, of binding: StreamBinding) {
        guard let echo = binding.echo, let first = samples.first(where: { $0.metric == 0 }) else { return }
        echo.withLock { $0 = first.value }
    }

    private mutating func reject(
        _ entry: Intake.Buffer.Entry,
        _ payload: Span<UInt8>,
        _ error: PayloadError,
        into batch: inout ReadingBatch
    ) {
        let reject = reject(entry, payload, error)
        batch.rejects.append(reject)
        let isNew = entry.binding.meter.countReject(of: entry.binding.stream.stream, reject.reason, at: entry.time)
        if isNew { undecodable.append(reject) }
    }

    /// Handles an entry that is not a value: a message of a download, or the end of the records.
    private mutating func endsRecords(
        _ stream: RecordStream,
        _ entry: Intake.Buffer.Entry,
        _ payload: Span<UInt8>
    ) -> Bool {
        guard entry.binding.isMessage else { return stream.end?.fits(Self.bytes(payload)) ?? false }
        records.handleMessage(of: stream, at: entry.time)
        return true
    }

    /// Appends the new records of a payload; its samples begin at `start`.
    private mutating func appendRecords(
        _ entry: Intake.Buffer.Entry,
        _ payload: Span<UInt8>,
        from start: Int,
        into batch: inout ReadingBatch
    ) {
        let binding = entry.binding
        binding.progress?.record(batch.samples[start...])
        recordEcho(batch.samples[start...], of: binding)
        let count = records.append(entry, payload, from: start, into: &batch)
        for _ in 0..<count { binding.meter.countReading(of: binding.stream.stream, at: entry.time) }
    }

    /// Adds the strength of an advertisement to its reading; an empty reading stays empty.
    private func appendSignal(_ entry: Intake.Buffer.Entry, from start: Int, to samples: inout [Sample]) {
        guard samples.count > start, let metric = entry.binding.advertiser?.signal, let rssi = entry.rssi
        else { return }
        samples.append(Sample(metric: metric, value: .integer(Int64(rssi))))
    }

    /// Adds increased replay counters to the batch of their readings.
    private mutating func record(_ new: [ReplayCounter], in batch: inout ReadingBatch) {
        for mark in new where marks[mark.sender] != mark.counter {
            marks[mark.sender] = mark.counter
            batch.replayMarks[mark.sender] = mark.counter
        }
    }

    private func reject(_ entry: Intake.Buffer.Entry, _ payload: Span<UInt8>, _ error: PayloadError) -> Reject {
        let binding = entry.binding
        return Reject(
            time: entry.time,
            device: binding.stream.device,
            characteristic: binding.profile.streams[binding.characteristic].source,
            payload: Self.bytes(payload),
            reason: error.description
        )
    }

    private static func bytes(_ payload: Span<UInt8>) -> [UInt8] {
        payload.indices.map { payload[$0] }
    }

    private mutating func decoder(of binding: StreamBinding) -> any PayloadDecoder {
        if let decoder = decoders[binding.decoder] { return decoder }
        let decoder = binding.makeDecoder()
        decoder.resume(from: marks)
        decoders[binding.decoder] = decoder
        return decoder
    }
}
