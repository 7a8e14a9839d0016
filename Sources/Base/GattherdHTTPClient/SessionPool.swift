import GattherdSync

/// The sessions of a client: one is kept for the next request, and few are in use.
final class SessionPool: Sendable {
    private struct Shared: Sendable {
        var idle: CurlSession?
        /// The number of sessions in use.
        var busy = 0
        var isClosed = false
    }

    /// The maximum number of sessions in use; a cancelled request may hang in a name lookup.
    static let maximum = 4

    private let shared = Locked(Shared())

    /// Returns the kept session or a new one.
    func dequeue() throws(HTTPClientError) -> SessionPlace {
        let (isAllowed, idle) = shared.withLock { shared in
            guard shared.busy < Self.maximum else { return (false, CurlSession?.none) }
            shared.busy += 1
            defer { shared.idle = nil }
            return (true, shared.idle)
        }
        guard isAllowed else { throw HTTPClientError(.local, "earlier requests are still running") }
        if let session = idle ?? CurlSession() { return SessionPlace(session, in: self) }
        release(nil)
        throw HTTPClientError(.local, "libcurl cannot be started; memory may be short")
    }

    /// Closes the kept session; none is kept from now on.
    func close() {
        let idle = shared.withLock { shared in
            shared.isClosed = true
            defer { shared.idle = nil }
            return shared.idle
        }
        _ = idle
    }

    fileprivate func release(_ session: CurlSession?) {
        shared.withLock { shared in
            shared.busy -= 1
            if let session, !shared.isClosed { shared.idle = session }
        }
    }
}

/// A session in use; its place is free after ``finish()``, or when the object is released.
final class SessionPlace: Sendable {
    let session: CurlSession
    private let pool: SessionPool
    private let isFinished = Locked(false)

    fileprivate init(_ session: CurlSession, in pool: SessionPool) {
        (self.session, self.pool) = (session, pool)
    }

    deinit {
        if !isFinished.withLock(\.self) { pool.release(nil) }
    }

    /// Keeps the session for the next request.
    func finish() {
        let wasFinished = isFinished.withLock { isFinished in
            defer { isFinished = true }
            return isFinished
        }
        if !wasFinished { pool.release(session) }
    }
}
