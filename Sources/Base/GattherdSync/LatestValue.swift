/// A value that any number of watchers can follow.
///
/// A slow watcher skips values, but never the newest one; nothing queues up.
/// A cancellation handler may read and watch the state, but not change it.
public final class LatestValue<State: Equatable & Sendable>: Sendable {
    private struct Shared: Sendable {
        var state: State
        var watchers: [Int: AsyncStream<State>.Continuation] = [:]
        var nextID = 0
        var isFinished = false

        /// Adds a watcher and returns its id; `nil` after the end.
        mutating func add(_ watcher: AsyncStream<State>.Continuation) -> Int? {
            watcher.yield(state)
            guard !isFinished else { return nil }
            defer { nextID += 1 }
            watchers[nextID] = watcher
            return nextID
        }

        /// Changes the state, and returns the watchers to notify; none if the state is equal.
        mutating func update(_ change: (inout State) -> Void) -> [AsyncStream<State>.Continuation] {
            let before = state
            change(&state)
            return state == before ? [] : Array(watchers.values)
        }

        mutating func finish() -> [AsyncStream<State>.Continuation] {
            isFinished = true
            defer { watchers.removeAll() }
            return Array(watchers.values)
        }
    }

    /// The state.
    ///
    /// The value is unlocked while watchers are notified: a notified task resumes only after its cancellation
    /// handlers, which use this lock.
    private let shared: Locked<Shared>
    /// The lock that is held while the state changes and watchers are notified, so notifications stay in order.
    private let notifying = Locked(())

    /// Starts with `initial`.
    public init(_ initial: State) {
        shared = Locked(Shared(state: initial))
    }

    /// The newest value.
    public var state: State { shared.withLock { $0.state } }

    /// Replaces the state; watchers are notified only if it differs.
    public func set(_ state: State) {
        update { $0 = state }
    }

    /// Changes the state in place; watchers are notified only if it differs.
    public func update(_ change: (inout State) -> Void) {
        notifying.withLock { _ in
            let (watchers, state) = shared.withLock { ($0.update(change), $0.state) }
            for watcher in watchers { watcher.yield(state) }
        }
    }

    /// Ends all streams of watchers.
    ///
    /// Later watchers receive the state and the end.
    public func finish() {
        for watcher in shared.withLock({ $0.finish() }) { watcher.finish() }
    }

    /// Returns a stream of the current state and each newer one, until ``finish()``.
    public func watch() -> AsyncStream<State> {
        let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
        guard let id = shared.withLock({ $0.add(continuation) }) else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [shared] _ in
            _ = shared.withLock { $0.watchers.removeValue(forKey: id) }
        }
        return stream
    }
}
