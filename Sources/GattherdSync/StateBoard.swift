/// The newest value of something, for any number of watchers.
///
/// A watcher that is slow misses values in between, never the newest; nothing queues up.
public final class StateBoard<State: Equatable & Sendable>: Sendable {
    private struct Shared: Sendable {
        var state: State
        var watchers: [Int: AsyncStream<State>.Continuation] = [:]
        var nextID = 0
    }

    private let shared: Locked<Shared>

    /// Starts with `initial`.
    public init(_ initial: State) {
        shared = Locked(Shared(state: initial))
    }

    /// The newest value.
    public var state: State { shared.withLock { $0.state } }

    /// Replaces the state; watchers hear of it only if it differs.
    public func set(_ state: State) {
        update { $0 = state }
    }

    /// Changes the state in place; watchers hear of it only if it differs.
    public func update(_ change: (inout State) -> Void) {
        shared.withLock { shared in
            let before = shared.state
            change(&shared.state)
            guard shared.state != before else { return }
            for watcher in shared.watchers.values { watcher.yield(shared.state) }
        }
    }

    /// The state now, then each newer one, until the caller stops asking.
    public func watch() -> AsyncStream<State> {
        let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
        let id = shared.withLock { shared in
            defer { shared.nextID += 1 }
            shared.watchers[shared.nextID] = continuation
            continuation.yield(shared.state)
            return shared.nextID
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.shared.withLock { $0.watchers.removeValue(forKey: id) }
        }
        return stream
    }
}
