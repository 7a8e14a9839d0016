import GattherdModel

/// The exchange with the journal.
extension DeliveryMachine {
    /// The number of readings fetched at once.
    private static let fetchLimit = 256
    /// The number of unpublished readings below which more are fetched.
    private static let lowWater = 128
    /// The maximum number of readings kept behind one that is held back.
    private static let longestSpan = 4096

    mutating func cursorLoaded(_ seq: Int64) {
        guard window == nil else { return }
        window = DeliveryWindow(cursor: seq)
        savedCursor = seq
        loadAt = nil
        settleBacklog()
    }

    /// Records a new head; the first is the existing journal (0: empty), and only later ones count as commits.
    mutating func headMoved(to seq: Int64, at now: Duration) {
        guard let head else {
            head = seq
            return settleBacklog()
        }
        if seq > head { pace.committed(Int(clamping: seq - head), at: now) }
        self.head = max(head, seq)
    }

    /// Delays the backlog if the broker answered before the journal did.
    private mutating func settleBacklog() {
        if case .connected(let since) = phase, backlog > 0 { drainAt = max(drainAt, since + options.settle) }
    }

    /// Appends fetched readings; fewer than requested mean that the journal had no more up to the head at that time.
    mutating func fetched(_ readings: [JournalReading], skipping: Set<Int64>, at now: Duration) {
        guard isFetching else { return }
        isFetching = false
        let isAll = readings.count < Self.fetchLimit
        window?.append(readings, skipping: skipping, through: isAll ? fetchingThrough : 0, at: now)
    }

    mutating func saved(_ seq: Int64) {
        isSaving = false
        savedCursor = max(savedCursor, seq)
    }

    mutating func logFailed(_ operation: LogOperation, at now: Duration) {
        switch operation {
        case .load: if !isClosing { loadAt = now + options.logPause }
        case .fetch:
            isFetching = false
            fetchAt = now + options.logPause
        case .save:
            isSaving = false
            saveAt = now + options.logPause
            saveNotBefore = saveAt
        }
    }

    mutating func load(at now: Duration) -> [Effect] {
        guard let loadAt, now >= loadAt else { return [] }
        self.loadAt = nil
        return [.loadCursor]
    }

    mutating func fetch(at now: Duration) -> [Effect] {
        guard let after = wantsToFetch, now >= fetchAt else { return [] }
        isFetching = true
        fetchingThrough = head ?? after
        return [.fetch(after: after, limit: Self.fetchLimit)]
    }

    /// Writes the resume point, which trails the cursor a little.
    ///
    /// So the next run publishes again any readings that a broker may have forgotten when it failed together with the
    /// gateway.
    mutating func save(at now: Duration) -> [Effect] {
        window?.settle(before: now - options.replay)
        window?.moveResumePoint(before: now - options.restartReplay, trail: Int(clamping: options.saveCount))
        guard let seq = wantsToSave, now >= saveDue(seq) else { return [] }
        isSaving = true
        saveAt = now + options.saveInterval
        return [.save(seq)]
    }

    /// The time of the next save; after a failure the pause always applies.
    private func saveDue(_ seq: Int64) -> Duration {
        seq - savedCursor >= options.saveCount ? saveNotBefore : saveAt
    }

    var loadDeadline: Duration? { loadAt }
    var fetchDeadline: Duration? { wantsToFetch == nil ? nil : fetchAt }
    var saveDeadline: Duration? {
        guard !isClosing, !isSaving else { return nil }
        if let seq = wantsToSave { return saveDue(seq) }
        return window?.resumePointDueSince.map { max(saveAt, $0 + options.restartReplay) }
    }

    var isClosing: Bool {
        if case .closing = phase { true } else { false }
    }

    private var wantsToFetch: Int64? {
        guard case .connected = phase, !isFetching, let window, let head else { return nil }
        guard window.unsent < Self.lowWater, window.span < Self.longestSpan else { return nil }
        return head > window.fetched ? window.fetched : nil
    }

    private var wantsToSave: Int64? {
        guard !isClosing, !isSaving, let window, window.resumePoint > savedCursor else { return nil }
        return window.resumePoint
    }
}
