import GattherdModel

extension DeliveryMachine {
    /// Publishes as many readings as window, pace and hold allow.
    mutating func publish(at now: Duration) -> [Effect] {
        resumeAt = nil
        guard isOpen, let waiting = window?.unsent, waiting > 0 else { return [] }
        if let start = startAfter(now) {
            resumeAt = start
            return []
        }
        let room = min(currentLimit - inFlight, waiting)
        // One write per acknowledged reading would cost more than the readings themselves.
        guard room >= max(1, min(waiting, currentLimit / 2)) else { return [] }
        let count = min(room, pace.allowance(at: now))
        if count < room { resumeAt = now + pace.pause(at: now) }
        guard count > 0, let taken = take(count) else { return [] }
        pace.spend(taken.readings.count)
        return [.publish(session: session, taken.readings, again: taken.again)]
    }

    /// Dequeues readings; during a hold one of each stream, so that unaffected streams continue.
    private mutating func take(_ count: Int) -> DeliveryWindow.Batch? {
        hold == nil ? window?.take(count) : window?.takeFirstOfEachStream(count)
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
    private var currentLimit: Int {
        let isOverdue = overdue != nil && window?.awaited == overdue
        return isProven || hold != nil || isOverdue ? limit : 1
    }

    mutating func settled(_ outcomes: [PublishOutcome], at now: Duration) -> [Effect] {
        switch phase {
        case .connected, .leaving: outcomes.flatMap { settle($0, at: now) }
        case .idle, .connecting, .backingOff, .closing, .stopped: []
        }
    }

    private mutating func settle(_ outcome: PublishOutcome, at now: Duration) -> [Effect] {
        guard let reading = window?.inFlightReading(outcome.seq) else { return [] }
        switch outcome.verdict {
        case .accepted:
            settleHeard(reading, at: now)
            return []
        case .noSubscribers: return settleUnheard(reading, at: now)
        case .busy(let detail):
            let isNew = hold == nil
            putBack(reading, isUnheard: false, until: now + options.retryPause)
            return isNew ? [.report(.busy(detail))] : []
        case .deferred:
            putBack(reading, isUnheard: false, until: now + options.retryPause)
            return []
        case .refused(let detail):
            acknowledge(reading, at: now)
            return [.report(.skipped(reading, detail))]
        }
    }

    /// Ends the wait for subscribers: those that lost the same broker return at about the same time.
    private mutating func settleHeard(_ reading: JournalReading, at now: Duration) {
        subscribers.found(for: reading)
        endWait()
        acknowledge(reading, at: now)
    }

    /// Waits for a missing subscriber only after a reconnect; otherwise it has unsubscribed.
    private mutating func settleUnheard(_ reading: JournalReading, at now: Duration) -> [Effect] {
        let isExpected = subscribersDue != nil && subscribers.expects(for: reading)
        if isExpected, let due = subscribersDue, now < due {
            let isNew = hold?.isUnheard != true
            putBack(reading, isUnheard: true, until: min(now + options.subscriberPause, due))
            return isNew ? [.report(.awaitingSubscribers(reading))] : []
        }
        let hasWaited = hold?.isUnheard == true
        if isExpected { endWait() }
        subscribers.left(reading)
        acknowledge(reading, at: now)
        return isExpected && hasWaited ? [.report(.goingOnWithoutSubscribers)] : []
    }

    private mutating func endWait() {
        guard subscribersDue != nil else { return }
        subscribersDue = nil
        subscribers.endAssumption()
        if hold?.isUnheard == true { hold = nil }
    }

    private mutating func acknowledge(_ reading: JournalReading, at now: Duration) {
        window?.acknowledge(reading.seq, at: now)
        isProven = true
        if hold?.seq == reading.seq { hold = nil }
    }

    private mutating func putBack(_ reading: JournalReading, isUnheard: Bool, until retryAt: Duration) {
        window?.putBack(reading.seq)
        hold = Hold(seq: min(hold?.seq ?? reading.seq, reading.seq), retryAt: retryAt, isUnheard: isUnheard)
    }
}
