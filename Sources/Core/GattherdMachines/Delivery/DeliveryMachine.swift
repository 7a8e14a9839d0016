public import GattherdModel

/// The state machine of the broker session and of the readings published in it.
///
/// Events in, effects out; no clock and no I/O. Time is passed in, counted from any fixed instant. Readings are
/// published in journal order with at most ``Options/window`` messages unacknowledged. The cursor is the highest `seq`
/// up to which the broker has acknowledged everything; only a PUBACK moves it. A new session republishes two kinds of
/// readings: those that the last session left unacknowledged, and those acknowledged shortly before it was lost.
/// After a kill the next run does the same, because the written cursor trails.
public struct DeliveryMachine: Sendable {
    private let options: Options
    private var pauses: ReconnectPauses
    private var losses = SessionLosses()
    private var phase = Phase.idle
    /// The number of the current session; events of other sessions are stale.
    private var session = 0
    /// True if an earlier session or attempt existed, so subscribers may have lost the broker too.
    private var hasHistory = false
    private var hasConnected = false
    /// The time at which a stop no longer waits for the backlog.
    private var leaveAt: Duration?
    /// The readings after the cursor; `nil` until the cursor is loaded.
    private var window: DeliveryWindow?
    private var journal: JournalRequests
    private var gate: PublishGate
    private var completion = DeliveryCompletion()

    /// Creates an idle machine; `seed` determines the jitter of retries.
    public init(options: Options = Options(), seed: UInt64) {
        self.options = options
        pauses = .init(options.backoff, refused: options.refusedBackoff, stable: options.stableAfter, seed: seed)
        journal = JournalRequests(options: options)
        gate = PublishGate(options: options)
    }

    /// The last `seq` that the broker has acknowledged with all before it; `nil` until known.
    public var cursor: Int64? { window?.cursor }

    /// The newest committed `seq`; `nil` until known.
    public var head: Int64? { journal.head }

    /// An upper bound of committed and unacknowledged readings; `seq` may have gaps.
    public var backlog: Int64 {
        guard let head = journal.head, let window else { return 0 }
        return max(0, head - (window.isEmpty ? window.fetched : window.cursor))
    }

    /// True while the journal has readings that are not fetched yet; they may replace delayed ones.
    public var hasUnfetched: Bool {
        guard let head = journal.head, let window else { return false }
        return head > window.fetched
    }

    public var inFlight: Int { window?.inFlight ?? 0 }

    /// True if a published reading, or an earlier one of its stream, is to be published again or acknowledged.
    public func awaits(_ reading: JournalReading) -> Bool { window?.awaits(reading) ?? false }

    /// The time of the oldest unacknowledged reading; `nil` without one.
    public var waitingSince: Timestamp? { window?.oldest }

    /// The last time, on the machine's clock, at which no reading waited; `nil` if there was none in this run.
    public var completeUntil: Duration? { completion.until }

    /// The time of the next attempt to connect; `nil` while none is planned.
    public var nextTry: Duration? {
        guard case .backingOff(_, let until) = phase else { return nil }
        return until
    }

    /// The time until the rate limit allows the messages that wait; zero if none do.
    public func pacePause(at now: Duration) -> Duration {
        guard let waiting = window?.messages(at: now), waiting > 0 else { return .zero }
        return gate.pause(for: waiting, at: now)
    }

    /// The reason why readings wait during a session, if they do.
    public func pause(at now: Duration) -> Pause? {
        guard case .connected = phase, backlog > 0 else { return nil }
        return gate.pause(at: now)
    }

    public var state: SessionState {
        switch phase {
        case .idle: .idle
        case .connecting: .connecting
        case .connected: .connected
        case .backingOff(let fault, _): .backingOff(fault)
        case .leaving, .closing: .stopping
        case .stopped: .stopped
        }
    }

    /// True while the answer to ``Effect/connect(session:)`` of that number is pending.
    public func isConnecting(_ session: Int) -> Bool {
        session == self.session && state == .connecting
    }

    /// The time at which ``Event/tick`` must be sent; `nil` while nothing depends on time.
    public var deadline: Duration? {
        switch phase {
        case .stopped: nil
        case .idle: earliest(nil)
        case .connecting(let until), .backingOff(_, let until), .leaving(let until): earliest(until)
        case .closing(let until): [until, journal.loadDeadline].compactMap(\.self).min()
        case .connected:
            [earliest(gate.acknowledgementDeadline), gate.refusalDeadline, fetchDeadline].compactMap(\.self).min()
        }
    }

    private var fetchDeadline: Duration? { journal.fetchDeadline(into: window, isHolding: gate.isHolding) }

    /// The earlier of a phase's deadline and the deadlines that all phases share.
    private func earliest(_ ofPhase: Duration?) -> Duration? {
        let deadlines = [ofPhase, journal.loadDeadline, journal.saveDeadline(of: window), gate.resumeAt, leaveAt]
        return deadlines.compactMap(\.self).min()
    }

    // MARK: - Events

    /// Applies one event and returns the resulting effects, in order.
    ///
    /// An event that the state does not expect, or that belongs to an earlier session, changes nothing.
    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        guard phase != .stopped else { return [] }
        updateCompletion(at: now)
        let effects = apply(event, at: now) + work(at: now)
        gate.updateAwaited(window, at: now)
        return effects
    }

    private mutating func apply(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .start: return start(at: now)
        case .stop(let drain): return stop(drain: drain, at: now)
        case .tick: return tick(at: now)
        case .cursorLoaded(let seq): cursorLoaded(seq)
        case .headMoved(let seq): headMoved(to: seq, at: now)
        case .fetched(let readings, let through, let selection):
            fetched(readings, through: through, selection, at: now)
        case .released(let seqs): window?.release(seqs)
        case .saved(let seq): journal.saved(seq)
        case .dismissed(let device):
            gate.remove(device: device)
            window?.removeDelayed(of: device)
        case .journalFailed(let operation): return journalFailed(operation, at: now)
        case .connected(let number, let maximum) where number == session:
            return connected(receiveMaximum: maximum, at: now)
        case .windowChanged(let number, let maximum) where number == session: gate.setLimit(maximum)
        case .opened(let number) where number == session: gate.open()
        case .lastWillFound(let number, let lost) where number == session: lastWillFound(of: lost, at: now)
        case .brokerWasDown: losses.brokerWasDown()
        case .failed(let number, let fault) where number == session: return failed(fault, at: now)
        case .answered(let number, let outcomes) where number == session: return answered(outcomes, at: now)
        case .offlinePublished(let number) where number == session: return offlinePublished(at: now)
        case .connected, .windowChanged, .opened, .lastWillFound, .failed, .answered, .offlinePublished: break
        }
        return []
    }

    private mutating func updateCompletion(at now: Duration) {
        guard let head = journal.head, let window else { return }
        completion.update(to: head, at: now) { window.hasPassed($0) }
    }

    /// Returns the work that the current state requires.
    private mutating func work(at now: Duration) -> [Effect] {
        switch phase {
        case .connected:
            journal.load(at: now) + publish(at: now)
                + journal.fetch(into: window, isHolding: gate.isHolding, at: now)
                + save(at: now) + leaveIfDrained(at: now)
        case .connecting, .backingOff, .leaving: journal.load(at: now) + save(at: now)
        case .closing: journal.saveLast(window?.resumePoint) ?? finish()
        case .idle, .stopped: []
        }
    }

    // MARK: - The journal

    private mutating func cursorLoaded(_ seq: Int64) {
        guard window == nil else { return }
        window = DeliveryWindow(cursor: seq)
        journal.cursorLoaded(seq)
    }

    private mutating func headMoved(to seq: Int64, at now: Duration) {
        let count = journal.headMoved(to: seq)
        if count > 0 { gate.committed(count, at: now) }
    }

    /// Makes readings of an earlier run wait for subscribers.
    ///
    /// The number of the head does not show them: events of this run may precede its first reading.
    private mutating func delayBacklog(_ readings: [JournalReading]) {
        guard case .connected(let since) = phase, let first = readings.first else { return }
        if journal.mayBeFromEarlierRun(first.seq) { gate.delayBacklog(connectedSince: since) }
    }

    private mutating func fetched(
        _ readings: [JournalReading],
        through: Int64,
        _ selection: DeliverySelection,
        at now: Duration
    ) {
        guard journal.fetched() else { return }
        delayBacklog(readings)
        let before = window?.fetched
        window?.append(readings, selection, through: through, at: now)
        // An answer without new entries would be requested again at once.
        if window?.fetched == before { journal.failed(.fetch, at: now) }
    }

    /// Repeats a failed request later; a machine that closes waits for none.
    private mutating func journalFailed(_ operation: JournalOperation, at now: Duration) -> [Effect] {
        if case .closing = phase {
            if operation == .save { return finish() }
            if operation == .load { return [] }
        }
        journal.failed(operation, at: now)
        return []
    }

    /// Writes the resume point, which trails the cursor a little.
    ///
    /// So the next run republishes the readings that a broker may have lost when it failed together with the gateway.
    private mutating func save(at now: Duration) -> [Effect] {
        moveWindow(at: now)
        return journal.save(window?.resumePoint, at: now)
    }

    /// Excludes readings that were acknowledged long enough ago from republication.
    private mutating func moveWindow(at now: Duration) {
        window?.moveReplayPoint(before: now - options.replay)
        window?.moveResumePoint(
            before: now - options.restartReplay,
            trail: Int(clamping: options.saveCount),
            delayedBefore: now - options.delayedReplay
        )
    }

    // MARK: - Readings

    /// Publishes as many readings as window, pace and hold allow.
    private mutating func publish(at now: Duration) -> [Effect] {
        if leaveAt != nil || window?.isHeldUp == true { window?.endGathering() }
        let count = gate.allowance(for: window, at: now)
        guard count > 0 else { return [] }
        let batch =
            gate.isHolding ? window?.dequeueFirstOfEachStream(count, at: now) : window?.dequeue(count, at: now)
        guard let batch, !batch.messages.isEmpty else { return [] }
        gate.spend(batch.messages.count)
        return [.publish(session: session, batch.messages, again: batch.again)]
    }

    private mutating func answered(_ outcomes: [PublishOutcome], at now: Duration) -> [Effect] {
        switch phase {
        case .connected, .leaving: outcomes.compactMap { answered($0, at: now).map { .report($0) } }
        case .idle, .connecting, .backingOff, .closing, .stopped: []
        }
    }

    private mutating func answered(_ outcome: PublishOutcome, at now: Duration) -> Report? {
        guard let (reading, sentAt) = window?.inFlightReading(outcome.seq) else { return nil }
        gate.answered(sentAt: sentAt)
        let decision = gate.handle(outcome.verdict, on: reading, at: now)
        if decision.isDone, !mustFollow(outcome) {
            window?.acknowledge(reading.seq, isConfirmed: outcome.isConfirmed, at: now)
        } else {
            window?.putBack(reading.seq)
        }
        return decision.report
    }

    /// True if a reading was accepted before an earlier one of its stream, which waits to be sent again.
    ///
    /// The newest such reading is published again behind that one, or the topic's last message would be an old value.
    private func mustFollow(_ outcome: PublishOutcome) -> Bool {
        outcome.isAcknowledgement && gate.isHolding && window?.needsRepetition(outcome.seq) == true
    }

    // MARK: - The session

    private mutating func start(at now: Duration) -> [Effect] {
        guard phase == .idle else { return [] }
        journal.startLoading(at: now)
        return connect(at: now)
    }

    private mutating func stop(drain: Duration, at now: Duration) -> [Effect] {
        switch phase {
        case .idle, .connecting, .backingOff: return close(at: now)
        case .connected: leaveAt = leaveAt.map { min($0, now + drain) } ?? now + drain
        case .leaving, .closing, .stopped: break
        }
        return []
    }

    private mutating func leaveIfDrained(at now: Duration) -> [Effect] {
        guard let leaveAt, isDrained || now >= leaveAt else { return [] }
        self.leaveAt = nil
        phase = .leaving(until: now + options.stopLimit)
        gate.finish()
        return [.publishOffline(session: session)]
    }

    /// True if nothing is left to publish.
    private var isDrained: Bool {
        guard let window, window.isEmpty, !window.hasDelayed else { return false }
        return journal.head.map { $0 <= window.fetched } ?? true
    }

    private mutating func tick(at now: Duration) -> [Effect] {
        switch phase {
        case .connecting(let until) where now >= until:
            return failed(BrokerFault(.unreachable, "the broker did not answer in time"), at: now)
        case .connected: return timeOut(at: now)
        case .backingOff(_, let until) where now >= until: return connect(at: now)
        case .leaving(let until) where now >= until: return leave(at: now)
        case .closing(let until) where now >= until: return finish()
        case .idle, .connecting, .backingOff, .leaving, .closing, .stopped: return []
        }
    }

    /// Ends the MQTT session if the oldest reading was not acknowledged in time, or every reading refused.
    private mutating func timeOut(at now: Duration) -> [Effect] {
        if let detail = gate.refusal(at: now) { return endRefusal(detail, at: now) }
        guard let overdue = gate.timeOut(window, at: now) else { return [] }
        let reading = window?.inFlightReading(overdue)?.reading
        let fault = "the broker has not acknowledged a reading for \(options.acknowledgement)"
        return [reading.map { .report(.unacknowledged($0)) }].compactMap(\.self)
            + failed(BrokerFault(.lost, fault), at: now)
    }

    /// Ends the session of a broker that refuses every reading; the readings wait.
    private mutating func endRefusal(_ detail: String, at now: Duration) -> [Effect] {
        let fault = "the broker refuses every reading (\(detail)); check its access list and its limits"
        return [.report(.acceptsNothing(detail))] + failed(BrokerFault(.session, fault), at: now)
    }

    private mutating func connected(receiveMaximum: Int, at now: Duration) -> [Effect] {
        guard case .connecting = phase else { return [] }
        if !hasConnected, hasHistory, let head = journal.head { gate.assumeSubscribers(through: head) }
        gate.connected(
            isReconnect: hasHistory,
            receiveMaximum: receiveMaximum,
            at: now
        )
        phase = .connected(since: now)
        (hasHistory, hasConnected) = (true, true)
        return [.report(.connected), .open(session: session)]
    }

    /// Ends the session or the attempt; the next one republishes unacknowledged readings.
    private mutating func failed(_ fault: BrokerFault, at now: Duration) -> [Effect] {
        var probe: [Effect] = []
        switch phase {
        case .connecting: break
        case .connected where leaveAt != nil: return close(at: now)
        case .connected(let since): probe = sessionLost(fault, after: now - since)
        case .leaving: return close(at: now)
        case .idle, .backingOff, .closing, .stopped: return []
        }
        if fault.wasBrokerDown { losses.brokerWasDown() }
        let ended = session
        reset(at: now)
        hasHistory = true
        let delay = pauses.next(after: fault)
        phase = .backingOff(fault, until: now + delay)
        return probe + [.close(session: ended), .report(.disconnected(fault, retryAfter: delay))]
    }

    /// Records the loss of a session, and probes the broker if a network seems to have cut the connection.
    private mutating func sessionLost(_ fault: BrokerFault, after duration: Duration) -> [Effect] {
        pauses.sessionEnded(after: duration)
        losses.record(session, isShort: duration < options.stableAfter)
        window?.clearKept()
        return losses.suggestNetwork && !fault.wasBrokerDown ? [.probe] : []
    }

    /// Excludes the readings that the broker acknowledged in the last session, if it kept them and sessions are short.
    ///
    /// A will that arrives once the first of them is sent excludes no others: a topic could end with an older value.
    private mutating func lastWillFound(of lost: Int, at now: Duration) {
        guard losses.excludesReplay(afterLastWillOf: lost) else { return }
        guard case .connected = phase, !gate.isProven, inFlight == 0 else { return }
        window?.passKept(at: now)
    }

    private mutating func offlinePublished(at now: Duration) -> [Effect] {
        guard case .leaving = phase else { return [] }
        return leave(at: now)
    }

    /// Ends a good session; its acknowledged readings are never published again.
    private mutating func leave(at now: Duration) -> [Effect] {
        window?.moveReplayPointToCursor()
        return close(at: now)
    }

    /// Stops once the resume point is written.
    private mutating func close(at now: Duration) -> [Effect] {
        let ended = session
        reset(at: now)
        journal.stopLoading()
        leaveAt = nil
        phase = .closing(until: now + options.stopLimit)
        return [.close(session: ended)]
    }

    private mutating func finish() -> [Effect] {
        phase = .stopped
        return [.finish]
    }

    private mutating func connect(at now: Duration) -> [Effect] {
        session += 1
        phase = .connecting(until: now + options.connectTimeout)
        return [.connect(session: session)]
    }

    private mutating func reset(at now: Duration) {
        session += 1
        moveWindow(at: now)
        window?.putBackAll(acknowledgedAfter: now - options.replay, at: now)
        gate.reset()
    }
}
