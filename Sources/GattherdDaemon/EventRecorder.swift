public import GattherdLog
public import GattherdModel
import GattherdSync

/// Takes lifecycle events from anywhere without waiting; history gets them first, then the world.
public final class EventRecorder: Sendable {
    private let events: AsyncStream<LifecycleEvent>
    private let continuation: AsyncStream<LifecycleEvent>.Continuation
    private let now: @Sendable () -> Timestamp
    /// How many events wait for a history that cannot be written.
    private static let limit = 1000
    /// Events that did not fit while history was stuck.
    public let dropped = Counter("events_dropped_total")

    /// - Parameter now: The wall clock.
    public init(now: @escaping @Sendable () -> Timestamp) {
        self.now = now
        (events, continuation) = AsyncStream.makeStream(
            of: LifecycleEvent.self,
            bufferingPolicy: .bufferingOldest(10_000)
        )
    }

    /// Stamps an event and takes it; see ``LifecycleEvent/init(time:device:kind:_:)``.
    public func record(device: String? = nil, kind: String, _ members: KeyValuePairs<String, SampleValue?>) {
        let event = LifecycleEvent(time: now(), device: device, kind: kind, members)
        if case .dropped = continuation.yield(event) { dropped.add() }
    }

    /// Stores and tells events until ``finish()``.
    public func run(store: any ReadingStore, announcer: (any Announcer)?, log: Log) async {
        var pending: [LifecycleEvent] = []
        for await event in events {
            pending.append(event)
            await keep(&pending, in: store, log)
            announcer?.announce(event)
        }
    }

    /// Events that cannot be stored now are stored with a later one, as far as they are not too many.
    private func keep(_ pending: inout [LifecycleEvent], in store: any ReadingStore, _ log: Log) async {
        do throws(StoreFault) {
            try await store.record(pending)
            pending.removeAll()
        } catch {
            if pending.count == 1 { log(.warning, "events wait for history", [.init("history.error", error.detail)]) }
            guard pending.count > Self.limit else { return }
            pending.removeFirst()
            dropped.add()
        }
    }

    /// No more events come.
    public func finish() {
        continuation.finish()
    }
}
