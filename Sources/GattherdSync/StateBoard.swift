/// The newest value of something, for any number of watchers.
///
/// A watcher that is slow misses values in between, never the newest; nothing queues up.
public final class StateBoard<State: Equatable & Sendable>: Sendable {
    private struct Watchers: Sendable {
        var all: [Int: AsyncStream<State>.Continuation] = [:]
        var nextID = 0

        mutating func add(_ watcher: AsyncStream<State>.Continuation) -> Int {
            defer { nextID += 1 }
            all[nextID] = watcher
            return nextID
        }
    }

    /// Held while watchers are told, so that they are told in order.
    private let shared: Locked<State>
    /// Behind a lock of its own, which is not held meanwhile: a task that is cancelled takes its watcher out, and
    /// cannot be woken up before it has.
    private let watchers = Locked(Watchers())

    /// Starts with `initial`.
    public init(_ initial: State) {
        shared = Locked(initial)
    }

    /// The newest value.
    public var state: State { shared.withLock { $0 } }

    /// Replaces the state; watchers hear of it only if it differs.
    public func set(_ state: State) {
        update { $0 = state }
    }

    /// Changes the state in place; watchers hear of it only if it differs.
    public func update(_ change: (inout State) -> Void) {
        shared.withLock { state in
            let before = state
            change(&state)
            guard state != before else { return }
            for watcher in watchers.withLock({ $0.all }).values { watcher.yield(state) }
        }
    }

    /// The state now, then each newer one, until the caller stops asking.
    public func watch() -> AsyncStream<State> {
        let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
        let id = shared.withLock { state in
            continuation.yield(state)
            return watchers.withLock { $0.add(continuation) }
        }
        continuation.onTermination = { [watchers] _ in
            _ = watchers.withLock { $0.all.removeValue(forKey: id) }
        }
        return stream
    }
}
