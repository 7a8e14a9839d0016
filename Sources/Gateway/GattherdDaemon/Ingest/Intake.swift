public import GattherdBluetooth
public import GattherdLog
public import GattherdModel
import GattherdSync
import Synchronization

/// A bounded double buffer of raw values between the central's thread and ingest.
///
/// The central's thread never waits for decoding or the disk. When the buffer is full, the newest values are dropped
/// and counted.
public final class Intake: NotificationSink {
    /// Values in order of arrival; their bytes are stored contiguously.
    struct Buffer: Sendable {
        struct Entry: Sendable {
            let binding: StreamBinding
            let time: Timestamp
            let bytes: Range<Int>
            /// True if the value was read, whichever source the binding has.
            var isRead = false
            /// The signal strength of an advertisement, in dBm.
            var rssi: Int?
            /// True for an advertisement that is no new reading and lets its events last.
            var isRepetition = false

            var source: ReadingSource { isRead ? .read : binding.source }
        }

        var bytes: [UInt8] = []
        var entries: [Entry] = []
        /// The decoders that ended: no values of theirs follow this buffer.
        var endedDecoders: [Int] = []

        var isEmpty: Bool { entries.isEmpty && endedDecoders.isEmpty }

        /// The numbers of entries and bytes whose memory is kept for normal load; more is freed after a stall.
        private static let keptEntries = 4096
        private static let keptBytes = 1 << 17

        mutating func removeAll() {
            bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptBytes)
            entries.removeAll(keepingCapacity: entries.capacity <= Self.keptEntries)
            endedDecoders.removeAll(keepingCapacity: true)
        }
    }

    private struct Shared: Sendable {
        var buffer = Buffer()
        var bindings: [SubscriptionToken: StreamBinding] = [:]
        var nextToken: UInt64 = 1
        var isFinished = false
        var isUrgent = false
    }

    private let shared = Locked(Shared())
    private let capacity: Int
    private let capacityInBytes: Int
    private let arrived: AsyncStream<Void>.Continuation
    /// Yields one element for any number of new values.
    let arrivals: AsyncStream<Void>
    public let dropped = Counter(
        "payloads_dropped_total",
        "Values dropped because decoding and history did not keep up"
    )

    /// - Parameters:
    ///   - capacity: The maximum number of waiting values.
    ///   - capacityInBytes: The maximum number of bytes of waiting values. Growing needs the old and the new array for
    ///     a moment, and `MemoryMax=` of the service leaves room for both.
    public init(capacity: Int = 500_000, capacityInBytes: Int = 48 << 20) {
        self.capacity = capacity
        self.capacityInBytes = capacityInBytes
        (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    public func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        shared.withLock { shared in
            guard let binding = shared.bindings[token] else { return }
            append(octets, for: binding, at: time, to: &shared.buffer)
        }
    }

    public func receiveRead(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        shared.withLock { shared in
            guard let binding = shared.bindings[token] else { return }
            append(octets, for: binding, at: time, isRead: true, to: &shared.buffer)
        }
    }

    public func flush() {
        arrived.yield()
    }

    /// Adds a value that was read; returns false if there was no room.
    @discardableResult
    func receive(_ octets: [UInt8], for binding: StreamBinding, at time: Timestamp) -> Bool {
        defer { flush() }
        return shared.withLock { append(octets.span, for: binding, at: time, to: &$0.buffer) }
    }

    /// Adds a payload that was advertised; ``flush()`` has to follow.
    func add(_ heard: SensorPresence.Heard, at time: Timestamp, rssi: Int?) {
        shared.withLock { shared in
            let count = shared.buffer.entries.count
            let hasRoom = append(heard.octets.span, for: heard.binding, at: time, rssi: rssi, to: &shared.buffer)
            if hasRoom { shared.buffer.entries[count].isRepetition = heard.isRepetition }
        }
    }

    /// Routes the values of `token` to `binding` from now on.
    func bind(_ binding: StreamBinding, to token: SubscriptionToken) {
        shared.withLock { $0.bindings[token] = binding }
    }

    /// Returns an unused token.
    func newToken() -> SubscriptionToken {
        shared.withLock { shared in
            defer { shared.nextToken += 1 }
            return SubscriptionToken(shared.nextToken)
        }
    }

    /// Returns the stream of a token; `nil` if the token has no stream or was removed.
    func stream(of token: SubscriptionToken) -> StreamDefinition? {
        shared.withLock { $0.bindings[token]?.stream }
    }

    /// Removes the tokens and, after the current buffer, the decoders of `decoders`.
    func unbind(_ tokens: [SubscriptionToken], decoders: [Int]) {
        shared.withLock { shared in
            for token in tokens { shared.bindings[token] = nil }
            shared.buffer.endedDecoders += decoders
        }
    }

    /// True if no more values are accepted.
    var isFinished: Bool { shared.withLock { $0.isFinished } }

    /// The number of waiting values.
    var count: Int { shared.withLock { $0.buffer.entries.count } }

    /// Swaps the waiting values for the empty `buffer`.
    func drain(into buffer: inout Buffer) {
        buffer.removeAll()
        let empty = buffer
        buffer = shared.withLock { shared in
            let full = shared.buffer
            shared.buffer = empty
            return full
        }
    }

    /// Demands a commit of the waiting values, however few.
    func demandCommit() {
        shared.withLock { $0.isUrgent = true }
        arrived.yield()
    }

    /// True once after ``demandCommit()``.
    func removeDemand() -> Bool {
        shared.withLock { shared in
            defer { shared.isUrgent = false }
            return shared.isUrgent
        }
    }

    /// Yields an element of ``arrivals`` without a new value.
    func wake() {
        arrived.yield()
    }

    /// Stops accepting values and ends ``arrivals``.
    public func finish() {
        shared.withLock { $0.isFinished = true }
        arrived.finish()
    }

    @discardableResult
    private func append(
        _ octets: Span<UInt8>,
        for binding: StreamBinding,
        at time: Timestamp,
        isRead: Bool = false,
        rssi: Int? = nil,
        to buffer: inout Buffer
    ) -> Bool {
        // A value without room shows as well that the peripheral is alive.
        binding.values.wrappingAdd(1, ordering: .relaxed)
        let hasRoom = buffer.entries.count < capacity && buffer.bytes.count + octets.count <= capacityInBytes
        guard hasRoom else {
            dropped.add()
            binding.countLoss()
            return false
        }
        let start = buffer.bytes.count
        unsafe octets.withUnsafeBufferPointer { unsafe buffer.bytes.append(contentsOf: $0) }
        buffer.entries.append(
            .init(binding: binding, time: time, bytes: start..<buffer.bytes.count, isRead: isRead, rssi: rssi)
        )
        return true
    }
}
