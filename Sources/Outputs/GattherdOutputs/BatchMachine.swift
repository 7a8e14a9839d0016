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
        /// The remaining entries are delivered before the stop.
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
    private var position: BatchPosition
    private var call = SinkCall()
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
        position = BatchPosition(isKeptByReceiver: keepsCursor)
        requests = BatchRequests(options)
        receiver = ReceiverState(options, seed: seed)
        sizer = BatchSizer(options)
    }

    public var isFinished: Bool { phase == .stopped }
    public static var tick: Event? { .tick }

    public var output: Progress {
        var progress = Progress()
        progress.state = state
        progress.cursor = position.cursor
        progress.backlog = position.backlog(to: requests.head)
        (progress.delivered, progress.skipped, progress.failures) = (delivered, skipped, failures)
        (progress.fault, progress.nextTry) = (receiver.fault, receiver.retryAt)
        progress.oldest = queue?.first
        (progress.fetched, progress.fetchedBytes) = (queue?.count ?? 0, queue?.bytes ?? 0)
        progress.waitingSince = progress.backlog > 0 ? queue?.gatheringSince : nil
        progress.completeUntil = position.completeUntil
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

    private var queue: FetchedEntries? { position.queue }
    private var receiverCursor: ReceiverCursor { position.receiverCursor }

    // MARK: - Events

    /// Applies one event and returns the resulting effects, in order.
    ///
    /// An event that the state does not expect, or that belongs to an earlier call of the sink, changes nothing.
    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        guard phase != .stopped else { return [] }
        position.updateCompletion(to: requests.head, at: now)
        let effects = apply(event, at: now)
        removeOutdated(at: now)
        return effects + work(at: now)
    }

    private mutating func apply(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .start: start(at: now)
        case .stop(let drain): return stop(drain: drain, at: now)
        case .tick: return tick(at: now)
        case .headMoved(let seq):
            requests.headMoved(to: seq)
            position.headMoved(to: requests.head, at: now)
        case .cursorLoaded(let seq):
            if position.loaded(seq, head: requests.head, at: now) { requests.cursorLoaded(seq) }
        case .fetched(let batch): return fetched(batch, at: now)
        case .timesCorrected: position.timesCorrected()
        case .saved(let seq): requests.saved(seq)
        case .journalFailed(.rewind): position.receiverCursor.rewindFailed(retryAt: now + options.journalPause)
        case .journalFailed(let operation): requests.failed(operation, at: now)
        case .rewound:
            if let seq = position.rewound(head: requests.head, at: now) { requests.cursorLoaded(seq) }
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
        return fetch(at: now) + write(at: now) + requests.save(position.cursor, at: now)
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
        guard position.isComplete(to: requests.head ?? 0), !call.isRunning else { return false }
        return !requests.needsLastFetch && !requests.isFetching
    }

    private mutating func close(at now: Duration) -> [Effect] {
        phase = .closing(until: now + options.stopLimit)
        requests.stopLoading()
        return call.cancel()
    }

    /// Closes the sink once its call has ended, and saves the cursor.
    private mutating func closeSinkAndSaveCursor() -> [Effect] {
        var effects = receiverCursor.isKnown ? requests.saveLast(position.cursor) : []
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

    private mutating func fetched(_ batch: JournalBatch, at now: Duration) -> [Effect] {
        // Without a queue the receiver has another cursor, and these entries are obsolete.
        guard requests.fetched(hasProgress: queue?.isBehind(batch) ?? true, at: now) else { return [] }
        let gap = position.append(batch, head: requests.head, at: now)
        // A receiver that keeps the cursor records the gap first; any other gap must not pass unnoticed.
        guard !receiverCursor.isKept, let gap else { return [] }
        return [.report(.missing(gap))]
    }

    /// Removes entries with outdated times, which are fetched again, once no call and no fetch has some of them.
    private mutating func removeOutdated(at now: Duration) {
        guard position.isOutdated, receiverCursor.refused == nil, !call.isRunning, !requests.isFetching else { return }
        position.removeOutdated(head: requests.head, at: now)
        if case .draining = phase { requests.requireLastFetch() }
    }

    /// The time of the next fetch; `nil` if none is needed.
    private var fetchTime: Duration? {
        guard let queue, queue.gap == nil, receiverCursor.isKnown, !position.isOutdated else { return nil }
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
        guard !queue.isEmpty, !position.isOutdated else { return nil }
        if let retryAt = receiver.retryAt { return retryAt }
        if queue.gap != nil { return .zero }
        if case .draining = phase { return .zero }
        return queue.count >= sizer.size || queue.bytes >= options.bytes ? .zero : gatheringEnd
    }

    private mutating func write(at now: Duration) -> [Effect] {
        guard let time = writeTime, now >= time, let cursor = position.cursor else { return [] }
        if let gap = position.nextGap { return [.record(gap, ticket: startCall(.record(gap), at: now))] }
        guard let batch = position.nextBatch(entries: sizer.size, bytes: options.bytes) else { return [] }
        let ticket = startCall(.write(count: batch.entries.count, through: batch.through), at: now)
        position.startedWrite(of: batch.entries.count, head: requests.head, at: now)
        return [.write(batch.entries, after: cursor, through: batch.through, ticket: ticket)]
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
        case (.write(let count, _), let fault?) where fault.kind == .unavailable:
            if isSlow(ended) {
                sizer.timedOut(count)
            } else {
                sizer.failed(count, isAnswered: fault.retryAfter != nil)
            }
            return failed(fault, at: now)
        case (_, let fault?): return failed(fault, at: now)
        }
    }

    /// True if the call may have failed because the batch took too long.
    ///
    /// Sinks have limits of their own, and connections may end every few seconds.
    private func isSlow(_ ended: SinkCall.Ended) -> Bool { ended.duration >= options.slowLimit }

    private mutating func accepted(_ count: Int, _ through: Int64, isFast: Bool, at now: Duration) -> [Effect] {
        position.accepted(count, through: through)
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
        position.skipFirst()
        skipped += 1
        let report = effects + [.report(.skipped(entry, fault))]
        // A receiver that keeps the cursor moves it over the entry first.
        return receiverCursor.isKept ? report : report + failedIfAllIsRefused(at: now)
    }

    private mutating func failedIfAllIsRefused(at now: Duration) -> [Effect] {
        sizer.refusalOfAll.map { failed($0, at: now) } ?? []
    }

    private mutating func failed(_ fault: OutputFault, at now: Duration) -> [Effect] {
        failures += 1
        position.receiverCursor.doubt()
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
            position.receiverCursor.ask()
            return [.loadReceiverCursor(ticket: startCall(.cursor, at: now))]
        case .found: return position.receiverCursor.rewind()
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
        position.receiverAnswered(seq)
    }

    private mutating func recorded(_ gap: JournalGap, at now: Duration) -> [Effect] {
        position.recorded(gap, head: requests.head, at: now)
        return [.report(.missing(gap))] + receiver.accepted()
    }

    /// Records that the receiver works, once it has answered and has all entries.
    private mutating func acceptedIfComplete() -> [Effect] {
        guard receiverCursor.isKept, receiverCursor.isKnown, !receiver.isConnected, !call.isRunning,
            let head = requests.head, position.isComplete(to: head)
        else { return [] }
        return receiver.accepted()
    }

    // MARK: - Time

    /// The time at which ``Event/tick`` must be sent; `nil` while nothing depends on time.
    public var deadline: Duration? {
        let saveTime = receiverCursor.isKnown ? requests.saveTime(of: position.cursor) : nil
        let work = [requests.loadAt, locateTime, fetchTime, writeTime, saveTime, call.end]
        switch phase {
        case .idle, .stopped: return nil
        case .running: return work.compactMap(\.self).min()
        case .draining(let until): return min(until, work.compactMap(\.self).min() ?? until)
        case .closing(let until): return until
        }
    }
}
