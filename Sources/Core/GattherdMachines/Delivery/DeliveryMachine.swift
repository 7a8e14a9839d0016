/// The state machine of the broker session and of the readings published in it.
///
/// Events in, effects out; no clock and no I/O. Time is passed in, counted from any fixed instant. Readings are
/// published in journal order with at most ``Options/window`` of them unacknowledged. The cursor is the highest `seq`
/// up to which the broker has acknowledged everything; only a PUBACK moves it. A new session republishes two kinds of
/// readings: those that the last session left unacknowledged, and those acknowledged shortly before it was lost.
/// After a kill the next run does the same, because the written cursor trails.
public struct DeliveryMachine: Sendable {
    enum Phase: Hashable, Sendable {
        case idle
        case connecting(until: Duration)
        case connected(since: Duration)
        case backingOff(BrokerFault, until: Duration)
        /// `offline` is being published.
        case leaving(until: Duration)
        /// The cursor is being written for the last time.
        case closing(until: Duration)
        case stopped
    }

    /// Readings held back because the broker was busy or had no subscriber for them.
    struct Hold: Hashable, Sendable {
        /// The oldest of these readings; its acknowledgement ends the hold.
        var seq: Int64
        var retryAt: Duration
        /// True if the broker had no subscriber for it; false if the broker was busy.
        var isUnheard = false
    }

    struct Awaited: Hashable, Sendable {
        let seq: Int64
        let since: Duration
    }

    let options: Options
    var random: SplitMix64
    var phase = Phase.idle
    /// The number of the current session; events of other sessions are stale.
    var session = 0
    var failures = 0
    /// True if an earlier session or attempt existed, so subscribers may have lost the broker too.
    var hasHistory = false
    var hasConnected = false

    var window: DeliveryWindow?
    var head: Int64?
    var isFetching = false
    var fetchingThrough: Int64 = 0
    var isSaving = false
    var savedCursor: Int64 = 0
    var loadAt: Duration?
    var fetchAt: Duration = .zero
    var saveAt: Duration = .zero
    /// The end of the pause after the journal failed to save.
    var saveNotBefore: Duration = .zero

    var limit = 1
    var isOpen = false
    /// True once a reading of this session was acknowledged or skipped.
    var isProven = false
    /// The end of the wait for missing subscribers; `nil` in a first session, and once a subscriber is back.
    var subscribersDue: Duration?
    var drainAt: Duration = .zero
    /// The time at which publishing can continue without another event.
    var resumeAt: Duration?
    var hold: Hold?
    /// The reading in flight that holds up the cursor, and since when.
    var awaited: Awaited?
    /// The last reading that the broker did not acknowledge in time; others do not wait for it.
    var overdue: Int64?
    /// The time at which a stop no longer waits for the backlog.
    var leaveAt: Duration?
    var subscribers = SubscriberWatch()
    var pace: TokenBucket

    /// Creates an idle machine; `seed` determines the jitter of retries.
    public init(options: Options = Options(), seed: UInt64) {
        self.options = options
        random = SplitMix64(seed: seed)
        pace = options.pace
    }

    /// The last `seq` that the broker has acknowledged with all before it; `nil` until known.
    public var cursor: Int64? { window?.cursor }

    /// An upper bound of committed and unacknowledged readings; `seq` may have gaps.
    public var backlog: Int64 {
        guard let head, let window else { return 0 }
        return max(0, head - (window.isEmpty ? window.fetched : window.cursor))
    }

    public var inFlight: Int { window?.inFlight ?? 0 }

    /// The reason why readings wait during a session, if they do.
    public func pause(at now: Duration) -> Pause? {
        guard case .connected = phase, backlog > 0 else { return nil }
        if let hold { return hold.isUnheard ? .awaitingSubscribers : .busy }
        return now < drainAt ? .settling : nil
    }

    public var state: Session {
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
        guard phase != .stopped else { return nil }
        let ofPhase: Duration? =
            switch phase {
            case .connecting(let until), .backingOff(_, let until), .leaving(let until), .closing(let until): until
            case .connected: awaited.map { $0.since + options.acknowledgement }
            case .idle, .stopped: nil
            }
        return [ofPhase, loadDeadline, fetchDeadline, saveDeadline, resumeAt, leaveAt].compactMap { $0 }.min()
    }

    /// Applies one event and returns the resulting effects, in order.
    ///
    /// An event that the state does not expect, or that belongs to an earlier session, changes nothing.
    public mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        guard phase != .stopped else { return [] }
        let effects = apply(event, at: now) + work(at: now)
        noteAwaited(at: now)
        return effects
    }

    private mutating func noteAwaited(at now: Duration) {
        let seq = window?.awaited
        if awaited?.seq != seq { awaited = seq.map { Awaited(seq: $0, since: now) } }
    }

    private mutating func apply(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .start: return start(at: now)
        case .stop(let drain): return stop(drain: drain, at: now)
        case .tick: return tick(at: now)
        case .cursorLoaded(let seq): cursorLoaded(seq)
        case .headMoved(let seq): headMoved(to: seq, at: now)
        case .fetched(let readings, let skipping): fetched(readings, skipping: skipping, at: now)
        case .saved(let seq): saved(seq)
        case .dismissed(let device): subscribers.forget(device)
        case .logFailed(.save) where isClosing: return finish()
        case .logFailed(let operation): logFailed(operation, at: now)
        case .connected(let answered, let maximum) where answered == session:
            return connected(receiveMaximum: maximum, at: now)
        case .windowChanged(let answered, let maximum) where answered == session:
            limit = max(1, min(options.window, maximum))
        case .opened(let answered) where answered == session: isOpen = true
        case .failed(let answered, let fault) where answered == session: return failed(fault, at: now)
        case .settled(let answered, let outcomes) where answered == session: return settled(outcomes, at: now)
        case .farewellSaid(let answered) where answered == session: return farewellSaid(at: now)
        case .connected, .windowChanged, .opened, .failed, .settled, .farewellSaid: break
        }
        return []
    }

    /// Returns the work that the current state requires.
    private mutating func work(at now: Duration) -> [Effect] {
        switch phase {
        case .connected: load(at: now) + publish(at: now) + fetch(at: now) + save(at: now) + leaveIfDrained(at: now)
        case .connecting, .backingOff, .leaving: load(at: now) + save(at: now)
        case .closing: finishWhenSaved()
        case .idle, .stopped: []
        }
    }
}
