public import GattherdLog
public import GattherdModel
import GattherdSync

/// Records lifecycle events without blocking the caller; history stores them before they are published.
///
/// The queue is limited in bytes, and each source in its rate: see ``EventAllowance``.
public final class EventRecorder: Sendable {
    private struct Waiting: Sendable {
        var events: [LifecycleEvent] = []
        var bytes = 0
        var allowance = EventAllowance()
    }

    /// The maximum number of bytes of queued events.
    private static let queueLimit = 4 << 20
    /// The maximum number of events that wait for a history that is not writable.
    private static let retryLimit = 1000
    private let waiting = Locked(Waiting())
    private let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let now: @Sendable () -> Timestamp
    private let uptime: @Sendable () -> Duration
    public let dropped = Counter("events_dropped_total", "Events that were not stored because the queue was full")
    public let leftOut = Counter("events_left_out_total", "Events left out because their source exceeded its rate")

    /// The counters, for the metrics.
    public var counters: [Counter] { [dropped, leftOut] }

    /// - Parameters:
    ///   - now: The wall clock.
    ///   - uptime: The monotonic clock; by default the system's.
    public init(now: @escaping @Sendable () -> Timestamp, uptime: (@Sendable () -> Duration)? = nil) {
        self.now = now
        let start = SuspendingClock.now
        self.uptime = uptime ?? { SuspendingClock.now - start }
    }

    /// Stamps an event with the time and queues it; see ``LifecycleEvent/init(time:device:kind:_:)``.
    public func record(device: String? = nil, kind: String, _ members: KeyValuePairs<String, SampleValue?>) {
        let source = EventAllowance.Source(device: device, kind: kind, members)
        let uptime = uptime()
        guard let missing = waiting.withLock({ $0.allowance.admit(source, at: uptime) }) else { return leftOut.add() }
        var all = Array(members)
        if missing > 0 { all.append((key: "left_out", value: .integer(Int64(missing)))) }
        let event = LifecycleEvent(time: now(), device: device, kind: kind, members: all)
        let bytes = event.detail.utf8.count + 128
        let fits = waiting.withLock { waiting in
            guard waiting.bytes + bytes <= Self.queueLimit else { return false }
            waiting.events.append(event)
            waiting.bytes += bytes
            return true
        }
        if !fits { dropped.add() }
        arrived.yield()
    }

    /// Stores and publishes events until ``finish()``.
    ///
    /// All queued events share one commit, as each commit costs a disk write.
    public func run(store: any ReadingStore, announcer: (any Announcer)?, log: Log) async {
        var pending: [LifecycleEvent] = []
        for await _ in arrivals {
            let batch = waiting.withLock { waiting in
                defer { (waiting.events, waiting.bytes) = ([], 0) }
                return waiting.events
            }
            let isStuck = !pending.isEmpty
            pending += batch
            await write(&pending, to: store, isStuck ? nil : log)
            for event in batch { announcer?.announce(event) }
        }
        // On a full disk, history makes some room after the first failure.
        await write(&pending, to: store, nil)
        guard !pending.isEmpty else { return }
        dropped.add(UInt64(pending.count))
        log(.error, "stopped while history could not be written; events were lost", [.init("events", pending.count)])
    }

    /// Stores events, and keeps up to ``retryLimit`` of them for the next attempt if that fails.
    private func write(_ pending: inout [LifecycleEvent], to store: any ReadingStore, _ log: Log?) async {
        guard !pending.isEmpty else { return }
        do throws(StoreFault) {
            try await store.record(pending)
            pending.removeAll()
        } catch {
            log?(.warning, "events wait for history", [.init("history.error", error.detail)])
            let surplus = max(0, pending.count - Self.retryLimit)
            pending.removeFirst(surplus)
            dropped.add(UInt64(surplus))
        }
    }

    /// Ends the queue: no more events are recorded.
    public func finish() {
        arrived.finish()
    }
}

/// Several announcers as one, called in order.
struct Announcers: Announcer {
    private let all: [any Announcer]

    init(_ all: [any Announcer]) {
        self.all = all
    }

    func update(_ status: LinkStatus) {
        for announcer in all { announcer.update(status) }
    }

    func describe(_ device: DeviceDescription) {
        for announcer in all { announcer.describe(device) }
    }

    func remove(device: String) {
        for announcer in all { announcer.remove(device: device) }
    }

    func announce(_ event: LifecycleEvent) {
        for announcer in all { announcer.announce(event) }
    }

    func update(_ lease: DeviceLease) {
        for announcer in all { announcer.update(lease) }
    }

    func updatePermissions() {
        for announcer in all { announcer.updatePermissions() }
    }
}
