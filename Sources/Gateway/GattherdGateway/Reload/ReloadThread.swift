import GattherdSync

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

    private let limit: Duration
    private let state = Locked(State.idle)

    /// - Parameter limit: The longest time in which files are read.
    init(limit: Duration) {
        self.limit = limit
    }

    /// Runs `body`, which may block, on the thread.
    ///
    /// - Parameters:
    ///   - ended: Reports the end of a `body` that exceeded the limit; its result is for ``takeLateEnd()``.
    ///   - body: Reads the files.
    /// - Returns: The result of `body`; `nil` if the caller was cancelled before.
    /// - Throws: ``GatewayError`` if the files, or those of an earlier reload, are not read in time.
    func result(
        ended: @escaping @Sendable () -> Void,
        of body: @escaping @Sendable () -> Value
    ) async throws(GatewayError) -> Value? {
        try start()
        let result = Locked<Value?>(nil)
        let (ends, end) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
        let hasStarted = NamedThread.start(name: "reload") { [self] in
            let value = body()
            result.withLock { $0 = value }
            let isLate = finish(value)
            end.finish()
            if isLate { ended() }
        }
        guard hasStarted else {
            state.withLock { $0 = .idle }
            throw GatewayError(.unread, "the system refuses another thread; reload again later")
        }
        await wait(atMost: limit) { for await _ in ends {} }
        guard leave() else { return result.withLock(\.self) }
        guard !Task.isCancelled else { return nil }
        throw GatewayError(
            .unread,
            "the files were not read within \(limit): a file system or a native profile hangs; "
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

    /// Occupies the thread, and discards a late result; a late thread is marked as outdated.
    private func start() throws(GatewayError) {
        let isFree = state.withLock { state in
            switch state {
            case .idle, .ended:
                state = .reading
                return true
            case .reading: return false
            case .late:
                state = .late(isOutdated: true)
                return false
            }
        }
        guard !isFree else { return }
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
