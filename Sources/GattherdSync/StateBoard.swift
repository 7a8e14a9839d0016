/// The newest value of something, for any number of watchers.
///
/// A watcher that is slow misses values in between, never the newest; nothing queues up.
public final class StateBoard<State: Equatable & Sendable>: Sendable {
    private struct Watchers: Sendable {
        var all: [Int: AsyncStream<State>.Continuation] = [:]
        var nextID = 0
        var isFinished = false

        /// `nil` when nobody is told any more.
        mutating func add(_ watcher: AsyncStream<State>.Continuation) -> Int? {
            guard !isFinished else { return nil }
            defer { nextID += 1 }
            all[nextID] = watcher
            return nextID
        }

        mutating func finish() -> [AsyncStream<State>.Continuation] {
            isFinished = true
            defer { all.removeAll() }
            return Array(all.values)
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

    /// Ends what watchers wait for; who watches later gets the state as it is, and the end.
    public func finish() {
        for watcher in watchers.withLock({ $0.finish() }) { watcher.finish() }
    }

    /// The state now, then each newer one, until the caller stops asking or ``finish()``.
    public func watch() -> AsyncStream<State> {
        let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
        let id = shared.withLock { state in
            continuation.yield(state)
            return watchers.withLock { $0.add(continuation) }
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [watchers] _ in
            _ = watchers.withLock { $0.all.removeValue(forKey: id) }
        }
        return stream
    }
}
