public import GattherdGATT

/// The queue of connection attempts: one at a time per adapter, first in first out, with a handicap after failures.
///
/// A controller makes one connection at a time. Parallel attempts are no faster, and some of them starve. With
/// bluetoothd 5.66 and Linux 6.1, two of ten peripherals that advertise every 2 s exceeded the limit of 20 s. An
/// attempt that exceeds the timeout no longer blocks others. It waits for a peripheral that may be out of range, which
/// costs the controller nothing. A failing device is overtaken only by devices that ask within its handicap after it.
/// So neither side starves.
public struct ConnectQueue: Equatable, Sendable {
    /// A permission to connect.
    public struct Turn: Hashable, Sendable {
        public let device: String
        public let adapter: BluetoothAddress
    }

    private struct Entry: Equatable {
        let device: String
        /// The request time plus the handicap for failures; the queue is sorted by it.
        let rank: Duration
        let hasFailed: Bool
    }

    private struct Attempt: Equatable {
        let adapter: BluetoothAddress
        /// The time at which the attempt stops blocking others.
        let end: Duration
    }

    private var waiting: [Entry] = []
    private var attempts: [String: Attempt] = [:]
    private let timeout: Duration
    private let limit: Int
    /// The maximum number of attempts per adapter, however long they take; each is a pending call.
    private static let most = 20
    /// The maximum number of attempts on all adapters together, so that other calls find room on the bus connection.
    private static let mostTogether = 32

    /// Creates an empty queue.
    ///
    /// - Parameters:
    ///   - timeout: The time for which one attempt blocks the next on the same adapter.
    ///   - limit: The number of attempts past the timeout on an adapter, above which only devices without failures
    ///     get a turn.
    public init(timeout: Duration = .milliseconds(1500), limit: Int = 5) {
        self.timeout = timeout
        self.limit = limit
    }

    /// True if no device waits for a turn; some may have one.
    public var isEmpty: Bool { waiting.isEmpty }

    /// The devices that have a turn.
    public var connecting: Set<String> { Set(attempts.keys) }

    /// Returns the number of devices that have a turn on the adapter.
    public func attempts(on adapter: BluetoothAddress) -> Int {
        attempts.values.count { $0.adapter == adapter }
    }

    /// The time for which others go first, for each failure: devices that connect at once must not wait for others.
    private static let failurePenalty = Duration.seconds(2)
    /// The maximum number of failures that count.
    private static let maximumFailures = 5

    /// Adds `device` with its number of consecutive failures; the first may be the loss of its link.
    public mutating func add(_ device: String, failures: Int, at now: Duration) {
        guard attempts[device] == nil, !waiting.contains(where: { $0.device == device }) else { return }
        let rank = now + Self.failurePenalty * min(max(failures - 1, 0), Self.maximumFailures)
        let place = waiting.firstIndex { $0.rank > rank } ?? waiting.endIndex
        waiting.insert(Entry(device: device, rank: rank, hasFailed: failures > 1), at: place)
    }

    /// Removes `device`, whether it waits or has its turn.
    public mutating func remove(_ device: String) {
        attempts[device] = nil
        waiting.removeAll { $0.device == device }
    }

    /// Grants the next turn, if one is free.
    ///
    /// - Parameters:
    ///   - now: The monotonic time.
    ///   - adapters: The usable adapters.
    ///   - place: Returns the adapter that a device should use now; `nil` if there is none.
    /// - Returns: The first device in the queue whose adapter is free.
    public mutating func next(
        at now: Duration,
        adapters: some Sequence<BluetoothAddress>,
        place: (String) -> BluetoothAddress?
    ) -> Turn? {
        guard attempts.count < Self.mostTogether else { return nil }
        let free = adapters.filter { !isBlocked($0, at: now) && attempts(on: $0) < Self.most }
        guard !free.isEmpty else { return nil }
        let crowded = free.filter { attempts(on: $0) >= limit }
        for (index, entry) in waiting.enumerated() {
            guard let adapter = place(entry.device), free.contains(adapter) else { continue }
            guard !entry.hasFailed || !crowded.contains(adapter) else { continue }
            waiting.remove(at: index)
            attempts[entry.device] = Attempt(adapter: adapter, end: now + timeout)
            return Turn(device: entry.device, adapter: adapter)
        }
        return nil
    }

    /// The time of the next turn without another event; `nil` if no waiting device depends on time.
    public func deadline(after now: Duration) -> Duration? {
        waiting.isEmpty ? nil : waitDeadline(after: now)
    }

    /// The time at which the next attempt exceeds the timeout; `nil` if no attempt is within it.
    public func waitDeadline(after now: Duration) -> Duration? {
        attempts.values.lazy.map(\.end).filter { $0 > now }.min()
    }

    /// True while an attempt on the adapter is within the timeout.
    public func isBlocked(_ adapter: BluetoothAddress, at now: Duration) -> Bool {
        attempts.values.contains { $0.adapter == adapter && $0.end > now }
    }
}
