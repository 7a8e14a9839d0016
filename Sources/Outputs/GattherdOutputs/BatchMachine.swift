import GattherdModel
public import GattherdTransducer

/// The state machine of an output that delivers entries in batches.
///
/// Events in, effects out; no clock and no I/O. Entries are written in the order of the journal, at least once. The
/// cursor passes an entry when the receiver has stored it or refused it permanently. One batch is in the sink at a
/// time, and at most one more waits in memory. A receiver that keeps the cursor itself is asked for it first, and after
/// each fault.
public struct BatchMachine: Transducer {
    private enum Phase: Hashable {
        case idle
        case running
        /// The rest is delivered.
        case draining(until: Duration)
        /// The sink is closed, and the cursor is saved for the last time.
        case closing(until: Duration)
        case stopped
    }

    private let options: BatchOptions
    private var phase = Phase.idle
    private var requests: BatchRequests
    private var receiver: ReceiverState
    private var sizer: BatchSizer
    /// The fetched entries, those in the sink included; `nil` until the cursor is loaded.
    private var queue: FetchedEntries?
    private var cursor: Int64?
    /// The cursor of the last run, which counts the backlog until a receiver that keeps the cursor has answered.
    private var lastKnown: Int64?
    private var call = SinkCall()
    private var receiverCursor: ReceiverCursor
    private var delivered: UInt64 = 0
    private var skipped: UInt64 = 0
    private var failures: UInt64 = 0
    private var isClosing = false
    private var isClosed = false

    /// Creates an idle machine.
    ///
    /// - Parameters:
    ///   - options: The limits and durations.
    ///   - keepsCursor: True for a ``CursorKeepingSink``.
    ///   - seed: Determines the jitter of retries.
    public init(options: BatchOptions = BatchOptions(), keepsCursor: Bool = false, seed: UInt64) {
        self.options = options
        receiverCursor = ReceiverCursor(isKept: keepsCursor)
        requests = BatchRequests(options)
        receiver = ReceiverState(options, seed: seed)
        sizer = BatchSizer(options)
    }

    public var isFinished: Bool { phase == .stopped }
    public static var tick: Event? { .tick }

    public var output: Progress {
        var progress = Progress()
        progress.state = state
        progress.cursor = cursor
        progress.backlog = backlog
        (progress.delivered, progress.skipped, progress.failures) = (delivered, skipped, failures)
        (progress.fault, progress.nextTry) = (receiver.fault, receiver.retryAt)
        progress.oldest = queue?.first
        (progress.fetched, progress.fetchedBytes) = (queue?.count ?? 0, queue?.bytes ?? 0)
        progress.waitingSince = backlog > 0 ? queue?.gatheringSince : nil
        return progress
    }

    private var state: OutputStatus.State {
        switch phase {
        case .idle: .idle
        case .stopped: .stopped
        case .draining, .closing: .stopping
        case .running where receiver.isConnected: .connected
        case .running where call.isWanted: .connecting
        case .running: receiver.hasFailed ? .waiting : .idle
        }
    }

    private var backlog: Int64 {
        guard let head = requests.head, let cursor = cursor ?? lastKnown else { return 0 }
        guard let queue, queue.isEmpty else { return max(0, head - cursor) }
        return max(0, head - queue.through)
    }

    // MARK: - Events

    /// Applies one event and returns the resulting effects, in order.
    ///
    /// An event that the state does not expect, or that belongs to an earlier call of the sink, changes nothing.
    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        guard phase != .stopped else { return [] }
        return apply(event, at: now) + work(at: now)
    }

    private mutating func apply(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .start: start(at: now)
        case .stop(let drain): return stop(drain: drain, at: now)
        case .tick: return tick(at: now)
        case .headMoved(let seq): headMoved(to: seq, at: now)
        case .cursorLoaded(let seq): cursorLoaded(seq, at: now)
        case .fetched(let batch): return fetched(batch, at: now)
        case .saved(let seq): requests.saved(seq)
        case .journalFailed(.rewind): receiverCursor.rewindFailed(retryAt: now + options.journalPause)
        case .journalFailed(let operation): requests.failed(operation, at: now)
        case .rewound: rewound(at: now)
        case .written(let ticket, let fault): return finished(ticket, fault, at: now)
        case .receiverCursorLoaded(let ticket, let seq): receiverCursorLoaded(ticket, seq, at: now)
        case .closed: isClosed = true
        }
        return []
    }

    /// Returns the work that the current state requires.
    private mutating func work(at now: Duration) -> [Effect] {
        switch phase {
        case .idle, .stopped: []
        case .running: requests.load(at: now) + locate(at: now) + deliver(at: now)
        case .draining: isDrained ? close(at: now) + closeSinkAndSaveCursor() : deliver(at: now)
        case .closing: closeSinkAndSaveCursor()
        }
    }

    private mutating func deliver(at now: Duration) -> [Effect] {
        guard receiverCursor.isKnown else { return [] }
        return fetch(at: now) + write(at: now) + requests.save(cursor, at: now)
    }

    // MARK: - Life

    private mutating func start(at now: Duration) {
        guard phase == .idle else { return }
        phase = .running
        if !receiverCursor.isKept { requests.startLoading(at: now) }
    }

    /// Delivers the rest, unless the receiver does not work now.
    private mutating func stop(drain: Duration, at now: Duration) -> [Effect] {
        switch phase {
        case .idle: return close(at: now)
        case .running:
            guard queue != nil, receiverCursor.isKnown, !receiver.hasFailed, drain > .zero else {
                return close(at: now)
            }
            phase = .draining(until: now + drain)
            requests.requireLastFetch()
        case .draining(let until): phase = .draining(until: min(until, now + drain))
        case .closing, .stopped: break
        }
        return []
    }

    private var isDrained: Bool {
        guard let queue, queue.isEmpty, !call.isRunning, receiverCursor.refused == nil else { return false }
        return !requests.needsLastFetch && !requests.isFetching && (requests.head ?? 0) <= queue.through
    }

    private mutating func close(at now: Duration) -> [Effect] {
        phase = .closing(until: now + options.stopLimit)
        requests.stopLoading()
        return call.cancel()
    }

    /// Closes the sink once its call has ended, and saves the cursor.
    private mutating func closeSinkAndSaveCursor() -> [Effect] {
        var effects = receiverCursor.isKnown ? requests.saveLast(cursor) : []
        if !call.isRunning, !isClosing {
            isClosing = true
            effects.append(.close)
        }
        guard isClosed, !requests.isSaving else { return effects }
        phase = .stopped
        return effects + [.finish]
    }

    private mutating func tick(at now: Duration) -> [Effect] {
        switch phase {
        case .closing(let until) where now >= until:
            phase = .stopped
            return [.finish]
        case .draining(let until) where now >= until: return close(at: now)
        case .running, .draining: return timeOut(at: now)
        case .idle, .closing, .stopped: return []
        }
    }

    private mutating func timeOut(at now: Duration) -> [Effect] {
        guard let end = call.end, now >= end else { return [] }
        let detail = "the receiver has not accepted a batch for \(options.writeTimeout); check it and its network"
        sizer.timedOut(call.count)
        return call.cancel() + failed(OutputFault(.unavailable, detail), at: now)
    }

    // MARK: - The journal

    private mutating func headMoved(to seq: Int64, at now: Duration) {
        requests.headMoved(to: seq)
        queue?.startGathering(to: requests.head, at: now)
    }

    private mutating func cursorLoaded(_ seq: Int64, at now: Duration) {
        guard !receiverCursor.isKept else { return lastKnown = seq }
        guard queue == nil else { return }
        start(after: seq, at: now)
        requests.cursorLoaded(seq)
    }

    private mutating func start(after seq: Int64, at now: Duration) {
        var fetched = FetchedEntries(after: seq)
        fetched.startGathering(to: requests.head, at: now)
        (cursor, queue) = (seq, fetched)
    }

    private mutating func fetched(_ batch: JournalBatch, at now: Duration) -> [Effect] {
        // Without a queue the receiver has another cursor, and these entries are obsolete.
        guard requests.fetched(hasProgress: queue?.isBehind(batch) ?? true, at: now) else { return [] }
        let gap = queue?.append(batch, recordsGaps: receiverCursor.isKept)
        guard let queue, queue.isEmpty else { return reports(of: gap) }
        // The cursor of a receiver that keeps it moves with the next entries.
        if !receiverCursor.isKept { cursor = queue.through }
        self.queue?.restartGathering(behind: 0, to: requests.head, at: now)
        return reports(of: gap)
    }

    /// Reports a gap that the receiver does not record itself, so that it does not pass unnoticed.
    private func reports(of gap: JournalGap?) -> [Effect] {
        guard !receiverCursor.isKept, let gap else { return [] }
        return [.report(.missing(gap))]
    }

    /// The time of the next fetch; `nil` if none is needed.
    private var fetchTime: Duration? {
        guard let queue, queue.gap == nil, receiverCursor.isKnown else { return nil }
        let (unsent, bytes) = (queue.count - call.count, call.count > 0 ? 2 * options.bytes : options.bytes)
        guard unsent < options.entries, queue.bytes < bytes else { return nil }
        return requests.fetchTime(after: queue.through, wantedAt: preferredFetchTime(queue, unsent))
    }

    /// The time at which more entries are of use: at once if a batch becomes full, else when the interval ends.
    private func preferredFetchTime(_ queue: FetchedEntries, _ unsent: Int) -> Duration {
        let known = (requests.head ?? 0) - queue.through + Int64(unsent)
        if case .draining = phase { return .zero }
        if known >= Int64(options.entries) || known > Int64(options.bytes / max(1, queue.entrySize)) { return .zero }
        return receiver.retryAt ?? gatheringEnd
    }

    private var gatheringEnd: Duration { queue?.gatheringSince.map { $0 + options.interval } ?? .zero }

    private mutating func fetch(at now: Duration) -> [Effect] {
        guard let time = fetchTime, now >= time, let queue else { return [] }
        return requests.fetch(after: queue.through, room: options.entries - (queue.count - call.count))
    }

    // MARK: - The sink

    /// The time of the next batch, or of the gap after the last one; `nil` without any, or while one is in the sink.
    private var writeTime: Duration? {
        guard !call.isRunning, receiverCursor.isKnown, let queue else { return nil }
        if receiverCursor.refused != nil { return receiver.retryAt ?? .zero }
        guard !queue.isEmpty else { return nil }
        if let retryAt = receiver.retryAt { return retryAt }
        if queue.gap != nil { return .zero }
        if case .draining = phase { return .zero }
        return queue.count >= sizer.size || queue.bytes >= options.bytes ? .zero : gatheringEnd
    }

    private mutating func write(at now: Duration) -> [Effect] {
        guard let time = writeTime, now >= time, let queue, let cursor else { return [] }
        if receiverCursor.refused == nil, queue.count == 0, let gap = queue.gap {
            return record(gap, after: cursor, at: now)
        }
        let batch = receiverCursor.refused == nil ? queue.prefix(entries: sizer.size, bytes: options.bytes) : []
        let last = batch.count < queue.count ? batch.last?.seq ?? cursor : queue.end
        let through = receiverCursor.refused ?? last
        let ticket = startCall(.write(count: batch.count, through: through), at: now)
        self.queue?.restartGathering(behind: batch.count, to: requests.head, at: now)
        return [.write(batch, after: cursor, through: through, ticket: ticket)]
    }

    /// Makes the receiver record a gap, which begins at its cursor.
    private mutating func record(_ gap: JournalGap, after cursor: Int64, at now: Duration) -> [Effect] {
        let gap = JournalGap(after: cursor, through: gap.through, reason: gap.reason)
        return [.record(gap, ticket: startCall(.record(gap), at: now))]
    }

    private mutating func startCall(_ work: SinkCall.Work, at now: Duration) -> Int {
        receiver.startAttempt()
        return call.start(work, at: now, limit: options.writeTimeout)
    }

    /// Records the end of the call.
    ///
    /// The receiver may have stored entries of a cancelled call.
    private mutating func finished(_ ticket: Int, _ fault: OutputFault?, at now: Duration) -> [Effect] {
        guard let ended = call.finish(ticket, at: now) else { return [] }
        switch (ended.work, fault) {
        case (.write(let count, let through), nil):
            return accepted(count, through, isFast: ended.duration <= options.fastLimit, at: now)
        case (.record(let gap), nil): return recorded(gap, at: now)
        case (.write(let count, let through), let fault?) where fault.kind == .refused && fault.lost > 0:
            return partlyAccepted(count, through, fault, isFast: ended.duration <= options.fastLimit, at: now)
        case (.write(let count, _), let fault?) where fault.kind == .refused && count > 0:
            return refused(count, fault, at: now)
        case (.cursor, nil): return []
        case (_, _?) where ended.wasCancelled: return []
        case (.write(let count, _), let fault?) where fault.kind == .unavailable && isSlow(ended):
            sizer.timedOut(count)
            return failed(fault, at: now)
        case (_, let fault?): return failed(fault, at: now)
        }
    }

    /// True if the call may have failed because the batch took too long.
    ///
    /// Sinks have limits of their own, and connections may end every few seconds.
    private func isSlow(_ ended: SinkCall.Ended) -> Bool { ended.duration >= options.slowLimit }

    private mutating func accepted(_ count: Int, _ through: Int64, isFast: Bool, at now: Duration) -> [Effect] {
        let passed = queue?.removeFirst(count)
        cursor = receiverCursor.isKept ? through : passed
        receiverCursor.moved(through: through)
        guard count > 0 else { return failedIfAllIsRefused(at: now) }
        delivered += UInt64(count)
        sizer.accepted(count, isFast: isFast)
        return receiver.accepted()
    }

    /// Passes a batch whose entries are stored, except some that the receiver will never accept.
    private mutating func partlyAccepted(
        _ count: Int,
        _ through: Int64,
        _ fault: OutputFault,
        isFast: Bool,
        at now: Duration
    ) -> [Effect] {
        let (first, lost) = (queue?.first, min(fault.lost, count))
        let effects = accepted(count, through, isFast: isFast, at: now)
        delivered -= UInt64(lost)
        skipped += UInt64(lost)
        return effects + (first.map { [.report(.lost(lost, $0, fault))] } ?? [])
    }

    /// Searches the refused entry and skips it.
    private mutating func refused(_ count: Int, _ fault: OutputFault, at now: Duration) -> [Effect] {
        let effects = receiver.refused(fault)
        guard sizer.refused(count, fault), let entry = queue?.first else { return effects }
        let passed = queue?.removeFirst(1)
        skipped += 1
        let report = effects + [.report(.skipped(entry, fault))]
        guard !receiverCursor.isKept else {
            receiverCursor.refuse(through: entry.seq)
            return report
        }
        cursor = passed
        return report + failedIfAllIsRefused(at: now)
    }

    private mutating func failedIfAllIsRefused(at now: Duration) -> [Effect] {
        sizer.refusalOfAll.map { failed($0, at: now) } ?? []
    }

    private mutating func failed(_ fault: OutputFault, at now: Duration) -> [Effect] {
        failures += 1
        receiverCursor.doubt()
        let effects = receiver.failed(fault, at: now)
        if case .draining = phase { return effects + close(at: now) }
        return effects
    }

    // MARK: - The receiver's cursor

    /// Asks the receiver for its cursor, and moves the journal there.
    private mutating func locate(at now: Duration) -> [Effect] {
        guard let time = locateTime, now >= time else { return acceptedIfComplete() }
        switch receiverCursor.state {
        case .unknown:
            receiverCursor.ask()
            return [.loadReceiverCursor(ticket: startCall(.cursor, at: now))]
        case .found: return receiverCursor.rewind()
        case .asking, .rewinding, .known: return []
        }
    }

    /// The time of the next step to a known cursor; `nil` if it is known, or an answer is awaited.
    private var locateTime: Duration? {
        switch receiverCursor.state {
        case .unknown: call.isRunning ? nil : max(receiverCursor.notBefore, receiver.retryAt ?? .zero)
        // An answer of the journal must not follow the new cursor.
        case .found: requests.isFetching || requests.isSaving ? nil : .zero
        case .asking, .rewinding, .known: nil
        }
    }

    private mutating func receiverCursorLoaded(_ ticket: Int, _ seq: Int64, at now: Duration) {
        guard let ended = call.finish(ticket, at: now), ended.work == .cursor, !ended.wasCancelled else { return }
        guard !receiverCursor.answered(max(0, seq), cursor: queue == nil ? nil : cursor) else { return }
        (cursor, queue) = (max(0, seq), nil)
    }

    private mutating func rewound(at now: Duration) {
        guard let seq = receiverCursor.rewound() else { return }
        requests.cursorLoaded(seq)
        start(after: seq, at: now)
    }

    private mutating func recorded(_ gap: JournalGap, at now: Duration) -> [Effect] {
        cursor = gap.through
        queue?.removeGap()
        queue?.restartGathering(behind: 0, to: requests.head, at: now)
        return [.report(.missing(gap))] + receiver.accepted()
    }

    /// Records that the receiver works, once it has answered and has all entries.
    private mutating func acceptedIfComplete() -> [Effect] {
        guard receiverCursor.isKept, receiverCursor.isKnown, !receiver.isConnected, !call.isRunning,
            let queue, queue.isEmpty,
            receiverCursor.refused == nil, let head = requests.head, head <= queue.through
        else { return [] }
        return receiver.accepted()
    }

    // MARK: - Time

    /// The time at which ``Event/tick`` must be sent; `nil` while nothing depends on time.
    public var deadline: Duration? {
        let saveTime = receiverCursor.isKnown ? requests.saveTime(of: cursor) : nil
        let work = [requests.loadAt, locateTime, fetchTime, writeTime, saveTime, call.end]
        switch phase {
        case .idle, .stopped: return nil
        case .running: return work.compactMap(\.self).min()
        case .draining(let until): return min(until, work.compactMap(\.self).min() ?? until)
        case .closing(let until): return until
        }
    }
}
