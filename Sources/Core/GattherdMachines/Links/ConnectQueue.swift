public import GattherdGATT

/// Whose turn it is to connect: one at a time on each adapter, in the order of asking, who failed before a little later.
///
/// A controller makes one connection at a time. Several attempts at a time are no faster, and some of them starve: with
/// bluetoothd 5.66 and Linux 6.1, of ten peripherals that advertise every 2 s two ran into the limit of 20 s. An attempt
/// that takes longer than the patience stops blocking the others: it waits for a peripheral that may
/// be out of range, which costs the controller nothing. A device that keeps failing is overtaken by those
/// that ask within its handicap after it, and by nobody else: neither it nor they starve.
public struct ConnectQueue: Equatable, Sendable {
    /// A permission to connect.
    public struct Turn: Hashable, Sendable {
        public let device: String
        public let adapter: BluetoothAddress
    }

    private struct Entry: Equatable {
        let device: String
        /// When it would have asked, had it never failed.
        let rank: Duration
        let hasFailed: Bool
    }

    private struct Attempt: Equatable {
        let adapter: BluetoothAddress
        /// When it stops blocking others.
        let end: Duration
    }

    private var waiting: [Entry] = []
    private var attempts: [String: Attempt] = [:]
    private let patience: Duration
    private let limit: Int
    /// The most attempts on an adapter, however long they take: each is a call without an answer.
    private static let most = 20

    /// - Parameters:
    ///   - patience: How long one attempt blocks the next on the same adapter.
    ///   - limit: How many attempts on an adapter may be past the patience before only devices that have not failed
    ///     get a turn.
    public init(patience: Duration = .milliseconds(1500), limit: Int = 5) {
        self.patience = patience
        self.limit = limit
    }

    /// True when nobody waits for a turn; some may have one.
    public var isEmpty: Bool { waiting.isEmpty }

    /// The devices that have a turn.
    public var connecting: Set<String> { Set(attempts.keys) }

    /// How many devices have a turn on the adapter.
    public func attempts(on adapter: BluetoothAddress) -> Int {
        attempts.values.count { $0.adapter == adapter }
    }

    /// Puts `device` into the queue; `failures` are those in a row, of which the first may be the loss of its link.
    public mutating func add(_ device: String, failures: Int, now: Duration) {
        guard attempts[device] == nil, !waiting.contains(where: { $0.device == device }) else { return }
        let rank = now + .seconds(2) * min(max(failures - 1, 0), 5)
        let place = waiting.firstIndex { $0.rank > rank } ?? waiting.endIndex
        waiting.insert(Entry(device: device, rank: rank, hasFailed: failures > 1), at: place)
    }

    /// Takes `device` out, whether it waits or has its turn.
    public mutating func remove(_ device: String) {
        attempts[device] = nil
        waiting.removeAll { $0.device == device }
    }

    /// Gives the next turn, if one is free.
    ///
    /// - Parameters:
    ///   - now: The monotonic time.
    ///   - adapters: Those that may be used.
    ///   - place: The adapter that a device should use now; `nil` when there is none for it.
    /// - Returns: The first in the queue whose adapter is free.
    public mutating func next(
        now: Duration,
        adapters: some Sequence<BluetoothAddress>,
        place: (String) -> BluetoothAddress?
    ) -> Turn? {
        let free = adapters.filter { !isBlocked($0, now: now) && attempts(on: $0) < Self.most }
        guard !free.isEmpty else { return nil }
        let crowded = free.filter { attempts(on: $0) >= limit }
        for (index, entry) in waiting.enumerated() {
            guard let adapter = place(entry.device), free.contains(adapter) else { continue }
            guard !entry.hasFailed || !crowded.contains(adapter) else { continue }
            waiting.remove(at: index)
            attempts[entry.device] = Attempt(adapter: adapter, end: now + patience)
            return Turn(device: entry.device, adapter: adapter)
        }
        return nil
    }

    /// When a turn comes by itself; `nil` when nobody waits for time to pass.
    public func deadline(after now: Duration) -> Duration? {
        waiting.isEmpty ? nil : endOfPatience(after: now)
    }

    /// When the next attempt is past the patience; `nil` when none is within it.
    public func endOfPatience(after now: Duration) -> Duration? {
        attempts.values.lazy.map(\.end).filter { $0 > now }.min()
    }

    /// True while an attempt on the adapter is within the patience.
    public func isBlocked(_ adapter: BluetoothAddress, now: Duration) -> Bool {
        attempts.values.contains { $0.adapter == adapter && $0.end > now }
    }
}
