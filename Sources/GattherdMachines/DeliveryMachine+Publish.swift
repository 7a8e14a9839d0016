import GattherdModel

extension DeliveryMachine {
    /// Hands over as many readings as window, pace and hold allow.
    mutating func publish(at now: Duration) -> [Effect] {
        resumeAt = nil
        guard isOpen, let waiting = window?.unsent, waiting > 0 else { return [] }
        if let start = startAfter(now) {
            resumeAt = start
            return []
        }
        let room = min(currentLimit - inFlight, waiting)
        // A write for each reading, whenever one is acknowledged, would cost more than the readings.
        guard room >= max(1, min(waiting, currentLimit / 2)) else { return [] }
        let count = min(room, pace.allowance(at: now))
        if count < room { resumeAt = now + pace.pause(at: now) }
        guard count > 0, let taken = window?.take(count) else { return [] }
        pace.spend(taken.readings.count)
        return [.publish(session: session, taken.readings, again: taken.again)]
    }

    /// When publishing may start, if that is not now.
    private func startAfter(_ now: Duration) -> Duration? {
        let start = max(drainAt, hold?.retryAt ?? .zero)
        return start > now ? start : nil
    }

    /// A single reading goes ahead after a reconnect and to end a hold, so that few are out of order when
    /// subscribers come back just then.
    private var currentLimit: Int {
        hold == nil && isProven ? limit : 1
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
            subscribers.found(for: reading)
            acknowledge(reading, at: now)
            return []
        case .noSubscribers: return settleUnheard(reading, at: now)
        case .busy(let detail):
            let isNew = hold == nil
            putBack(reading, at: now)
            return isNew ? [.report(.busy(detail))] : []
        case .refused(let detail):
            acknowledge(reading, at: now)
            return [.report(.skipped(reading, detail))]
        }
    }

    private mutating func settleUnheard(_ reading: LoggedReading, at now: Duration) -> [Effect] {
        guard subscribers.expects(for: reading) else {
            acknowledge(reading, at: now)
            return []
        }
        if let giveUpAt = hold?.giveUpAt, now >= giveUpAt {
            subscribers.forget()
            hold = nil
            acknowledge(reading, at: now)
            return [.report(.goingOnWithoutSubscribers)]
        }
        let isNew = hold?.giveUpAt == nil
        putBack(reading, at: now)
        if isNew { hold?.giveUpAt = now + options.subscriberPatience }
        return isNew ? [.report(.awaitingSubscribers(reading))] : []
    }

    private mutating func acknowledge(_ reading: LoggedReading, at now: Duration) {
        window?.acknowledge(reading.seq, at: now)
        isProven = true
        if hold?.seq == reading.seq { hold = nil }
    }

    private mutating func putBack(_ reading: LoggedReading, at now: Duration) {
        window?.putBack(reading.seq)
        hold = Hold(
            seq: min(hold?.seq ?? reading.seq, reading.seq),
            retryAt: now + options.retryPause,
            giveUpAt: hold?.giveUpAt
        )
    }
}
