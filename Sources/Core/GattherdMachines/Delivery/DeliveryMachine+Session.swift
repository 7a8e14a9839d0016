extension DeliveryMachine {
    mutating func start(at now: Duration) -> [Effect] {
        guard phase == .idle else { return [] }
        loadAt = now
        return connect(at: now)
    }

    mutating func stop(drain: Duration, at now: Duration) -> [Effect] {
        switch phase {
        case .idle, .connecting, .backingOff: return close(at: now)
        case .connected: leaveAt = leaveAt.map { min($0, now + drain) } ?? now + drain
        case .leaving, .closing, .stopped: break
        }
        return []
    }

    mutating func leaveIfDrained(at now: Duration) -> [Effect] {
        guard let leaveAt, isDrained || now >= leaveAt else { return [] }
        self.leaveAt = nil
        phase = .leaving(until: now + options.farewell)
        resumeAt = nil
        return [.sayFarewell(session: session)]
    }

    /// True if nothing is left to publish.
    private var isDrained: Bool {
        guard let window, window.isEmpty else { return false }
        return head.map { $0 <= window.fetched } ?? true
    }

    mutating func tick(at now: Duration) -> [Effect] {
        switch phase {
        case .connecting(let until) where now >= until:
            return failed(BrokerFault(.unreachable, "the broker did not answer in time"), at: now)
        case .connected where awaited.map({ now >= $0.since + options.acknowledgement }) == true:
            overdue = awaited?.seq
            let reading = awaited.flatMap { window?.inFlightReading($0.seq) }
            let fault = "the broker has not acknowledged a reading for \(options.acknowledgement)"
            return [reading.map { .report(.unacknowledged($0)) }].compactMap(\.self)
                + failed(BrokerFault(.lost, fault), at: now)
        case .backingOff(_, let until) where now >= until: return connect(at: now)
        case .leaving(let until) where now >= until: return leave(at: now)
        case .closing(let until) where now >= until: return finish()
        case .idle, .connecting, .connected, .backingOff, .leaving, .closing, .stopped: return []
        }
    }

    mutating func connected(receiveMaximum: Int, at now: Duration) -> [Effect] {
        guard case .connecting = phase else { return [] }
        if !hasConnected, hasHistory, let head { subscribers.assume(through: head) }
        subscribersDue = hasHistory ? now + options.subscriberPatience : nil
        drainAt = hasHistory || backlog > 0 ? now + options.settle : now
        phase = .connected(since: now)
        hasHistory = true
        hasConnected = true
        limit = max(1, min(options.window, receiveMaximum))
        return [.report(.connected), .open(session: session)]
    }

    /// Ends the session or the attempt; the next one republishes unacknowledged readings.
    mutating func failed(_ fault: BrokerFault, at now: Duration) -> [Effect] {
        switch phase {
        case .connecting: break
        case .connected where leaveAt != nil: return close(at: now)
        case .connected(let since): if now - since >= options.stableAfter { failures = 0 }
        case .leaving: return close(at: now)
        case .idle, .backingOff, .closing, .stopped: return []
        }
        let ended = session
        reset(at: now)
        hasHistory = true
        failures += 1
        let backoff = fault.needsSomebody ? options.refusedBackoff : options.backoff
        let delay = backoff.delay(after: failures, using: &random)
        phase = .backingOff(fault, until: now + delay)
        return [.close(session: ended), .report(.disconnected(fault, retryAfter: delay))]
    }

    mutating func farewellSaid(at now: Duration) -> [Effect] {
        guard case .leaving = phase else { return [] }
        return leave(at: now)
    }

    /// Ends a good session; its acknowledged readings are never published again.
    private mutating func leave(at now: Duration) -> [Effect] {
        window?.settleAll()
        return close(at: now)
    }

    /// Stops once the resume point is written.
    private mutating func close(at now: Duration) -> [Effect] {
        let ended = session
        reset(at: now)
        loadAt = nil
        leaveAt = nil
        phase = .closing(until: now + options.farewell)
        return [.close(session: ended)]
    }

    mutating func finishWhenSaved() -> [Effect] {
        guard let seq = window?.resumePoint, seq > savedCursor else { return finish() }
        guard !isSaving else { return [] }
        isSaving = true
        return [.save(seq)]
    }

    mutating func finish() -> [Effect] {
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
        window?.settle(before: now - options.replay)
        window?.moveResumePoint(before: now - options.restartReplay, trail: Int(clamping: options.saveCount))
        window?.putBackAll(at: now)
        isOpen = false
        isProven = false
        hold = nil
        subscribersDue = nil
        awaited = nil
        resumeAt = nil
    }
}
