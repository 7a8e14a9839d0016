import GattherdModel

/// The readings between the cursor and the last fetched one, in journal order.
///
/// The last readings that the cursor has passed are kept until they are too old to be published again, see
/// ``moveReplayPoint(before:)`` and ``putBackAll(acknowledgedAfter:at:)``.
struct DeliveryWindow: Sendable {
    /// The highest `seq` up to which the broker has acknowledged everything.
    private(set) var cursor: Int64
    /// The last `seq` covered by the journal's answers.
    private(set) var fetched: Int64
    /// The number of messages in flight.
    private(set) var inFlight = 0
    /// The number of unsent readings, including those that gather.
    private(set) var unsent = 0
    private var gathered = GatheredReadings()
    private var delayed = DelayedReadings()
    /// The number of appended readings.
    private var appended = 0
    private var entries: [Entry] = []
    /// The entries that the cursor has passed and that may be published again.
    private var trail: ReplayTrail
    /// The index of the first entry after the cursor.
    private var first = 0
    /// An index at or before the first unsent entry.
    private var next = 0
    /// The number of entries after the cursor from which on a gathering one must not hold it up: with twice as many
    /// nothing more is fetched.
    private static let longestGatheringSpan = 2048

    /// The `seq` of the last reading returned by ``dequeueFirstOfEachStream(_:)``.
    private var lastTurn = Int64.min

    init(cursor: Int64) {
        self.cursor = cursor
        trail = ReplayTrail(cursor: cursor)
        fetched = cursor
    }

    var isEmpty: Bool { first == entries.count }
    /// True if no reading up to `seq` waits.
    func hasPassed(_ seq: Int64) -> Bool { first < entries.count ? seq < entries[first].reading.seq : seq <= fetched }
    /// The number of unsent readings that do not wait for others of their stream.
    var pressing: Int { unsent - gathered.waiting }
    /// True if no more readings should gather.
    var isGatheringFull: Bool { gathered.waiting >= GatheredReadings.maximumWaiting }
    /// True if a gathering reading holds up the cursor for too many others.
    var isHeldUp: Bool {
        span >= Self.longestGatheringSpan && entries[first].state == .unsent && entries[first].group != nil
    }
    /// True if a suppressed reading will be published later.
    var hasDelayed: Bool { delayed.hasReadings }
    /// The `seq` after which another run begins.
    var resumePoint: Int64 { delayed.held.map { min(trail.passedPoint, $0 - 1) } ?? trail.passedPoint }
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
    /// The cursor passes skipped and delayed readings in order, as if they were acknowledged.
    mutating func append(
        _ readings: [JournalReading],
        _ selection: DeliverySelection,
        through seq: Int64,
        at now: Duration
    ) {
        for seq in selection.dropped { delayed.drop(seq) }
        for reading in readings where reading.seq > fetched {
            append(reading, selection, at: now)
            fetched = reading.seq
            appended += 1
        }
        fetched = max(fetched, seq)
        advance(at: now)
    }

    private mutating func append(_ reading: JournalReading, _ selection: DeliverySelection, at now: Duration) {
        if selection.isEverything, delayed.isEmpty, gathered.isEmpty {
            unsent += 1
            return entries.append(Entry(reading: reading))
        }
        let gathering = selection.gathered[reading.seq]
        guard !selection.delayed.contains(reading.seq) else {
            delayed.add(reading, gathering: gathering, index: appended, at: now)
            return entries.append(Entry(reading: reading, state: .skipped))
        }
        guard !selection.skipped.contains(reading.seq) else {
            return entries.append(Entry(reading: reading, state: .skipped))
        }
        delayed.supersede(by: reading)
        unsent += 1
        var entry = Entry(reading: reading)
        if let gathering {
            entry.group = gathered.add(reading, due: now + gathering)
        } else {
            gathered.end(StreamKey(reading))
        }
        entries.append(entry)
    }

    /// Marks the messages that are due as in flight and returns at most `limit` of them, by their first readings.
    mutating func dequeue(_ limit: Int, at now: Duration) -> DeliveryBatch {
        var batch = DeliveryBatch(sentAt: now)
        var firstUnsent: Int?
        var index = next
        while index < entries.count, batch.messages.count < limit || batch.hasOpenMessages {
            if entries[index].state == .unsent, !send(index, in: &batch, limit, at: now) {
                firstUnsent = firstUnsent ?? index
            }
            index += 1
        }
        next = firstUnsent ?? index
        batch.closeAll()
        return batch
    }

    /// Sends a reading alone, or with others of its group; returns false if it has to wait.
    private mutating func send(_ index: Int, in batch: inout DeliveryBatch, _ limit: Int, at now: Duration) -> Bool {
        let isRoom = batch.messages.count < limit
        guard let group = entries[index].group else {
            guard isRoom else { return false }
            batch.append(entries[index].reading)
            markSent(index, in: &batch)
            return true
        }
        if !batch.isOpen(group) {
            guard isRoom, gathered.isDue(group, at: now) else { return false }
            batch.open(group, expecting: gathered.count(group))
        }
        add(index, to: group, in: &batch)
        return true
    }

    /// Adds a reading to the open message of its group.
    private mutating func add(_ index: Int, to group: Int, in batch: inout DeliveryBatch) {
        let reading = entries[index].reading
        let message = batch.add(reading, to: group)
        entries[index].isFirst = message.isFirst
        let left = gathered.remove(reading, from: group)
        markSent(index, in: &batch)
        if left == 0 || message.isFull { batch.close(group) }
    }

    /// The number of messages that are due.
    func messages(at now: Duration) -> Int { pressing + gathered.messages(at: now) }

    /// The time after `now` at which further messages are due.
    func nextDue(after now: Duration) -> Duration? { gathered.nextDue(after: now) }

    /// Makes all unsent readings due.
    mutating func endGathering() {
        gathered.endAll()
    }

    /// Marks the first unsent reading of each stream as in flight and returns them.
    ///
    /// Streams with a reading in flight wait. If there is no room for all, the streams take turns.
    mutating func dequeueFirstOfEachStream(_ limit: Int, at now: Duration) -> DeliveryBatch {
        var batch = DeliveryBatch(sentAt: now)
        let candidates = firstOfEachStream.filter { index in
            entries[index].group.map { gathered.isDue($0, at: now) } ?? true
        }
        let turn = candidates.firstIndex { entries[$0].reading.seq > lastTurn } ?? 0
        let isTakingTurns = candidates.count > limit
        for index in isTakingTurns ? candidates[turn...] + candidates[..<turn] : candidates[...] {
            guard batch.messages.count < limit else { break }
            sendFirst(index, in: &batch, limit, at: now)
            lastTurn = entries[index].reading.seq
        }
        return batch
    }

    /// Sends the message of a stream that begins with a reading.
    private mutating func sendFirst(_ index: Int, in batch: inout DeliveryBatch, _ limit: Int, at now: Duration) {
        guard send(index, in: &batch, limit, at: now), let group = entries[index].group else { return }
        for later in entries.indices[(index + 1)...] {
            guard batch.isOpen(group) else { break }
            if entries[later].state == .unsent, entries[later].group == group { add(later, to: group, in: &batch) }
        }
        batch.close(group)
    }

    /// The indices of the first unsent readings of all streams without a reading in flight.
    private var firstOfEachStream: [Int] {
        var streams: Set<StreamKey> = []
        return entries.indices[first...].filter { index in
            let entry = entries[index]
            guard !entry.mayPass else { return false }
            return streams.insert(StreamKey(entry.reading)).inserted && entry.state == .unsent
        }
    }

    private mutating func markSent(_ index: Int, in batch: inout DeliveryBatch) {
        if entries[index].wasSent { batch.countAgain() }
        entries[index].markSent(at: batch.sentAt)
        if entries[index].isFirst { inFlight += 1 }
        unsent -= 1
    }

    /// The reading of `seq`, if it is in flight, and the time at which it was sent.
    func inFlightReading(_ seq: Int64) -> (reading: JournalReading, sentAt: Duration)? {
        guard let index = index(of: seq), entries[index].state == .inFlight else { return nil }
        return (entries[index].reading, entries[index].sentAt)
    }

    /// True if the reading, or an earlier one of its stream, is still to be published or acknowledged.
    func awaits(_ reading: JournalReading) -> Bool {
        let stream = StreamKey(reading)
        return entries[first...].prefix { $0.reading.seq <= reading.seq }
            .contains { !$0.mayPass && StreamKey($0.reading) == stream }
    }

    /// True if an earlier reading of the stream has to be sent again, after this one, and no newer one will follow.
    func needsRepetition(_ seq: Int64) -> Bool {
        guard let index = index(of: seq) else { return false }
        let (stream, sentAt) = (StreamKey(entries[index].reading), entries[index].sentAt)
        let isEarlierDue = entries[first..<index].contains { entry in
            (entry.state == .unsent || entry.state == .inFlight && entry.sentAt > sentAt)
                && StreamKey(entry.reading) == stream
        }
        return isEarlierDue
            && !entries[(index + 1)...].contains { !$0.mayPass && StreamKey($0.reading) == stream }
    }

    /// The reading in flight that was sent first; `nil` if none was sent before `time`.
    func sent(before time: Duration) -> Int64? {
        let owed = entries[first...].lazy.filter { $0.state == .inFlight && $0.sentAt < time }
        return owed.min { $0.sentAt < $1.sentAt }?.reading.seq
    }

    /// Marks a reading in flight as acknowledged and advances the cursor over contiguous entries.
    mutating func acknowledge(_ seq: Int64, isConfirmed: Bool, at now: Duration) {
        guard let index = index(of: seq), entries[index].state == .inFlight else { return }
        entries[index].state = .acknowledged
        entries[index].isConfirmed = isConfirmed
        entries[index].passedAt = now
        if entries[index].isFirst { inFlight -= 1 }
        if entries[index].isLate { delayed.endHold(seq) }
        advance(at: now)
    }

    private mutating func advance(at now: Duration) {
        while first < entries.count, entries[first].mayPass {
            cursor = max(cursor, entries[first].reading.seq)
            if !entries[first].isKept { entries[first].passedAt = now }
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
    var resumePointDueSince: Duration? {
        trail.resumable < first ? entries[trail.resumable].passedAt : nil
    }

    /// Moves the resume point over entries passed by the cursor up to `time`, and over all but the last `trail`
    /// entries; it stays before delayed readings that came after `delayTime` or are among the last `trail`.
    mutating func moveResumePoint(before time: Duration, trail limit: Int, delayedBefore delayTime: Duration) {
        trail.moveResumePoint(over: entries, to: first, before: time, limit: limit)
        if !delayed.isEmpty { delayed.limitHolds(before: delayTime, end: appended, limit: limit) }
    }

    /// Excludes entries passed by the cursor up to `time` from republication.
    mutating func moveReplayPoint(before time: Duration) {
        trail.moveReplayPoint(over: entries, to: first, before: time)
    }

    /// Excludes all entries passed by the cursor from republication.
    mutating func moveReplayPointToCursor() {
        trail.moveReplayPoint(over: entries, toIndex: first)
    }

    /// Marks all readings after the replay point as unsent; the cursor stays.
    ///
    /// - Parameters:
    ///   - time: The time after which acknowledged readings beyond the cursor are published again.
    ///   - now: The time.
    mutating func putBackAll(acknowledgedAfter time: Duration, at now: Duration) {
        for index in trail.kept..<entries.count
        where entries[index].state == .acknowledged && (index < first || entries[index].passedAt > time) {
            putBackAcknowledged(at: index)
        }
        (first, next) = (trail.kept, trail.kept)
        trail.rewind(to: first)
        for index in first..<entries.count where entries[index].state == .inFlight { putBack(at: index) }
        putBackNewest()
        advance(at: now)
    }

    /// Marks the newest acknowledged reading of each stream as unsent if an earlier one is sent again: otherwise that
    /// one would be the last message of its topic.
    private mutating func putBackNewest() {
        var newest: [StreamKey: Int] = [:]
        for index in entries.indices.reversed() {
            let entry = entries[index]
            guard entry.state != .skipped else { continue }
            let stream = StreamKey(entry.reading)
            guard let last = newest[stream] else {
                newest[stream] = index
                continue
            }
            if entry.state == .unsent, entries[last].state == .acknowledged { putBackAcknowledged(at: last) }
        }
    }

    private mutating func putBackAcknowledged(at index: Int) {
        putBack(at: index, isInFlight: false)
        entries[index].isKept = entries[index].isConfirmed
    }

    /// Forgets which readings the session before acknowledged, because a further session was lost.
    mutating func clearKept() {
        for index in entries.indices where entries[index].isKept { entries[index].isKept = false }
    }

    /// Excludes the readings that the last session acknowledged from republication, up to the first other one of each
    /// stream.
    ///
    /// The times at which the cursor passed them stay, so further sessions soon exclude them.
    mutating func passKept(at now: Duration) {
        var others: Set<StreamKey> = []
        for index in first..<entries.count where !entries[index].mayPass {
            let stream = StreamKey(entries[index].reading)
            if !entries[index].isKept {
                others.insert(stream)
            } else if entries[index].state == .unsent, !others.contains(stream) {
                acknowledgeUnsent(index)
            }
        }
        advance(at: now)
    }

    private mutating func acknowledgeUnsent(_ index: Int) {
        entries[index].state = .acknowledged
        unsent -= 1
        if let group = entries[index].group { gathered.remove(entries[index].reading, from: group) }
    }

    private mutating func putBack(at index: Int, isInFlight: Bool = true) {
        if isInFlight, entries[index].isFirst { inFlight -= 1 }
        entries[index].state = .unsent
        entries[index].isFirst = true
        unsent += 1
        next = min(next, index)
        if let group = entries[index].group { gathered.putBack(entries[index].reading, to: group) }
    }

    /// Returns the index of `seq`.
    ///
    /// Each entry has a higher number than the one before. The distances from the first and from the last number
    /// therefore bound the index, and as few numbers are left out, hardly anything is left to search.
    private func index(of seq: Int64) -> Int? {
        guard first < entries.count else { return nil }
        let end = entries.count - 1
        let (lowest, highest) = (entries[first].reading.seq, entries[end].reading.seq)
        guard lowest <= seq, seq <= highest else { return nil }
        var low = max(first, end - Int(clamping: highest - seq))
        var high = min(end, first + Int(clamping: seq - lowest))
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].reading.seq < seq { low = middle + 1 } else { high = middle }
        }
        return entries[low].reading.seq == seq ? low : nil
    }

    /// Removes entries before the replay point, once there are enough to justify moving the rest.
    private mutating func compact() {
        trail.moveReplayPoint(over: entries, toIndex: first - ReplayTrail.memory)
        let count = trail.removeKept()
        guard count > 0 else { return }
        entries.removeFirst(count)
        first -= count
        next -= count
    }
}

/// Delayed readings.
extension DeliveryWindow {
    /// Makes delayed readings due, in the places that they have in the journal.
    ///
    /// No newer reading of their streams was published, or they would not be delayed any more.
    mutating func release(_ seqs: [Int64]) {
        for seq in seqs {
            guard let (reading, gathering) = delayed.remove(seq) else { continue }
            insert(reading, isGathered: gathering != nil)
        }
    }

    /// Removes the delayed readings of a device.
    mutating func removeDelayed(of device: String) {
        delayed.remove(device: device)
    }

    /// Inserts a reading that the cursor has passed; it holds up the cursor until it is acknowledged.
    private mutating func insert(_ reading: JournalReading, isGathered: Bool) {
        let index = entries[trail.kept...].firstIndex { $0.reading.seq >= reading.seq } ?? entries.count
        if index == entries.count || entries[index].reading.seq != reading.seq {
            entries.insert(Entry(reading: reading), at: index)
        }
        entries[index].state = .unsent
        entries[index].isLate = true
        if isGathered { entries[index].group = gathered.add(reading, due: .zero) }
        unsent += 1
        (first, next) = (min(first, index), min(next, index))
        trail.rewind(to: index)
    }
}
