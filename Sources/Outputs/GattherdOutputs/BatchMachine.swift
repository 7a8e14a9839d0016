import GattherdModel
public import GattherdTransducer

/// The state machine of an output that delivers entries in batches.
///
/// Events in, effects out; no clock and no I/O. Entries are written in the order of the journal, at least once. The
/// cursor passes an entry when the receiver has it, or refuses it for good. One batch is in the sink at a time, and at
/// most one more waits in memory.
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

    /// The call of the sink.
    private enum Call: Hashable {
        case none
        case writing(count: Int, until: Duration)
        /// Cancelled, but not ended yet.
        case cancelled(count: Int)
    }

    private let options: BatchOptions
    private var phase = Phase.idle
    private var requests: BatchRequests
    private var receiver: ReceiverState
    private var sizer: BatchSizer
    /// The fetched entries, those in the sink included; `nil` until the cursor is loaded.
    private var queue: FetchedEntries?
    private var cursor: Int64?
    private var call = Call.none
    /// The number of the last call.
    private var ticket = 0
    /// The time since which entries gather.
    private var gatheringSince: Duration?
    private var delivered: UInt64 = 0
    private var skipped: UInt64 = 0
    private var failures: UInt64 = 0
    private var isClosing = false
    private var isClosed = false

    /// Creates an idle machine; `seed` determines the jitter of retries.
    public init(options: BatchOptions = BatchOptions(), seed: UInt64) {
        self.options = options
        requests = BatchRequests(options)
        receiver = ReceiverState(options, seed: seed)
        sizer = BatchSizer(most: options.entries)
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
        progress.waitingSince = backlog > 0 ? gatheringSince : nil
        return progress
    }

    private var state: OutputStatus.State {
        switch (phase, call) {
        case (.idle, _): .idle
        case (.stopped, _): .stopped
        case (.draining, _), (.closing, _): .stopping
        case (.running, _) where receiver.isConnected: .connected
        case (.running, .writing): .connecting
        case (.running, _): receiver.hasFailed ? .waiting : .idle
        }
    }

    private var backlog: Int64 {
        guard let head = requests.head, let queue, let cursor else { return 0 }
        return max(0, head - (queue.isEmpty ? queue.through : cursor))
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
        case .fetched(let batch): fetched(batch, at: now)
        case .saved(let seq): requests.saved(seq)
        case .journalFailed(let operation): requests.failed(operation, at: now)
        case .written(let number, let fault) where number == ticket: return written(fault, at: now)
        case .written: break
        case .closed: isClosed = true
        }
        return []
    }

    /// Returns the work that the current state requires.
    private mutating func work(at now: Duration) -> [Effect] {
        switch phase {
        case .idle, .stopped: []
        case .running: requests.load(at: now) + fetch(at: now) + write(at: now) + requests.save(cursor, at: now)
        case .draining:
            isDrained
                ? close(at: now) + workAtTheEnd()
                : fetch(at: now) + write(at: now) + requests.save(cursor, at: now)
        case .closing: workAtTheEnd()
        }
    }

    // MARK: - Life

    private mutating func start(at now: Duration) {
        guard phase == .idle else { return }
        phase = .running
        requests.startLoading(at: now)
    }

    /// Delivers the rest, unless the receiver does not work now.
    private mutating func stop(drain: Duration, at now: Duration) -> [Effect] {
        switch phase {
        case .idle: return close(at: now)
        case .running:
            guard queue != nil, !receiver.hasFailed, drain > .zero else { return close(at: now) }
            phase = .draining(until: now + drain)
            requests.requireLastFetch()
        case .draining(let until): phase = .draining(until: min(until, now + drain))
        case .closing, .stopped: break
        }
        return []
    }

    private var isDrained: Bool {
        guard let queue, queue.isEmpty, call == .none else { return false }
        return !requests.needsLastFetch && !requests.isFetching && (requests.head ?? 0) <= queue.through
    }

    private mutating func close(at now: Duration) -> [Effect] {
        phase = .closing(until: now + options.stopLimit)
        requests.stopLoading()
        return cancelCall()
    }

    private mutating func cancelCall() -> [Effect] {
        guard case .writing(let count, _) = call else { return [] }
        call = .cancelled(count: count)
        return [.cancelWrite(ticket: ticket)]
    }

    /// Closes the sink once its call has ended, and saves the cursor.
    private mutating func workAtTheEnd() -> [Effect] {
        var effects = requests.saveLast(cursor)
        if call == .none, !isClosing {
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
        guard case .writing(_, let until) = call, now >= until else { return [] }
        let detail = "the receiver has not taken a batch for \(options.writeTimeout); check it and its network"
        return cancelCall() + failed(OutputFault(.unavailable, detail), at: now)
    }

    // MARK: - The journal

    private mutating func headMoved(to seq: Int64, at now: Duration) {
        requests.headMoved(to: seq)
        startGathering(at: now)
    }

    private mutating func cursorLoaded(_ seq: Int64, at now: Duration) {
        guard queue == nil else { return }
        queue = FetchedEntries(after: seq)
        cursor = seq
        requests.cursorLoaded(seq)
        startGathering(at: now)
    }

    /// Starts the interval with the first entry that is committed and not in the sink.
    private mutating func startGathering(at now: Duration) {
        guard gatheringSince == nil, let queue, let head = requests.head, head > queue.through else { return }
        gatheringSince = now
    }

    private mutating func fetched(_ batch: JournalBatch, at now: Duration) {
        guard let before = queue?.through else { return }
        let after = max(batch.through, batch.entries.last?.seq ?? before)
        guard requests.fetched(hasProgress: after > before, at: now) else { return }
        queue?.append(batch)
        guard let queue, queue.isEmpty else { return }
        cursor = queue.through
        gatheringSince = nil
        startGathering(at: now)
    }

    /// The number of entries in the sink.
    private var inFlight: Int {
        switch call {
        case .none: 0
        case .writing(let count, _), .cancelled(let count): count
        }
    }

    /// The time of the next fetch; `nil` if none is needed.
    private var fetchTime: Duration? {
        guard let queue else { return nil }
        let (unsent, bytes) = (queue.count - inFlight, inFlight > 0 ? 2 * options.bytes : options.bytes)
        guard unsent < options.entries, queue.bytes < bytes else { return nil }
        return requests.fetchTime(after: queue.through, wantedAt: fetchWish(queue, unsent))
    }

    /// The time at which more entries are of use: at once if a batch becomes full, else when the interval ends.
    private func fetchWish(_ queue: FetchedEntries, _ unsent: Int) -> Duration {
        let known = (requests.head ?? 0) - queue.through + Int64(unsent)
        if case .draining = phase { return .zero }
        if known >= Int64(options.entries) || known > Int64(options.bytes / max(1, queue.entrySize)) { return .zero }
        return receiver.retryAt ?? gatheringEnd
    }

    private var gatheringEnd: Duration { gatheringSince.map { $0 + options.interval } ?? .zero }

    private mutating func fetch(at now: Duration) -> [Effect] {
        guard let time = fetchTime, now >= time, let queue else { return [] }
        return requests.fetch(after: queue.through, room: options.entries - (queue.count - inFlight))
    }

    // MARK: - The sink

    /// The time of the next batch; `nil` without entries, or while one is in the sink.
    private var writeTime: Duration? {
        guard call == .none, let queue, !queue.isEmpty else { return nil }
        if let retryAt = receiver.retryAt { return retryAt }
        if case .draining = phase { return .zero }
        return queue.count >= sizer.size || queue.bytes >= options.bytes ? .zero : gatheringEnd
    }

    private mutating func write(at now: Duration) -> [Effect] {
        guard let time = writeTime, now >= time, let queue else { return [] }
        let batch = queue.prefix(entries: sizer.size, bytes: options.bytes)
        ticket += 1
        call = .writing(count: batch.count, until: now + options.writeTimeout)
        receiver.startAttempt()
        gatheringSince = queue.count > batch.count ? now : nil
        startGathering(at: now)
        return [.write(batch, ticket: ticket)]
    }

    /// Records the end of the call; also that of a cancelled one, whose entries the receiver may have taken.
    private mutating func written(_ fault: OutputFault?, at now: Duration) -> [Effect] {
        let count = inFlight
        let wasCancelled = if case .cancelled = call { true } else { false }
        guard count > 0 else { return [] }
        call = .none
        guard let fault else { return accepted(count) }
        if fault.kind == .refused { return refused(count, fault, at: now) }
        return wasCancelled ? [] : failed(fault, at: now)
    }

    private mutating func accepted(_ count: Int) -> [Effect] {
        cursor = queue?.removeFirst(count)
        delivered += UInt64(count)
        sizer.accepted(count)
        return receiver.accepted()
    }

    /// Searches the refused entry and skips it.
    private mutating func refused(_ count: Int, _ fault: OutputFault, at now: Duration) -> [Effect] {
        let effects = receiver.refused(fault)
        guard sizer.refused(count), let entry = queue?.first else { return effects }
        cursor = queue?.removeFirst(1)
        skipped += 1
        let report = effects + [.report(.skipped(entry, fault))]
        guard sizer.refusals >= options.mostRefusals else { return report }
        let detail = "the receiver refuses every entry: \(fault.detail)"
        return report + failed(OutputFault(.misconfigured, detail, retryAfter: fault.retryAfter), at: now)
    }

    private mutating func failed(_ fault: OutputFault, at now: Duration) -> [Effect] {
        failures += 1
        let effects = receiver.failed(fault, at: now)
        if case .draining = phase { return effects + close(at: now) }
        return effects
    }

    // MARK: - Time

    /// The time at which ``Event/tick`` must be sent; `nil` while nothing depends on time.
    public var deadline: Duration? {
        let work = [requests.loadAt, fetchTime, writeTime, requests.saveTime(of: cursor), callEnd]
        switch phase {
        case .idle, .stopped: return nil
        case .running: return work.compactMap(\.self).min()
        case .draining(let until): return min(until, work.compactMap(\.self).min() ?? until)
        case .closing(let until): return until
        }
    }

    private var callEnd: Duration? {
        if case .writing(_, let until) = call { until } else { nil }
    }
}
