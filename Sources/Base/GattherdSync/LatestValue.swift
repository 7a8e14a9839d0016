/// The newest value of something, for any number of watchers.
///
/// A watcher that is slow misses values in between, never the newest; nothing queues up.
/// A task's cancellation handler may ask for the state and watch it, not change it.
public final class LatestValue<State: Equatable & Sendable>: Sendable {
    private struct Shared: Sendable {
        var state: State
        var watchers: [Int: AsyncStream<State>.Continuation] = [:]
        var nextID = 0
        var isFinished = false

        /// `nil` when nobody is told any more.
        mutating func add(_ watcher: AsyncStream<State>.Continuation) -> Int? {
            watcher.yield(state)
            guard !isFinished else { return nil }
            defer { nextID += 1 }
            watchers[nextID] = watcher
            return nextID
        }

        /// Those who have to be told; nobody when the state is as it was.
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

    /// Not held while watchers are told: whoever is told cannot wake up before its cancellation handlers have ended,
    /// and those take this lock.
    private let shared: Locked<Shared>
    /// Held while the state changes and watchers are told, so that they are told in order.
    private let telling = Locked(())

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
        telling.withLock { _ in
            let (watchers, state) = shared.withLock { ($0.update(change), $0.state) }
            for watcher in watchers { watcher.yield(state) }
        }
    }

    /// Ends what watchers wait for; who watches later gets the state as it is, and the end.
    public func finish() {
        for watcher in shared.withLock({ $0.finish() }) { watcher.finish() }
    }

    /// The state now, then each newer one, until the caller stops asking or ``finish()``.
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
