import GattherdModel

/// The readings between the cursor and what has been fetched from the log, in the log's order.
///
/// The last ones behind the cursor are remembered until they are old enough not to be published again, see
/// ``settle(before:)`` and ``putBackAll(at:)``.
struct DeliveryWindow: Sendable {
    private enum State {
        case unsent
        case inFlight
        case acknowledged
        /// Not to be published.
        case skipped
    }

    private struct Entry {
        let reading: JournalReading
        var state = State.unsent
        var wasSent = false

        /// The cursor may pass.
        var isSettled: Bool { state == .acknowledged || state == .skipped }

        /// When the cursor passed it.
        var settledAt = Duration.zero
    }

    /// Readings to be published.
    struct Batch {
        var readings: [JournalReading] = []
        /// The number of readings that were published before.
        var again = 0
    }

    /// Readings behind the cursor that are remembered at most.
    private static let memory = 1000

    /// The highest `seq` up to which the broker has acknowledged everything.
    private(set) var cursor: Int64
    /// The `seq` after which a new session begins: what comes behind it may be published again.
    private(set) var settled: Int64
    /// The `seq` after which another run begins; between ``settled`` and ``cursor``.
    private(set) var resumePoint: Int64
    /// The last `seq` that the log has been asked for and has answered.
    private(set) var fetched: Int64
    private(set) var inFlight = 0
    private(set) var unsent = 0
    private var entries: [Entry] = []
    /// The entries before this one are settled for good.
    private var kept = 0
    /// The entries before this one are behind the resume point.
    private var resumable = 0
    /// The entries before this one are behind the cursor.
    private var first = 0
    /// No entry before this one is unsent.
    private var next = 0
    /// The number of the last reading of ``takeFirstOfEachStream(_:)``.
    private var lastTurn = Int64.min

    init(cursor: Int64) {
        self.cursor = cursor
        settled = cursor
        resumePoint = cursor
        fetched = cursor
    }

    var isEmpty: Bool { first == entries.count }
    /// The readings behind the cursor's, whatever their state.
    var span: Int { entries.count - first }

    /// The reading in flight for which the cursor waits.
    var awaited: Int64? {
        first < entries.count && entries[first].state == .inFlight ? entries[first].reading.seq : nil
    }

    /// Appends what the log gave, and notes that it has nothing else up to `seq`.
    ///
    /// The cursor passes those of the readings that are skipped, in their turn, as if the broker had them.
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

    /// Marks the next unsent readings as in flight and gives them.
    mutating func take(_ limit: Int) -> Batch {
        var batch = Batch()
        while batch.readings.count < limit, next < entries.count {
            if entries[next].state == .unsent { send(next, in: &batch) }
            next += 1
        }
        return batch
    }

    /// Marks the first unsent reading of each stream as in flight and returns them; streams with a reading in flight wait.
    ///
    /// When there is no room for all, the streams take turns.
    mutating func takeFirstOfEachStream(_ limit: Int) -> Batch {
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

    /// The entries of the first unsent readings of the streams that have none in flight.
    private var firstOfEachStream: [Int] {
        var streams: Set<[String]> = []
        return entries.indices[first...].filter { index in
            let entry = entries[index]
            guard !entry.isSettled else { return false }
            return streams.insert([entry.reading.device, entry.reading.stream]).inserted && entry.state == .unsent
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

    /// Marks a reading in flight as done and moves the cursor over all that is contiguous.
    mutating func acknowledge(_ seq: Int64, at now: Duration) {
        guard let index = index(of: seq), entries[index].state == .inFlight else { return }
        entries[index].state = .acknowledged
        inFlight -= 1
        advance(at: now)
    }

    private mutating func advance(at now: Duration) {
        while first < entries.count, entries[first].isSettled {
            cursor = max(cursor, entries[first].reading.seq)
            entries[first].settledAt = now
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

    /// When the oldest of the entries that the cursor passed, and the resume point has not, was passed.
    var resumePointDueSince: Duration? { resumable < first ? entries[resumable].settledAt : nil }

    /// Moves the resume point over what the cursor passed up to `time`, and over all but the last `trail` entries.
    mutating func moveResumePoint(before time: Duration, trail: Int) {
        while resumable < first, entries[resumable].settledAt <= time || first - resumable > trail {
            resumePoint = max(resumePoint, entries[resumable].reading.seq)
            resumable += 1
        }
    }

    /// What the cursor passed up to `time` is not published again.
    mutating func settle(before time: Duration) {
        var end = kept
        while end < first, entries[end].settledAt <= time { end += 1 }
        settle(end: end)
    }

    /// Nothing that the cursor passed is published again.
    mutating func settleAll() {
        settle(end: first)
    }

    private mutating func settle(end: Int) {
        guard end > kept else { return }
        settled = entries[end - 1].reading.seq
        kept = end
        resumable = max(resumable, end)
        resumePoint = max(resumePoint, settled)
    }

    /// Marks all that is not settled as to be published again; the cursor stays where it is.
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

    /// Acknowledgements come in order nearly always, so the oldest entry is looked at first.
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

    /// Lets go of what is settled when that is worth moving the rest.
    private mutating func compact() {
        settle(end: first - Self.memory)
        guard kept >= Self.memory else { return }
        entries.removeFirst(kept)
        first -= kept
        next -= kept
        resumable -= kept
        kept = 0
    }
}
