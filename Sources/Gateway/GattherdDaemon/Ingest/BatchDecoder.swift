import GattherdGATT
import GattherdModel
import GattherdSync

/// Decodes buffers; remembers the decoder of each connection.
struct BatchDecoder {
    private var sessions: [Int: any ProfileSession] = [:]
    /// How far senders have counted.
    private var marks: [String: UInt32] = [:]
    /// The rejects that are the first of a stream of which nothing decodes.
    private var undecodable: [Reject] = []
    /// The store's are among ``marks``.
    private(set) var hasMarks = false

    /// Takes what the store has from before.
    mutating func adopt(_ stored: [String: UInt32]) {
        marks.merge(stored) { max($0, $1) }
        for session in sessions.values { session.resume(from: marks) }
        hasMarks = true
    }

    /// Appends a reading or a reject for each value to `batch`.
    mutating func decode(_ entries: ArraySlice<Intake.Buffer.Entry>, of octets: [UInt8], into batch: inout ReadingBatch)
    {
        for entry in entries { decode(entry, of: octets, into: &batch) }
    }

    /// Takes the rejects that people should hear of: one for each stream of which nothing decodes.
    mutating func takeUndecodable() -> [Reject] {
        defer { undecodable.removeAll() }
        return undecodable
    }

    /// Forgets the decoders of connections that have ended.
    mutating func end(_ ended: [Int]) {
        for session in ended { sessions[session] = nil }
    }

    private mutating func decode(_ entry: Intake.Buffer.Entry, of octets: [UInt8], into batch: inout ReadingBatch) {
        let binding = entry.binding
        let payload = octets.span.extracting(entry.octets)
        let start = batch.samples.count
        do throws(PayloadError) {
            try session(of: binding).decode(payload, characteristic: binding.characteristic, into: &batch.samples)
            let samples = start..<batch.samples.count
            if let advertiser = binding.advertiser {
                note(session(of: binding).replayMarks, in: &batch)
                // It repeats what the device has told already.
                guard !samples.isEmpty else { return }
                advertiser.census.note(batch.samples[samples], of: binding.stream, isOpen: advertiser.isOpen)
            }
            batch.readings.append(
                Reading(stream: binding.stream, time: entry.time, source: entry.source, samples: samples)
            )
            binding.meter.countReading(of: binding.stream.stream, at: entry.time)
            binding.progress?.note(batch.samples[samples])
            if let echo = binding.echo { echo.withLock { $0 = batch.samples[samples].first?.value } }
        } catch {
            batch.samples.removeSubrange(start...)
            let reject = reject(entry, payload, error)
            batch.rejects.append(reject)
            let isNews = binding.meter.countReject(of: binding.stream.stream, reject.reason, at: entry.time)
            if isNews { undecodable.append(reject) }
        }
    }

    /// What has grown goes to the store with what it came with.
    private mutating func note(_ new: [ReplayCounter], in batch: inout ReadingBatch) {
        for mark in new where marks[mark.sender] != mark.counter {
            marks[mark.sender] = mark.counter
            batch.replayMarks[mark.sender] = mark.counter
        }
    }

    private func reject(_ entry: Intake.Buffer.Entry, _ payload: Span<UInt8>, _ error: PayloadError) -> Reject {
        let binding = entry.binding
        var octets: [UInt8] = []
        for index in payload.indices { octets.append(payload[index]) }
        return Reject(
            time: entry.time,
            device: binding.stream.device,
            characteristic: binding.profile.streams[binding.characteristic].source,
            octets: octets,
            reason: error.description
        )
    }

    private mutating func session(of binding: StreamBinding) -> any ProfileSession {
        if let session = sessions[binding.session] { return session }
        let session = binding.makeSession()
        session.resume(from: marks)
        sessions[binding.session] = session
        return session
    }
}
