import GattherdSync

/// Sends requests to one server by libcurl, each on a thread of its own that ends with the request.
///
/// A connection is kept for the next request. Redirects are not followed, proxies of the environment are not used, and
/// certificates are always verified.
public final class HTTPClient: Sendable {
    private struct Sessions: Sendable {
        var idle: CurlSession?
        /// The number of sessions whose thread has not ended.
        var busy = 0
        var isClosed = false
    }

    /// The maximum number of threads; a cancelled request may hang in a name lookup.
    private static let maximumSessions = 4

    private let threadName: String
    private let files: HTTPTLSFiles
    private let sessions = Locked(Sessions())

    /// - Parameters:
    ///   - threadName: The name of the threads, at most 15 bytes.
    ///   - files: The files for TLS, which each new connection reads again.
    public init(threadName: String, files: HTTPTLSFiles = HTTPTLSFiles()) {
        self.threadName = threadName
        self.files = files
    }

    /// Sends a request and waits for the response without blocking a thread of the caller's.
    ///
    /// - Throws: ``HTTPClientError``. A cancelled call returns at once, and its connection is closed.
    public func send(_ request: HTTPClientRequest) async throws(HTTPClientError) -> HTTPClientResponse {
        let transfer = CurlTransfer(request, files, on: try dequeue())
        let result = await withTaskCancellationHandler {
            await NamedThread.result(name: threadName) { [self] in
                let result = Result { () throws(HTTPClientError) in try transfer.perform() }
                enqueue(transfer.session)
                return result
            }
        } onCancel: {
            transfer.cancel()
        }
        guard let result else { throw HTTPClientError(.cancelled, "the request was cancelled") }
        return try result.get()
    }

    /// Closes the kept connection; requests that follow make new ones, which are not kept.
    public func close() {
        let idle = sessions.withLock { sessions in
            sessions.isClosed = true
            defer { sessions.idle = nil }
            return sessions.idle
        }
        _ = idle
    }

    private func dequeue() throws(HTTPClientError) -> CurlSession {
        let (isAllowed, idle) = sessions.withLock { sessions in
            guard sessions.busy < Self.maximumSessions else { return (false, CurlSession?.none) }
            sessions.busy += 1
            defer { sessions.idle = nil }
            return (true, sessions.idle)
        }
        guard isAllowed else { throw HTTPClientError(.local, "earlier requests are still running") }
        if let session = idle ?? CurlSession() { return session }
        sessions.withLock { $0.busy -= 1 }
        throw HTTPClientError(.local, "libcurl cannot be started; memory may be short")
    }

    private func enqueue(_ session: CurlSession) {
        sessions.withLock { sessions in
            sessions.busy -= 1
            if !sessions.isClosed { sessions.idle = session }
        }
    }
}
