import GattherdMQTT
import GattherdMachines
import GattherdModel

/// The state machine of an edge node: connections, births and deaths, values and the cursor.
///
/// Events in, effects out; no clock and no I/O. `now` counts from any fixed instant, `time` is the time of day that
/// messages carry. Values are read from the journal only while the node is born, so that the journal is the buffer for
/// an outage of the broker or the primary host.
struct SparkplugMachine: Sendable {
    private enum Phase: Hashable {
        case idle
        case connecting(until: Duration)
        /// Connected and subscribed; the primary host is not known to be online.
        case waitingForHost
        case online(since: Duration)
        case backingOff(BrokerFault?, until: Duration)
        /// The cursor is being written for the last time.
        case closing(until: Duration)
        case stopped
    }

    private let options: Options
    private var pauses: ReconnectPauses
    private var phase = Phase.idle
    /// The number of the current session; events of other sessions are stale.
    private var session = 0
    private(set) var node: EdgeNode
    private var host: HostWatch
    private var rebirths: RequestLimit
    /// True until the broker has the births of the last rebirth: more would wait in memory on a slow connection.
    private var isBirthUnconfirmed = false
    private var journal: JournalWork
    /// The bdSeq of the next connection; `nil` until loaded.
    private var nextBdSeq: UInt8?
    private var historical = HistoricalValues()
    private var deaths: DelayedDeaths
    /// The time at which a stop no longer waits for the backlog.
    private var leaveAt: Duration?

    init(_ node: EdgeNode, waitsForHost: Bool, options: Options, seed: UInt64) {
        self.node = node
        self.options = options
        host = HostWatch(isConfigured: waitsForHost)
        rebirths = RequestLimit(burst: options.rebirths, interval: options.rebirthInterval)
        journal = JournalWork(options: options, waitsForHost: waitsForHost)
        deaths = DelayedDeaths(delay: options.deathDelay)
        pauses = .init(options.backoff, refused: options.refusedBackoff, stable: options.stableAfter, seed: seed)
    }

    var progress: JournalProgress { journal.progress }

    var state: State {
        switch phase {
        case .idle: .idle
        case .connecting: .connecting
        case .waitingForHost: leaveAt == nil ? .waitingForHost : .stopping
        case .online: leaveAt == nil ? .online : .stopping
        case .backingOff(let fault, _): .backingOff(fault)
        case .closing: .stopping
        case .stopped: .stopped
        }
    }

    /// The time of the next attempt, if one is due.
    var nextTry: Duration? {
        guard case .backingOff(_, let until) = phase else { return nil }
        return until
    }

    /// True while the answer to ``Effect/connect(session:bdSeq:will:)`` of that number is pending.
    func isConnecting(_ session: Int) -> Bool { session == self.session && state == .connecting }

    /// The time at which ``Event/tick`` must be sent; `nil` while nothing depends on time.
    var deadline: Duration? {
        switch phase {
        case .idle, .stopped: nil
        case .connecting(let until), .closing(let until):
            [until, journal.saveDeadline, leaveAt].compactMap(\.self).min()
        case .backingOff(_, let until):
            // Without the bdSeq, which is loaded with the cursor, it cannot connect.
            [nextBdSeq == nil ? nil : until, journal.saveDeadline, journal.loadDeadline].compactMap(\.self).min()
        case .waitingForHost: [journal.saveDeadline, leaveAt, deaths.deadline].compactMap(\.self).min()
        case .online:
            [journal.saveDeadline, leaveAt, deaths.deadline, rebirthDeadline, journal.sendDeadline]
                .compactMap(\.self).min()
        }
    }

    private var rebirthDeadline: Duration? { isBirthUnconfirmed ? nil : rebirths.deadline }

    // MARK: - Events

    /// Applies one event and returns the resulting effects, in order.
    ///
    /// An event that the state does not expect, or that belongs to an earlier session, changes nothing.
    mutating func handle(_ event: Event, at now: Duration, _ time: Timestamp) -> [Effect] {
        guard phase != .stopped else { return [] }
        return apply(event, at: now, time) + work(at: now, time)
    }

    private mutating func apply(_ event: Event, at now: Duration, _ time: Timestamp) -> [Effect] {
        switch event {
        case .start, .stop, .tick, .connected, .failed: return applySession(event, at: now, time)
        case .loaded(let cursor, let bdSeq): loaded(cursor, bdSeq)
        case .headMoved(let seq): headMoved(to: seq)
        case .fetched(let batch, let start): return fetched(batch, after: start, at: now, time)
        case .saved(let seq): journal.saved(seq)
        case .journalFailed(let operation): return journalFailed(operation, at: now)
        case .message(let number, let message) where number == session: return received(message, at: now, time)
        case .confirmed(let number) where number == session: confirmed(at: now)
        case .unpublished(let device, let aliases): node.valuesAreMissing(aliases, of: device)
        case .described(let description): return publish(node.describe(description, at: time))
        case .link(let device, let isOnline): return link(device, isOnline: isOnline, at: now, time)
        case .removed(let device):
            deaths.cancel(device)
            return publish(node.remove(device, through: progress.head ?? 0, at: time))
        case .permitted(let permissions): return publish(node.allow(permissions, at: time))
        case .controlSet(let request, let value):
            return publish(node.controlWasSet(request.control, of: request.device, to: value, at: time))
        case .message, .confirmed: break
        }
        return []
    }

    private mutating func applySession(_ event: Event, at now: Duration, _ time: Timestamp) -> [Effect] {
        switch event {
        case .start where phase == .idle:
            phase = .backingOff(nil, until: now)
            return []
        case .stop(let drain): return stop(drain: drain, at: now, time)
        case .tick: return tick(at: now, time)
        case .connected(let number, let maximum) where number == session: return connected(maximum, at: now, time)
        case .failed(let number, let fault) where number == session: return failed(fault, at: now)
        default: return []
        }
    }

    /// Returns the work that the current state requires.
    private mutating func work(at now: Duration, _ time: Timestamp) -> [Effect] {
        switch phase {
        case .idle, .stopped: return []
        case .backingOff(_, let until):
            let effects = journal.load(at: now) + journal.save(at: now)
            return now >= until ? effects + connect(at: now, time) : effects
        case .connecting, .waitingForHost: return journal.save(at: now)
        case .online:
            var effects = rebirth(at: now, time)
            effects += overtaken(time)
            effects += journal.fetch(at: now)
            effects += ping(at: now)
            effects += journal.save(at: now)
            return effects + leaveIfDrained(at: now, time)
        case .closing(let until): return close(at: now, until: until)
        }
    }

    private func publish(_ messages: [SparkplugMessage]) -> [Effect] {
        messages.isEmpty ? [] : [.publish(session: session, messages)]
    }
}

/// Begins and ends the session with the broker.
extension SparkplugMachine {
    /// Connects, once the bdSeq is known.
    private mutating func connect(at now: Duration, _ time: Timestamp) -> [Effect] {
        guard let bdSeq = nextBdSeq else { return [] }
        nextBdSeq = bdSeq &+ 1
        session += 1
        phase = .connecting(until: now + options.connectTimeout)
        node.connect(bdSeq: bdSeq)
        host.connect()
        return [.connect(session: session, bdSeq: bdSeq, will: EdgeNode.death(node.topics, bdSeq: bdSeq, at: time))]
    }

    private mutating func connected(_ maximumPacket: Int, at now: Duration, _ time: Timestamp) -> [Effect] {
        guard case .connecting = phase else { return [] }
        node.limitPackets(to: maximumPacket)
        guard host.isReady else {
            phase = .waitingForHost
            return [.report(.waitingForHost)]
        }
        return start(at: now, time)
    }

    /// Publishes the first births of a session.
    private mutating func start(at now: Duration, _ time: Timestamp) -> [Effect] {
        phase = .online(since: now)
        journal.start(at: now)
        historical.start(head: progress.head)
        rebirths.fulfil()
        return publish(node.birth(at: time)) + [.report(.born)]
    }

    /// Publishes all births again if a host asked for them, and a ping whose answer confirms them.
    private mutating func rebirth(at now: Duration, _ time: Timestamp) -> [Effect] {
        guard !isBirthUnconfirmed, rebirths.claim(at: now) else { return [] }
        isBirthUnconfirmed = true
        return publish(node.birth(at: time)) + [.ping(session: session), .report(.bornAgain)]
    }

    /// Records that the broker has everything that was sent before the last ping.
    private mutating func confirmed(at now: Duration) {
        isBirthUnconfirmed = false
        journal.confirmed(at: now)
    }

    private mutating func failed(_ fault: BrokerFault, at now: Duration) -> [Effect] {
        switch phase {
        case .connecting, .waitingForHost: break
        case .online(let since): pauses.sessionEnded(after: now - since)
        case .idle, .backingOff, .closing, .stopped: return []
        }
        let ended = session
        reset(at: now)
        guard leaveAt == nil else { return [.close(session: ended, nil)] + startClosing(at: now) }
        let delay = pauses.next(after: fault)
        phase = .backingOff(fault, until: now + delay)
        return [.close(session: ended, nil), .report(.disconnected(fault, retryAfter: delay))]
    }

    /// Ends the session because the primary host is or was offline, and starts another one, which waits for the host.
    ///
    /// The pause grows, because each session with a host that comes and goes publishes all births.
    private mutating func hostWentOffline(since: Duration, at now: Duration, _ time: Timestamp) -> [Effect] {
        let ended = session
        let death = node.death(at: time)
        reset(at: now)
        journal.hostIsOffline()
        pauses.sessionEnded(after: now - since)
        let pause = pauses.next(after: BrokerFault(.lost, "the primary host is offline"))
        phase = .backingOff(nil, until: now + pause)
        return [.close(session: ended, death), .report(.hostIsOffline)]
    }

    private mutating func reset(at now: Duration) {
        session += 1
        isBirthUnconfirmed = false
        journal.reset(at: now)
        deaths.removeAll()
        node.connect(bdSeq: node.bdSeq)
    }

    private mutating func tick(at now: Duration, _ time: Timestamp) -> [Effect] {
        if let leaveAt, now >= leaveAt, session > 0 { return leave(at: now, time) }
        if case .connecting(let until) = phase, now >= until {
            return failed(BrokerFault(.unreachable, "the broker did not answer in time"), at: now)
        }
        return publishDueDeaths(at: now, time)
    }

    // MARK: - Stop

    private mutating func stop(drain: Duration, at now: Duration, _ time: Timestamp) -> [Effect] {
        switch phase {
        case .online where drain > .zero:
            leaveAt = min(leaveAt ?? now + drain, now + drain)
            return []
        case .connecting, .waitingForHost, .online: return leave(at: now, time)
        case .idle, .backingOff: return startClosing(at: now)
        case .closing, .stopped: return []
        }
    }

    private mutating func leaveIfDrained(at now: Duration, _ time: Timestamp) -> [Effect] {
        guard leaveAt != nil, progress.isCaughtUp, progress.isConfirmed else { return [] }
        // The cursor may be saved already.
        return leave(at: now, time) + work(at: now, time)
    }

    private mutating func leave(at now: Duration, _ time: Timestamp) -> [Effect] {
        let ended = session
        let isConnecting = if case .connecting = phase { true } else { false }
        let death = isConnecting ? nil : node.death(at: time)
        reset(at: now)
        return [.close(session: ended, death)] + startClosing(at: now)
    }

    private mutating func startClosing(at now: Duration) -> [Effect] {
        leaveAt = nil
        phase = .closing(until: now + options.stopLimit)
        return []
    }

    /// Ends once the cursor is written.
    private mutating func close(at now: Duration, until: Duration) -> [Effect] {
        now < until ? journal.saveLast(at: now) ?? finish() : finish()
    }

    private mutating func finish() -> [Effect] {
        phase = .stopped
        return [.finish]
    }
}

/// Handles the answers of the journal.
extension SparkplugMachine {
    private mutating func loaded(_ cursor: Int64, _ bdSeq: UInt8?) {
        journal.loaded(cursor)
        if nextBdSeq == nil { nextBdSeq = bdSeq.map { $0 &+ 1 } ?? 0 }
    }

    private mutating func headMoved(to seq: Int64) {
        if progress.head == nil, case .online = phase { historical.headBecameKnown(seq) }
        journal.headMoved(to: seq)
    }

    private mutating func fetched(
        _ batch: JournalBatch,
        after start: Int64,
        at now: Duration,
        _ time: Timestamp
    ) -> [Effect] {
        let readings = batch.readings
        guard case .online = phase,
            journal.fetched(after: start, through: batch.through, count: readings.count, at: now)
        else { return [] }
        node.finishRemovals(through: progress.resumePoint ?? 0)
        let gap: [Effect] = batch.missing.map { [.report(.missing($0))] } ?? []
        return gap + publish(node.publish(readings, historicalThrough: historical.end, dying: deaths.devices, at: time))
    }

    /// Publishes the current values once the historical ones are sent.
    private mutating func overtaken(_ time: Timestamp) -> [Effect] {
        historical.finish(progress) ? publish(node.publishOvertaken(at: time)) : []
    }

    private mutating func ping(at now: Duration) -> [Effect] {
        journal.startPing(at: now) ? [.ping(session: session)] : []
    }

    private mutating func journalFailed(_ operation: Operation, at now: Duration) -> [Effect] {
        journal.failed(operation, at: now)
        if operation == .save, case .closing = phase { return finish() }
        return []
    }
}

/// Devices and hosts.
extension SparkplugMachine {
    private mutating func link(
        _ device: String,
        isOnline: Bool,
        at now: Duration,
        _ time: Timestamp
    ) -> [Effect] {
        if isOnline {
            deaths.cancel(device)
            return publish(node.deviceIsOnline(device, at: time))
        }
        guard node.isOnline(device) else { return [] }
        if node.isBorn(device) { deaths.add(device, at: now) }
        return publish(node.deviceIsOffline(device, at: time))
    }

    /// Publishes the deaths that are due.
    private mutating func publishDueDeaths(at now: Duration, _ time: Timestamp) -> [Effect] {
        publish(deaths.removeDue(at: now).flatMap { node.deathIfOffline($0, at: time) })
    }

    private mutating func received(_ message: BrokerMessage, at now: Duration, _ time: Timestamp) -> [Effect] {
        switch HostMessage(message, node.topics) {
        case .unrelated: []
        case .invalid(let reason): ignore(message, reason)
        case .state(let payload): hostState(payload, message, at: now, time)
        case .rebirth: rebirthRequested()
        case .command(let payload, let device): deviceCommand(payload, device, message)
        }
    }

    private mutating func hostState(
        _ payload: [UInt8],
        _ message: BrokerMessage,
        at now: Duration,
        _ time: Timestamp
    ) -> [Effect] {
        guard host.receive(payload, at: time) else {
            return ignore(message, "it is older than the last one, or invalid")
        }
        switch phase {
        case .connecting, .waitingForHost:
            if host.wasOffline { journal.hostIsOffline() }
            return phase == .waitingForHost && host.isReady ? start(at: now, time) : []
        case .online(let since) where host.wasOffline:
            return leaveAt == nil ? hostWentOffline(since: since, at: now, time) : leave(at: now, time)
        default: return []
        }
    }

    private mutating func rebirthRequested() -> [Effect] {
        guard case .online = phase else { return [] }
        rebirths.request()
        return [.report(.rebirthRequested)]
    }

    private func deviceCommand(_ payload: SparkplugPayload, _ device: String, _ message: BrokerMessage) -> [Effect] {
        guard case .online = phase else { return ignore(message, "the edge node is not online") }
        return node.requests(payload, for: device).map { result in
            switch result {
            case .success(let request): .set(request)
            case .failure(let error): .report(.ignored(topic: message.topic, error.description))
            }
        }
    }

    private func ignore(_ message: BrokerMessage, _ reason: String) -> [Effect] {
        [.report(.ignored(topic: message.topic, reason))]
    }
}
