public import GattherdLog
public import GattherdModel
import GattherdSync

/// Takes lifecycle events from anywhere without waiting; history gets them first, then the world.
public final class EventRecorder: Sendable {
    private let events: AsyncStream<LifecycleEvent>
    private let continuation: AsyncStream<LifecycleEvent>.Continuation
    private let now: @Sendable () -> Timestamp
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
        for await event in events {
            do throws(StoreFault) {
                try await store.record([event])
            } catch {
                log(.warning, "an event could not be stored", [.init("history.error", error.detail)])
            }
            announcer?.announce(event)
        }
    }

    /// No more events come.
    public func finish() {
        continuation.finish()
    }
}
