import GattherdSync

/// The thread that reads the files for a reload.
///
/// A file system or a native profile may hang it. The reload then fails, and another one starts only after the end of
/// the thread.
final class ReloadThread: Sendable {
    private enum State: Sendable {
        case idle
        case reading
        /// The thread still reads, and nobody waits for the result.
        case late
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
    ///   - again: Requests another reload, after the end of a `body` that exceeded the limit.
    ///   - body: Reads the files.
    /// - Returns: The result of `body`; `nil` if the caller was cancelled before.
    /// - Throws: ``GatewayError`` if the files, or those of an earlier reload, are not read in time.
    func result<Value: Sendable>(
        again: @escaping @Sendable () -> Void,
        of body: @escaping @Sendable () -> Value
    ) async throws(GatewayError) -> Value? {
        try start()
        let result = Locked<Value?>(nil)
        let (ends, end) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
        let hasStarted = NamedThread.start(name: "reload") { [self] in
            let value = body()
            result.withLock { $0 = value }
            let isLate = finish()
            end.finish()
            if isLate { again() }
        }
        guard hasStarted else {
            _ = finish()
            throw GatewayError(.configuration, "the system refuses another thread; reload again later")
        }
        await wait(atMost: limit) { for await _ in ends {} }
        guard leave() else { return result.withLock(\.self) }
        guard !Task.isCancelled else { return nil }
        throw GatewayError(
            .configuration,
            "the files were not read within \(limit): a file system or a native profile hangs; "
                + "they are read again as soon as it answers"
        )
    }

    /// Occupies the thread.
    private func start() throws(GatewayError) {
        let isFree = state.withLock { state in
            guard state == .idle else { return false }
            state = .reading
            return true
        }
        guard !isFree else { return }
        throw GatewayError(
            .configuration,
            "an earlier reload still waits for a file system or a native profile that hangs"
        )
    }

    /// Frees the thread; returns true if nobody waits for the result.
    private func finish() -> Bool {
        state.withLock { state in
            defer { state = .idle }
            return state == .late
        }
    }

    /// Stops waiting; returns true if the thread still reads.
    private func leave() -> Bool {
        state.withLock { state in
            guard state == .reading else { return false }
            state = .late
            return true
        }
    }
}
