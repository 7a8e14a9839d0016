import GattherdModel

/// The entries that some consumer has not acknowledged, and the cursor of each consumer.
///
/// The rows themselves are in history. The table `outbox` only has the positions of samples, a row for each extent;
/// events, rejects and clock corrections are found by their numbers. Only readings committed while there is a consumer
/// enter the journal, so the first configured output delivers no old readings. When a consumer is configured again, the
/// extents that it needs are rebuilt from the samples.
final class Journal {
    /// The number of acknowledged readings that stay, because deleting a few with each commit costs many page writes.
    private static let tolerated = 1000
    /// The divisor of a consumer's longest backlog: the part for which a skip makes room.
    private static let slack: Int64 = 16

    /// The progress that is not in the file yet.
    struct Progress {
        /// The cursors in the file, in the order of the consumers.
        fileprivate var saved: [Int64]
        /// The number of the last deleted reading.
        fileprivate var trimmed: Int64
    }

    private let tail: JournalTail
    private var cursors: JournalCursors
    /// The number of the last deleted reading.
    private var trimmed: Int64
    /// Readings with higher numbers that are not deleted are in `outbox`.
    private var start: Int64
    /// The last number whose extent may be missing, because the consumers of that time had all readings.
    ///
    /// Only a consumer that was not configured then, or that goes back, is behind it.
    private var lastTrimmed: Int64
    private let state: StateTable
    private var added = AddedEntries()
    private let table: CursorTable
    private let meter: BacklogMeter
    private let reader: JournalReader
    private let extents: ExtentTable
    /// The entries that consumers cannot get any more.
    let lost: LostEntries
    private let scan: RewindScan
    /// True if a consumer gets events, rejects and corrections.
    private let isFollowed: Bool
    private let connection: SQLiteConnection
    /// The numbers after ``unusedStart`` that no entry has.
    private(set) var unused: UnusedNumbers
    private var unusedStart: Int64

    /// Reads the cursors; a consumer without undelivered readings is at `head`, the newest entry.
    ///
    /// The numbers after `head`, up to and including `next`, are those that a crash has left out.
    init(
        _ consumers: [JournalConsumerOptions],
        _ connection: SQLiteConnection,
        _ table: CursorTable,
        _ state: StateTable,
        _ meter: BacklogMeter,
        _ tail: JournalTail,
        head: Int64,
        next: Int64
    ) throws(StoreFault) {
        self.connection = connection
        self.table = table
        self.state = state
        self.tail = tail
        self.meter = meter
        isFollowed = consumers.contains { $0.content == .everything }
        reader = try JournalReader(connection)
        lost = try LostEntries(connection, state)
        extents = try ExtentTable(connection)
        let scan = try RewindScan(connection, meter, extents)
        self.scan = scan
        start = try state.value(of: .journalFrom)
        lastTrimmed = try state.value(of: .journalTrimmed)
        if let newest = try Self.unjournaled(connection, state), newest > start {
            let reached = max(newest, lastTrimmed)
            // With one mark of the two, the next start would not rebuild the extents.
            try connection.transaction { () throws(StoreFault) in
                try state.set(.journalFrom, to: newest)
                try state.set(.journalTrimmed, to: reached)
            }
            (start, lastTrimmed) = (newest, reached)
        }
        let complete = max(scan.end ?? 0, start, lastTrimmed)
        let uncertain = max(complete, try lost.lastAbsent())
        cursors = try JournalCursors(of: consumers, table, connection, tail, uncertain: uncertain, head: head)
        let oldest = try connection.integer("SELECT min(first) FROM outbox")
        trimmed = oldest > 0 ? oldest - 1 : cursors.lowest ?? head
        unusedStart = max(complete, cursors.lowest ?? head)
        unused = try UnusedNumbers(connection, after: unusedStart, through: head)
        unused.add(after: head, through: next)
        try resumeReturned()
    }

    /// The newest reading, if it is not in `outbox` because there was no consumer when it was committed.
    private static func unjournaled(
        _ connection: SQLiteConnection,
        _ state: StateTable
    ) throws(StoreFault) -> Int64? {
        let newest = max(try connection.integer("SELECT max(seq) FROM head"), try state.value(of: .newestPast))
        let known = try connection.integer(
            "SELECT max(coalesce((SELECT max(last) FROM outbox), 0), coalesce((SELECT max(cursor) FROM consumer), 0))"
        )
        return newest > known ? newest : nil
    }

    /// Starts to rebuild the extents that were deleted while a consumer was not configured.
    private func resumeReturned() throws(StoreFault) {
        guard let lowest = cursors.lowest, lowest < lastTrimmed else { return }
        trimmed = min(trimmed, lowest)
        try scan.start(after: lowest, through: max(lastTrimmed, start))
        scan.didCommit()
    }

    /// True while the extents after `seq` are being rebuilt, so that entries could be passed over.
    func isRebuilding(after seq: Int64) -> Bool { scan.end != nil && seq < lastTrimmed }

    // MARK: - Adding

    /// Adds a reading that is in history already; only in a transaction, with ``flush()`` after the last reading.
    ///
    /// The time `now` is that of its arrival; a record of the past has an earlier time of its own.
    func append(_ reading: JournalReading, at now: Int64) throws(StoreFault) {
        if let extent = added.append(reading, at: now) { try extents.insert(extent) }
        meter.add(reading.size)
    }

    /// Adds an event, a reject or a correction that is in history already; only in a transaction.
    func append(_ entry: @autoclosure () -> JournalEntry) {
        if isFollowed { added.append(entry()) }
    }

    /// Writes the current extent.
    func flush() throws(StoreFault) {
        if let extent = added.removeExtent() { try extents.insert(extent) }
    }

    /// Makes consumers read entries from the file again, because their times are being corrected there.
    func discardTail() { tail.removeOutdated() }

    /// Hands the committed entries between these two numbers over to the consumers.
    func release(after start: Int64, through end: Int64) {
        tail.append(added.entries, after: start, through: end)
        added.removeAll()
    }

    /// Discards the changes of a transaction that failed.
    func didRollBack() {
        added.removeAll()
        scan.didRollBack()
    }

    /// Records that the changes are committed.
    func didCommit() { scan.didCommit() }

    // MARK: - Consumers

    /// The lowest cursor; all consumers have acknowledged the entries up to it.
    var delivered: Int64 { cursors.lowest ?? trimmed }

    /// The last number that all consumers have received, or will receive although it may be dropped here.
    var handedOver: Int64 { cursors.handedOver ?? trimmed }

    /// The cursor of a consumer; `nil` if there is no such consumer.
    func cursor(of consumer: String) -> Int64? { cursors[consumer]?.seq }

    /// The last number that a consumer has acknowledged; `nil` if it has only skipped entries up to its cursor.
    func acknowledged(by consumer: String) -> Int64? {
        cursors[consumer].flatMap { $0.seq > $0.skipped ? $0.seq : nil }
    }

    /// Reads entries back that a consumer has not skipped, or the gap before them; see ``JournalReader``.
    ///
    /// No correction is skipped.
    func entries(
        after seq: Int64,
        limit: Int,
        for consumer: String,
        head: Int64,
        _ shifts: [ClockShift]
    ) throws(StoreFault) -> JournalBatch {
        guard let cursor = cursors[consumer] else { return JournalBatch([], through: head) }
        if let gap = cursor.gap(after: seq) { return try correction(in: gap, for: cursor.consumer) }
        let place = max(seq, cursor.skipped)
        let request = JournalReader.Request(after: place, limit: limit, head: head, shifts: shifts)
        let entries = try reader.read(request, cursor.consumer.content)
        let batch = try lost.cut(entries, after: place, dropped: start)
        cursors.didRead(through: batch.entries.last?.seq ?? 0, by: consumer)
        return batch
    }

    /// Returns the next correction among skipped entries if the gap begins with it, or what is missing before it.
    ///
    /// The correction may concern entries that the consumer has received before.
    private func correction(
        in gap: JournalGap,
        for consumer: JournalConsumerOptions
    ) throws(StoreFault) -> JournalBatch {
        guard consumer.content == .everything, let next = try reader.correction(after: gap.after),
            next.seq <= gap.through
        else { return JournalBatch(missing: gap) }
        guard next.seq - 1 > gap.after else { return JournalBatch([next], through: next.seq) }
        return JournalBatch(missing: JournalGap(after: gap.after, through: next.seq - 1, reason: gap.reason))
    }

    /// Moves a consumer's cursor forward, never back.
    func acknowledge(through seq: Int64, by consumer: String) {
        cursors.acknowledge(through: seq, by: consumer)
    }

    /// Moves the cursors of another file's journal forward to the same numbers.
    func acknowledge(_ cursors: [String: Int64], through head: Int64) {
        for (consumer, seq) in cursors { acknowledge(through: min(seq, head), by: consumer) }
    }

    /// The cursors of all consumers, by name.
    var cursorsByName: [String: Int64] { cursors.byName }

    /// A gap in the entries that a consumer gets.
    struct Gap {
        let consumer: String
        let after: Int64
        let through: Int64
        let readings: Int
    }

    /// Moves the cursors of consumers that may skip entries, and are too far behind `head`, forward.
    ///
    /// Each skip makes room for many entries. Its event is an entry itself, and must not cause the next skip.
    func skip(head: Int64) throws(StoreFault) -> [Gap] {
        var gaps: [Gap] = []
        for cursor in cursors.all {
            let consumer = cursor.consumer
            guard let longest = consumer.longestBacklog, isSkipDue(cursor, head) else { continue }
            // Entries that the consumer holds count as skipped, too: after a restart it does not get them again.
            let start = cursor.seq
            let end = unused.start(ofLast: longest - longest / Self.slack, through: head)
            let count = try extents.count(after: start, through: end)
            let first = try reader.first(after: start, consumer.content) ?? .max
            // Entries that were lost before are in the gap, too.
            let hasLost = try lost.hasLost(after: start, through: end, dropped: self.start)
            cursors.skip(through: end, by: consumer.name, isLoss: hasLost || first <= end)
            if count > 0 {
                gaps.append(Gap(consumer: consumer.name, after: start, through: end, readings: Int(clamping: count)))
            }
        }
        return gaps
    }

    /// True if a consumer must skip entries.
    func isSkipDue(head: Int64) -> Bool {
        cursors.all.contains { isSkipDue($0, head) }
    }

    private func isSkipDue(_ cursor: JournalCursor, _ head: Int64) -> Bool {
        guard let longest = cursor.consumer.longestBacklog else { return false }
        let start = cursor.handedOver(tail)
        guard head - start > longest else { return false }
        // Readings whose extents are being rebuilt could not be counted.
        return head - start - unused.count(after: start, through: head) > longest && !isRebuilding(after: cursor.seq)
    }

    // MARK: - Going back

    /// The cursors before a rewind that is not committed.
    struct Places {
        fileprivate let cursors: JournalCursors
        fileprivate let trimmed: Int64
        fileprivate let lastTrimmed: Int64
    }

    var places: Places { Places(cursors: cursors, trimmed: trimmed, lastTrimmed: lastTrimmed) }

    /// Restores the cursors after a rewind that could not be committed.
    func restore(_ places: Places) {
        (cursors, trimmed, lastTrimmed) = (places.cursors, places.trimmed, places.lastTrimmed)
    }

    /// Moves a cursor to `seq`, and starts to rebuild the deleted extents after it; only in a transaction.
    ///
    /// A consumer that would be too far behind `head` skips the oldest entries: at once if their number is known, else
    /// after the scan.
    func rewind(_ consumer: String, to seq: Int64, head: Int64) throws(StoreFault) {
        guard let options = cursors[consumer]?.consumer else { return }
        let limit = options.longestBacklog.map { unused.start(ofLast: $0, through: head) }
        let start = seq < unusedStart ? seq : max(seq, limit ?? seq)
        try rewind(consumer, to: start)
        try readUnused()
        guard start > seq else { return }
        cursors.move(consumer, to: seq)
        cursors.skip(through: start, by: consumer, isLoss: true)
    }

    private func rewind(_ consumer: String, to seq: Int64) throws(StoreFault) {
        var complete = max(trimmed, start, lastTrimmed)
        if seq < delivered, try state.value(of: .lastDeleted) > seq {
            // Samples of readings that all consumers had may have been deleted.
            complete = max(complete, delivered)
            try extents.delete(after: seq, through: delivered, meter)
            lastTrimmed = max(lastTrimmed, delivered)
            try state.set(.journalTrimmed, to: lastTrimmed)
            trimmed = seq
        }
        cursors.move(consumer, to: seq)
        trimmed = min(trimmed, seq)
        if seq < complete { try scan.start(after: seq, through: complete) }
    }

    /// True if extents are being rebuilt that a consumer needs.
    var isScanDue: Bool { scan.end != nil }

    /// Rebuilds some extents; only in a transaction.
    func stepScan() throws(StoreFault) {
        guard let end = scan.end else { return }
        guard let lowest = cursors.lowest, lowest < end else { return try scan.cancel() }
        guard meter.isExact else { return try meter.count() }
        guard let first = try scan.step() else { return }
        if first < start { try state.set(.journalFrom, to: first) }
        if first < lastTrimmed { try state.set(.journalTrimmed, to: first) }
    }

    /// Reads the start of the journal again from the file; call this after a commit that changed it.
    func readStart() throws(StoreFault) {
        try scan.reload()
        start = try state.value(of: .journalFrom)
        lastTrimmed = try state.value(of: .journalTrimmed)
        try readUnused()
    }

    /// Finds the unused numbers among those whose extents were rebuilt.
    private func readUnused() throws(StoreFault) {
        let floor = max(delivered, start, lastTrimmed)
        guard scan.end == nil, floor < unusedStart else { return }
        unused.addLower(try UnusedNumbers(connection, after: floor, through: unusedStart))
        unusedStart = floor
    }

    /// Adds the unused numbers above `floor`, which is above all others.
    func addUnused(_ numbers: UnusedNumbers, above floor: Int64) { unused.add(numbers, above: floor) }

    // MARK: - Saving

    /// True if the next commit should save a cursor or a mark, or delete readings that all consumers have passed.
    var isSaveDue: Bool {
        cursors.isSaveDue || lost.isSaveDue || delivered - trimmed > Self.tolerated
    }

    /// True if the next commits delete readings that all consumers have passed.
    ///
    /// With a dead consumer it is false, however fast the others are.
    var isTrimDue: Bool {
        let lowest = delivered
        return lowest - trimmed > Self.tolerated || cursors.all.contains { $0.isSaveDue && $0.seq == lowest }
    }

    /// True if a cursor has passed so many entries that a crash should not repeat them.
    var isSaveUrgent: Bool { cursors.isSaveUrgent }

    /// True if there is nothing left to do.
    var isFullySaved: Bool { !cursors.isSaveDue && delivered == trimmed }

    /// Writes the cursors and deletes some of the readings that all cursors have passed; only in a transaction.
    ///
    /// - Parameter deletesAll: Deletes even if there is little to delete.
    /// - Returns: The progress, for ``didSave(_:)`` after the commit.
    /// - Throws: ``StoreFault`` if the file cannot be written.
    func save(deletesAll: Bool) throws(StoreFault) -> Progress {
        for cursor in cursors.all where cursor.isSaveDue { try table.set(cursor.consumer.name, to: cursor.seq) }
        try lost.save()
        var progress = Progress(saved: cursors.all.map(\.seq), trimmed: trimmed)
        guard deletesAll || delivered - trimmed > Self.tolerated else { return progress }
        progress.trimmed = try extents.chunkEnd().map { min(delivered, $0) } ?? delivered
        if progress.trimmed > lastTrimmed { try state.set(.journalTrimmed, to: progress.trimmed) }
        try extents.delete(through: progress.trimmed, meter)
        return progress
    }

    /// Records that the result of ``save(deletesAll:)`` is committed.
    func didSave(_ progress: Progress) {
        cursors.didSave(progress.saved)
        trimmed = progress.trimmed
        lastTrimmed = max(lastTrimmed, trimmed)
        lost.didSave()
    }
}
