/// Whose turn it is to connect on one adapter: first come, first served, one at a time.
///
/// A controller makes one connection at a time, and parallel attempts starve each other. An attempt
/// that takes longer than the patience stops blocking the others: it waits for a peripheral that may
/// be out of range, which costs the controller nothing.
public struct ConnectQueue: Equatable, Sendable {
    private var waiting: [String] = []
    /// Attempts under way, with the time when each stops blocking the others.
    private var running: [String: Duration] = [:]
    private let patience: Duration
    private let limit: Int

    /// - Parameters:
    ///   - patience: How long one attempt blocks the next.
    ///   - limit: The most attempts at once, patient or not.
    public init(patience: Duration = .milliseconds(1500), limit: Int = 5) {
        self.patience = patience
        self.limit = limit
    }

    /// Puts `device` at the end of the queue.
    public mutating func add(_ device: String) {
        guard running[device] == nil, !waiting.contains(device) else { return }
        waiting.append(device)
    }

    /// Takes `device` out, whether it waits or has its turn.
    public mutating func remove(_ device: String) {
        running[device] = nil
        waiting.removeAll { $0 == device }
    }

    /// Gives the next turn, if one is free.
    public mutating func next(now: Duration) -> String? {
        guard running.count < limit, running.values.allSatisfy({ $0 <= now }), !waiting.isEmpty else { return nil }
        let device = waiting.removeFirst()
        running[device] = now + patience
        return device
    }

    /// When the next turn comes by itself; `nil` when nobody waits for time to pass.
    public func nextTurn(now: Duration) -> Duration? {
        guard !waiting.isEmpty, running.count < limit else { return nil }
        return running.values.max().flatMap { $0 > now ? $0 : nil }
    }
}
