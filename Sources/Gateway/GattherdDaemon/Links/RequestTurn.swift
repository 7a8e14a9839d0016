import GattherdSync

/// The order of the requests of one link, of which one at a time waits for its answer.
///
/// Many devices forward requests to a serial line with one buffer, and tell their answers apart only by the order.
final class RequestTurn: Sendable {
    /// The longest wait for the turn; a request that waited longer is written anyway.
    private let limit: Duration
    private let isTaken = LatestValue(false)

    init(limit: Duration = .seconds(10)) { self.limit = limit }

    /// Runs `body` after the requests before it.
    func perform<Value: Sendable, Failure: Error>(
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let hasTurn = await wait()
        defer { if hasTurn { isTaken.set(false) } }
        return try await body()
    }

    /// Waits for the turn; returns false if the task is cancelled or the wait was too long.
    private func wait() async -> Bool {
        await withTaskGroup(of: Bool.self) { [limit, isTaken] group in
            group.addTask {
                for await _ in isTaken.watch() where Self.take(isTaken) { return true }
                return false
            }
            group.addTask {
                try? await Task.sleep(for: limit, clock: .loop)
                return false
            }
            let first = await group.next() ?? false
            group.cancelAll()
            // The turn may have come at the same moment.
            let second = await group.next() ?? false
            return first || second
        }
    }

    private static func take(_ isTaken: LatestValue<Bool>) -> Bool {
        var isOurs = false
        isTaken.update { state in
            isOurs = !state
            state = true
        }
        return isOurs
    }
}
