public import GattherdLog
public import GattherdModel
import GattherdSync

/// Takes lifecycle events from anywhere without waiting; history gets them first, then the world.
public final class EventRecorder: Sendable {
    /// How many events wait for their turn, and how many more for a history that cannot be written.
    private static let (room, patience) = (10_000, 1000)
    private let waiting = Locked<[LifecycleEvent]>([])
    private let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let now: @Sendable () -> Timestamp
    /// Events that did not fit.
    public let dropped = Counter("events_dropped_total")

    /// - Parameter now: The wall clock.
    public init(now: @escaping @Sendable () -> Timestamp) {
        self.now = now
    }

    /// Stamps an event and takes it; see ``LifecycleEvent/init(time:device:kind:_:)``.
    public func record(device: String? = nil, kind: String, _ members: KeyValuePairs<String, SampleValue?>) {
        let event = LifecycleEvent(time: now(), device: device, kind: kind, members)
        let fits = waiting.withLock { waiting in
            guard waiting.count < Self.room else { return false }
            waiting.append(event)
            return true
        }
        if !fits { dropped.add() }
        arrived.yield()
    }

    /// Stores and tells events until ``finish()``: all that wait at once, for each commit costs the disk a write.
    public func run(store: any ReadingStore, announcer: (any Announcer)?, log: Log) async {
        var pending: [LifecycleEvent] = []
        for await _ in arrivals {
            let news = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            let isStuck = !pending.isEmpty
            pending += news
            await keep(&pending, in: store, isStuck ? nil : log)
            for event in news { announcer?.announce(event) }
        }
    }

    /// Events that cannot be stored now are stored with later ones, as far as they are not too many.
    private func keep(_ pending: inout [LifecycleEvent], in store: any ReadingStore, _ log: Log?) async {
        guard !pending.isEmpty else { return }
        do throws(StoreFault) {
            try await store.record(pending)
            pending.removeAll()
        } catch {
            log?(.warning, "events wait for history", [.init("history.error", error.detail)])
            let surplus = max(0, pending.count - Self.patience)
            pending.removeFirst(surplus)
            dropped.add(UInt64(surplus))
        }
    }

    /// No more events come.
    public func finish() {
        arrived.finish()
    }
}
