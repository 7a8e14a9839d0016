package import GattherdModel

/// A store that passes stored readings on to a ``LiveStatus``.
package struct LiveStore: ReadingStore {
    private let store: any ReadingStore
    private let live: LiveStatus
    private let observe: @Sendable (ReadingBatch) -> Void

    /// - Parameters:
    ///   - store: Stores the readings.
    ///   - live: Receives the stored readings.
    ///   - observe: Called with the stored readings; never blocks.
    package init(
        _ store: any ReadingStore,
        live: LiveStatus,
        observe: @escaping @Sendable (ReadingBatch) -> Void = { _ in }
    ) {
        self.store = store
        self.live = live
        self.observe = observe
    }

    @discardableResult
    package func append(_ batch: ReadingBatch) async throws(StoreFault) -> Bool {
        let isStored = try await store.append(batch)
        live.observe(batch)
        observe(batch)
        return isStored
    }

    package func replayMarks() async throws(StoreFault) -> [String: UInt32] { try await store.replayMarks() }

    package func recordCursors() async throws(StoreFault) -> [RecordCursor] { try await store.recordCursors() }

    package func record(_ events: [LifecycleEvent]) async throws(StoreFault) { try await store.record(events) }

    package func record(_ device: DeviceRecord, seenAt time: Timestamp) async throws(StoreFault) {
        try await store.record(device, seenAt: time)
    }

    package func setHeld(_ device: String, _ isHeld: Bool) async throws(StoreFault) {
        try await store.setHeld(device, isHeld)
    }

    package func heldDevices() async throws(StoreFault) -> Set<String> { try await store.heldDevices() }
}
