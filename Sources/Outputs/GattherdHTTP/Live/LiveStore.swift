public import GattherdModel

/// A store that shows what it has stored to a ``LiveStatus``.
public struct LiveStore: ReadingStore {
    private let store: any ReadingStore
    private let board: LiveStatus

    public init(_ store: any ReadingStore, board: LiveStatus) {
        self.store = store
        self.board = board
    }

    public func append(_ batch: ReadingBatch) async throws(StoreFault) {
        try await store.append(batch)
        board.observe(batch)
    }

    public func replayMarks() async throws(StoreFault) -> [String: UInt32] { try await store.replayMarks() }

    public func record(_ events: [LifecycleEvent]) async throws(StoreFault) { try await store.record(events) }

    public func note(_ device: DeviceRecord, seenAt time: Timestamp) async throws(StoreFault) {
        try await store.note(device, seenAt: time)
    }

    public func setHeld(_ device: String, _ isHeld: Bool) async throws(StoreFault) {
        try await store.setHeld(device, isHeld)
    }

    public func heldDevices() async throws(StoreFault) -> Set<String> { try await store.heldDevices() }
}
