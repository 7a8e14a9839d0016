import GattherdModel

/// The conditions under which readings may be published in a session: pace, pauses, holds and missing subscribers.
struct PublishGate: Sendable {
    /// Readings held back because the broker was busy or had no subscriber for them.
    private struct Hold: Hashable, Sendable {
        /// The oldest of these readings; its acknowledgement ends the hold.
        var seq: Int64
        var retryAt: Duration
        /// True if the broker had no subscriber for it; false if the broker was busy.
        var isUnheard = false
    }

    /// The decision on an answered reading.
    struct Decision {
        /// True if the cursor may pass the reading; false if it must be published again.
        let isDone: Bool
        var report: DeliveryMachine.Report?
    }

    private let options: DeliveryMachine.Options
    /// The broker's limit of readings in flight.
    private var limit = 1
    /// True once the retained state is published.
    private var isOpen = false
    /// True once a reading of this session was acknowledged or skipped.
    private(set) var isProven = false
    /// The time before which nothing is published.
    private var drainAt = Duration.zero
    /// The time at which publishing can continue without another event.
    private(set) var resumeAt: Duration?
    private var hold: Hold?
    private var acknowledgements: AcknowledgementWatch
    /// The refusals since the broker last accepted a reading.
    private var refusals = RefusalRun()
    private var subscribers = SubscriberWatch()
    private var pace: TokenBucket

    init(options: DeliveryMachine.Options) {
        self.options = options
        pace = options.pace
        acknowledgements = AcknowledgementWatch(limit: options.acknowledgement)
    }

    // MARK: - The session

    /// Starts a session; after a reconnect, publishing waits until subscribers may be back.
    mutating func connected(isReconnect: Bool, receiveMaximum: Int, at now: Duration) {
        if isReconnect { subscribers.startWait(until: now + options.subscriberTimeout) }
        drainAt = isReconnect ? now + options.reconnectPause : now
        setLimit(receiveMaximum)
    }

    mutating func setLimit(_ receiveMaximum: Int) {
        limit = max(1, min(options.window, receiveMaximum))
    }

    mutating func open() { isOpen = true }

    /// Delays a backlog until subscribers may be back.
    mutating func delayBacklog(connectedSince since: Duration) {
        drainAt = max(drainAt, since + options.reconnectPause)
    }

    /// Ends the session.
    mutating func reset() {
        (isOpen, isProven) = (false, false)
        (hold, resumeAt) = (nil, nil)
        acknowledgements.reset()
        subscribers.sessionEnded()
        refusals.endHold()
    }

    /// Stops publishing until the session ends.
    mutating func finish() { resumeAt = nil }

    /// Assumes subscribers for every reading up to `seq`, because no broker was there to report them.
    mutating func assumeSubscribers(through seq: Int64) {
        subscribers.assume(through: seq)
    }

    mutating func remove(device: String) {
        subscribers.remove(device)
    }

    // MARK: - Publishing

    /// True while readings are held back: then one of each stream is published, so that unaffected streams continue.
    var isHolding: Bool { hold != nil }

    /// Records the number of readings just committed.
    mutating func committed(_ count: Int, at now: Duration) {
        pace.committed(count, at: now)
    }

    /// Returns the number of messages that may be published now.
    mutating func allowance(for window: DeliveryWindow?, at now: Duration) -> Int {
        resumeAt = nil
        guard isOpen, let window, window.unsent > 0 else { return 0 }
        if let start = startAfter(now) {
            resumeAt = start
            return 0
        }
        resumeAt = window.nextDue(after: now)
        let (waiting, limit) = (window.messages(at: now), currentLimit(window.awaited))
        let room = min(limit - window.inFlight, waiting)
        // One write per acknowledged reading would cost more than the readings themselves.
        guard room >= max(1, min(waiting, limit / 2)) else { return 0 }
        let count = pace.allowance(for: room, at: now)
        if count < room {
            let refill = now + pace.pause(for: room - count, after: count, at: now)
            resumeAt = min(resumeAt ?? refill, refill)
        }
        return count
    }

    /// The time until the rate limit allows more of `wanted` readings.
    func pause(for wanted: Int, at now: Duration) -> Duration { pace.pause(for: wanted, at: now) }

    /// Subtracts published messages from the allowance.
    mutating func spend(_ count: Int) {
        pace.spend(count)
    }

    /// The time at which publishing may start; `nil` if now.
    private func startAfter(_ now: Duration) -> Duration? {
        let start = max(drainAt, hold?.retryAt ?? .zero)
        return start > now ? start : nil
    }

    /// The current limit of readings in flight.
    ///
    /// After a reconnect a single reading is sent first, so that few are out of order if subscribers return at that
    /// moment.
    private func currentLimit(_ awaited: Int64?) -> Int {
        isProven || hold != nil || acknowledgements.isOverdue(awaited) ? limit : 1
    }

    /// The reason why readings wait, if they do.
    func pause(at now: Duration) -> DeliveryMachine.Pause? {
        if refusals.heldSince != nil { return .refused }
        if let hold { return hold.isUnheard ? .awaitingSubscribers : .busy }
        return now < drainAt ? .reconnected : nil
    }

    // MARK: - Missing acknowledgements

    /// Records the readings in flight; one of them may hold up the cursor.
    mutating func updateAwaited(_ window: DeliveryWindow?, at now: Duration) {
        acknowledgements.update(window?.awaited, isAnyInFlight: window?.inFlight ?? 0 != 0, at: now)
    }

    /// Records that the broker has answered a reading.
    mutating func answered(sentAt: Duration) {
        acknowledgements.answered(sentAt: sentAt)
    }

    /// The time at which the broker must have acknowledged the readings in flight.
    var acknowledgementDeadline: Duration? { acknowledgements.deadline }

    /// Returns the reading that the broker has not acknowledged in time, if any.
    mutating func timeOut(_ window: DeliveryWindow?, at now: Duration) -> Int64? {
        acknowledgements.timeOut(at: now) { window?.sent(before: $0) }
    }

    // MARK: - Answers

    mutating func handle(
        _ verdict: PublishOutcome.Verdict,
        on reading: JournalReading,
        at now: Duration
    ) -> Decision {
        switch verdict {
        case .accepted:
            subscribers.found(for: reading)
            endWait()
            refusals.accepted()
            return acknowledge(reading)
        case .noSubscribers:
            refusals.accepted()
            return subscriberMissing(reading, at: now)
        case .busy(let detail):
            let isNew = hold == nil
            return putBack(reading, until: now + options.retryPause, isNew ? .busy(detail) : nil)
        case .deferred: return putBack(reading, until: now + options.retryPause)
        case .remaining: return Decision(isDone: false)
        case .refused(let detail) where refusals.count < options.refusalLimit:
            refusals.skip()
            return acknowledge(reading, .skipped(reading, detail))
        case .setAside(let detail):
            // Topics are set aside only if the broker accepts others, so it does not refuse everything.
            refusals.accepted()
            return acknowledge(reading, .skipped(reading, detail))
        case .refused(let detail): return hold(reading, detail, at: now)
        case .unproven(let detail): return hold(reading, detail, at: now)
        }
    }

    /// Holds a refused reading, because the broker may accept nothing now.
    ///
    /// The pauses grow, and one reading of each stream is tried after each.
    private mutating func hold(_ reading: JournalReading, _ detail: String, at now: Duration) -> Decision {
        let pause = max(options.retryPause, (now - refusals.hold(detail, at: now)) / 4)
        return putBack(reading, until: now + pause)
    }

    /// The time at which a broker that refuses every reading must have accepted one.
    var refusalDeadline: Duration? { refusals.heldSince.map { $0 + options.refusalTimeout } }

    /// Returns the broker's reason if it has refused every reading for too long.
    func refusal(at now: Duration) -> String? {
        refusalDeadline.flatMap { now >= $0 ? refusals.detail : nil }
    }

    /// Waits for a missing subscriber only after a reconnect; otherwise it has unsubscribed.
    private mutating func subscriberMissing(_ reading: JournalReading, at now: Duration) -> Decision {
        let due = subscribers.waitEnd(for: reading)
        let hasWaited = hold?.isUnheard == true
        if let due, now < due {
            let report: DeliveryMachine.Report? = hasWaited ? nil : .awaitingSubscribers(reading)
            return putBack(reading, isUnheard: true, until: min(now + options.subscriberPause, due), report)
        }
        if due != nil { endWait() }
        subscribers.left(reading)
        return acknowledge(reading, due != nil && hasWaited ? .goingOnWithoutSubscribers : nil)
    }

    /// Ends the wait for subscribers, because all clients of a broker return at about the same time.
    private mutating func endWait() {
        guard subscribers.endWait() else { return }
        if hold?.isUnheard == true { hold = nil }
    }

    private mutating func acknowledge(_ reading: JournalReading, _ report: DeliveryMachine.Report? = nil) -> Decision {
        isProven = true
        if hold?.seq == reading.seq { hold = nil }
        return Decision(isDone: true, report: report)
    }

    private mutating func putBack(
        _ reading: JournalReading,
        isUnheard: Bool = false,
        until retryAt: Duration,
        _ report: DeliveryMachine.Report? = nil
    ) -> Decision {
        hold = Hold(seq: min(hold?.seq ?? reading.seq, reading.seq), retryAt: retryAt, isUnheard: isUnheard)
        return Decision(isDone: false, report: report)
    }
}

/// The refusals in a row, without a reading that the broker accepted in between.
private struct RefusalRun: Sendable {
    /// The time since which refused readings are held instead of skipped; `nil` if none is held.
    private(set) var heldSince: Duration?
    /// The number of skipped readings.
    private(set) var count = 0
    /// The broker's newest reason.
    private(set) var detail = ""

    mutating func accepted() {
        if count > 0 || heldSince != nil { self = RefusalRun() }
    }

    /// Records that a refused reading is skipped.
    mutating func skip() { count += 1 }

    /// Records that a refused reading is held; returns the time since which readings are.
    mutating func hold(_ detail: String, at now: Duration) -> Duration {
        self.detail = detail
        let since = heldSince ?? now
        heldSince = since
        return since
    }

    /// Ends the hold with its session; the next one skips no more readings either.
    mutating func endHold() { heldSince = nil }
}
