import GattherdSync

/// Sends requests to one server by libcurl, each on a thread of its own that ends with the request.
///
/// A connection is kept for the next request. Redirects are not followed, proxies of the environment are not used, and
/// certificates are always verified.
public final class HTTPClient: Sendable {
    private let threadName: String
    private let files: HTTPTLSFiles
    private let sessions = SessionPool()

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
        let place = try sessions.dequeue()
        let transfer = CurlTransfer(request, files, on: place.session)
        let result = await withTaskCancellationHandler {
            // Without a thread the closure is released, and with it the place.
            await NamedThread.result(name: threadName) {
                let result = Result { () throws(HTTPClientError) in try transfer.perform() }
                place.finish()
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
        sessions.close()
    }
}
