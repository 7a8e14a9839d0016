import GattherdModel

/// The readings between the cursor and the last fetched one, in journal order.
///
/// The last readings behind the cursor are kept until they are too old to be published again, see
/// ``moveReplayPoint(before:)`` and ``putBackAll(at:)``.
struct DeliveryWindow: Sendable {
    private enum State {
        case unsent
        case inFlight
        case acknowledged
        /// Excluded from publication.
        case skipped
    }

    private struct Entry {
        let reading: JournalReading
        var state = State.unsent
        var wasSent = false

        /// True if the cursor may pass the entry.
        var mayPass: Bool { state == .acknowledged || state == .skipped }

        /// The time at which the cursor passed the entry.
        var passedAt = Duration.zero
    }

    /// Readings to be published.
    struct Batch {
        var readings: [JournalReading] = []
        /// The number of readings that were published before.
        var again = 0
    }

    /// The maximum number of readings kept behind the cursor.
    private static let memory = 1000

    /// The highest `seq` up to which the broker has acknowledged everything.
    private(set) var cursor: Int64
    /// The `seq` after which a new session begins; later readings may be published again.
    private(set) var replayPoint: Int64
    /// The `seq` after which another run begins; between ``replayPoint`` and ``cursor``.
    private(set) var resumePoint: Int64
    /// The last `seq` covered by the journal's answers.
    private(set) var fetched: Int64
    private(set) var inFlight = 0
    private(set) var unsent = 0
    private var entries: [Entry] = []
    /// The index of the first entry after the replay point.
    private var kept = 0
    /// The index of the first entry that is not behind the resume point.
    private var resumable = 0
    /// The index of the first entry that is not behind the cursor.
    private var first = 0
    /// An index at or before the first unsent entry.
    private var next = 0
    /// The `seq` of the last reading returned by ``dequeueFirstOfEachStream(_:)``.
    private var lastTurn = Int64.min

    init(cursor: Int64) {
        self.cursor = cursor
        replayPoint = cursor
        resumePoint = cursor
        fetched = cursor
    }

    var isEmpty: Bool { first == entries.count }
    /// The number of entries after the cursor, whatever their state.
    var span: Int { entries.count - first }

    /// The time of the first reading after the cursor.
    var oldest: Timestamp? { first < entries.count ? entries[first].reading.time : nil }

    /// The reading in flight that holds up the cursor.
    var awaited: Int64? {
        first < entries.count && entries[first].state == .inFlight ? entries[first].reading.seq : nil
    }

    /// Appends fetched readings and records that the journal has no others up to `seq`.
    ///
    /// The cursor passes skipped readings in order, as if they were acknowledged.
    mutating func append(_ readings: [JournalReading], skipping: Set<Int64>, through seq: Int64, at now: Duration) {
        for reading in readings where reading.seq > fetched {
            let isSkipped = !skipping.isEmpty && skipping.contains(reading.seq)
            entries.append(Entry(reading: reading, state: isSkipped ? .skipped : .unsent))
            fetched = reading.seq
            if !isSkipped { unsent += 1 }
        }
        fetched = max(fetched, seq)
        advance(at: now)
    }

    /// Marks the next unsent readings as in flight and returns them.
    mutating func dequeue(_ limit: Int) -> Batch {
        var batch = Batch()
        while batch.readings.count < limit, next < entries.count {
            if entries[next].state == .unsent { send(next, in: &batch) }
            next += 1
        }
        return batch
    }

    /// Marks the first unsent reading of each stream as in flight and returns them.
    ///
    /// Streams with a reading in flight wait. If there is no room for all, the streams take turns.
    mutating func dequeueFirstOfEachStream(_ limit: Int) -> Batch {
        var batch = Batch()
        let candidates = firstOfEachStream
        let turn = candidates.firstIndex { entries[$0].reading.seq > lastTurn } ?? 0
        let isTakingTurns = candidates.count > limit
        for index in isTakingTurns ? candidates[turn...] + candidates[..<turn] : candidates[...] {
            guard batch.readings.count < limit else { break }
            send(index, in: &batch)
            lastTurn = entries[index].reading.seq
        }
        return batch
    }

    /// The indices of the first unsent readings of all streams without a reading in flight.
    private var firstOfEachStream: [Int] {
        var streams: Set<[String]> = []
        return entries.indices[first...].filter { index in
            let entry = entries[index]
            guard !entry.mayPass else { return false }
            return streams.insert([entry.reading.device, entry.reading.stream.stream]).inserted && entry.state == .unsent
        }
    }

    private mutating func send(_ index: Int, in batch: inout Batch) {
        batch.readings.append(entries[index].reading)
        batch.again += entries[index].wasSent ? 1 : 0
        entries[index].state = .inFlight
        entries[index].wasSent = true
        inFlight += 1
        unsent -= 1
    }

    /// The reading of `seq`, if it is in flight.
    func inFlightReading(_ seq: Int64) -> JournalReading? {
        guard let index = index(of: seq), entries[index].state == .inFlight else { return nil }
        return entries[index].reading
    }

    /// Marks a reading in flight as acknowledged and advances the cursor over contiguous entries.
    mutating func acknowledge(_ seq: Int64, at now: Duration) {
        guard let index = index(of: seq), entries[index].state == .inFlight else { return }
        entries[index].state = .acknowledged
        inFlight -= 1
        advance(at: now)
    }

    private mutating func advance(at now: Duration) {
        while first < entries.count, entries[first].mayPass {
            cursor = max(cursor, entries[first].reading.seq)
            entries[first].passedAt = now
            first += 1
        }
        next = max(next, first)
        compact()
    }

    /// Marks a reading in flight as one that must be published again.
    mutating func putBack(_ seq: Int64) {
        guard let index = index(of: seq), entries[index].state == .inFlight else { return }
        putBack(at: index)
    }

    /// The time at which the cursor passed the oldest entry that the resume point has not passed.
    var resumePointDueSince: Duration? { resumable < first ? entries[resumable].passedAt : nil }

    /// Moves the resume point over entries passed by the cursor up to `time`, and over all but the last `trail`
    /// entries.
    mutating func moveResumePoint(before time: Duration, trail: Int) {
        while resumable < first, entries[resumable].passedAt <= time || first - resumable > trail {
            resumePoint = max(resumePoint, entries[resumable].reading.seq)
            resumable += 1
        }
    }

    /// Excludes entries passed by the cursor up to `time` from republication.
    mutating func moveReplayPoint(before time: Duration) {
        var end = kept
        while end < first, entries[end].passedAt <= time { end += 1 }
        moveReplayPoint(toIndex: end)
    }

    /// Excludes all entries passed by the cursor from republication.
    mutating func moveReplayPointToCursor() {
        moveReplayPoint(toIndex: first)
    }

    private mutating func moveReplayPoint(toIndex end: Int) {
        guard end > kept else { return }
        replayPoint = entries[end - 1].reading.seq
        kept = end
        resumable = max(resumable, end)
        resumePoint = max(resumePoint, replayPoint)
    }

    /// Marks all readings after the replay point as unsent; the cursor stays.
    mutating func putBackAll(at now: Duration) {
        for index in kept..<first where entries[index].state == .acknowledged {
            entries[index].state = .unsent
            unsent += 1
        }
        (first, next, resumable) = (kept, kept, kept)
        for index in first..<entries.count where entries[index].state == .inFlight { putBack(at: index) }
        advance(at: now)
    }

    private mutating func putBack(at index: Int) {
        entries[index].state = .unsent
        inFlight -= 1
        unsent += 1
        next = min(next, index)
    }

    /// Returns the index of `seq`; checks the oldest entry first, because acknowledgements nearly always arrive in
    /// order.
    private func index(of seq: Int64) -> Int? {
        var low = first
        var high = entries.count
        guard low < high, entries[low].reading.seq != seq else { return low < high ? low : nil }
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].reading.seq < seq { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && entries[low].reading.seq == seq ? low : nil
    }

    /// Removes entries before the replay point, once there are enough to justify moving the rest.
    private mutating func compact() {
        moveReplayPoint(toIndex: first - Self.memory)
        guard kept >= Self.memory else { return }
        entries.removeFirst(kept)
        first -= kept
        next -= kept
        resumable -= kept
        kept = 0
    }
}
