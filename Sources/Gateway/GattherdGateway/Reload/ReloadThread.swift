import GattherdSync

/// The start and the limit of the threads that read the files for reloads.
package struct ReloadThreads: Sendable {
    /// The longest time in which files are read; on a small board, with many profiles, it needs some seconds.
    package var limit = Duration.seconds(60)
    /// Starts a thread with a name and a body; returns false if the system refuses it.
    package var start: @Sendable (String, @escaping @Sendable () -> Void) -> Bool = {
        NamedThread.start(name: $0, body: $1)
    }

    package init() {}
}

/// The thread that reads the files for a reload.
///
/// A file system or a native profile may hang it. The reload then fails, and another one starts only after the end of
/// the thread. A late result is kept until it is taken or another reload starts.
final class ReloadThread<Value: Sendable>: Sendable {
    /// The end of a thread for which nobody waited.
    enum LateEnd: Sendable {
        case read(Value)
        /// Another reload was requested meanwhile: the files must be read again.
        case outdated
    }

    private enum State: Sendable {
        case idle
        case reading
        /// The thread still reads, and nobody waits for the result.
        case late(isOutdated: Bool)
        case ended(LateEnd)
    }

    private let threads: ReloadThreads
    private let state = Locked(State.idle)

    /// - Parameter threads: The start and the limit of the threads.
    init(_ threads: ReloadThreads) {
        self.threads = threads
    }

    /// Runs `body`, which may block, on the thread.
    ///
    /// - Parameters:
    ///   - ended: Reports the end of a `body` that exceeded the limit; its result is for ``takeLateEnd()``.
    ///   - body: Reads the files.
    /// - Returns: The result of `body`; `nil` if the caller was cancelled before.
    /// - Throws: ``GatewayError`` if the files, or those of an earlier reload, are not read in time. Also if no thread
    ///   can be started, which keeps a late result.
    func result(
        ended: @escaping @Sendable () -> Void,
        of body: @escaping @Sendable () -> Value
    ) async throws(GatewayError) -> Value? {
        let before = try start()
        let result = Locked<Value?>(nil)
        let (ends, end) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
        let hasStarted = threads.start("reload") { [self] in
            let value = body()
            result.withLock { $0 = value }
            let isLate = finish(value)
            end.finish()
            if isLate { ended() }
        }
        guard hasStarted else {
            state.withLock { $0 = before }
            throw GatewayError(.noThread, "the system refuses another thread; reload again later")
        }
        await wait(atMost: threads.limit) { for await _ in ends {} }
        guard leave() else { return result.withLock(\.self) }
        guard !Task.isCancelled else { return nil }
        throw GatewayError(
            .unread,
            "the files were not read within \(threads.limit): a file system or a native profile hangs; "
                + "they take effect as soon as it answers"
        )
    }

    /// Removes and returns the end of a thread that exceeded the limit; `nil` if there is none, or a newer reload.
    func takeLateEnd() -> LateEnd? {
        state.withLock { state in
            guard case .ended(let end) = state else { return nil }
            state = .idle
            return end
        }
    }

    /// Occupies the thread, and removes a late result; a late thread is marked as outdated.
    ///
    /// - Returns: The state before.
    private func start() throws(GatewayError) -> State {
        let before: State? = state.withLock { state in
            switch state {
            case .idle, .ended:
                defer { state = .reading }
                return state
            case .reading: return nil
            case .late:
                state = .late(isOutdated: true)
                return nil
            }
        }
        if let before { return before }
        throw GatewayError(
            .unread,
            "an earlier reload still waits for a file system or a native profile that hangs; "
                + "the files are read again as soon as it answers"
        )
    }

    /// Frees the thread; returns true if nobody waits for the result, which is then kept.
    private func finish(_ value: Value) -> Bool {
        state.withLock { state in
            guard case .late(let isOutdated) = state else {
                state = .idle
                return false
            }
            state = .ended(isOutdated ? .outdated : .read(value))
            return true
        }
    }

    /// Stops waiting; returns true if the thread still reads.
    private func leave() -> Bool {
        state.withLock { state in
            guard case .reading = state else { return false }
            state = .late(isOutdated: false)
            return true
        }
    }
}
