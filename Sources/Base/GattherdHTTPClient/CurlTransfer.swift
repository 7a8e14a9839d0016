import CCurl
import Glibc
import Synchronization

/// One request on a session.
final class CurlTransfer: Sendable {
    let session: CurlSession
    private let request: HTTPClientRequest
    private let files: HTTPTLSFiles
    private let isCancelled = Atomic(false)

    init(_ request: HTTPClientRequest, _ files: HTTPTLSFiles, on session: CurlSession) {
        self.request = request
        self.files = files
        self.session = session
    }

    /// Ends ``perform()`` soon; callable from any thread.
    func cancel() {
        isCancelled.store(true, ordering: .relaxed)
        session.wake()
    }

    /// Sends the request and waits for the response; blocks.
    func perform() throws(HTTPClientError) -> HTTPClientResponse {
        session.reset()
        try setLimits()
        try session.setSecurity(files)
        try session.set(CURLOPT_URL, request.url)
        try session.set(CURLOPT_USERAGENT, "gattherd")
        let body = ResponseBody()
        let code = try send(into: body)
        guard let code else { throw HTTPClientError(.cancelled, "the request was cancelled") }
        guard !body.hasOverlongHeaders else { throw HTTPClientError(.interrupted, "the answer has too many headers") }
        guard code == CURLE_OK || body.isOverlong else { throw session.error(code) }
        return response(body)
    }

    /// Performs the transfer with the body and the headers in memory; `nil` if it was cancelled.
    private func send(into body: ResponseBody) throws(HTTPClientError) -> CURLcode? {
        let headers = try HeaderList(request.headers)
        let context = unsafe Unmanaged.passUnretained(body).toOpaque()
        try session.check(unsafe ccurl_set_writer(session.easy, ResponseBody.append, context))
        try session.check(unsafe ccurl_set_header_writer(session.easy, ResponseBody.countHeader, context))
        try session.check(unsafe ccurl_set_pointer(session.easy, CURLOPT_HTTPHEADER, headers.first))
        try session.check(
            unsafe ccurl_set_size(session.easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count))
        )
        let result = unsafe request.body.withUnsafeBytes { bytes in
            Result { () throws(HTTPClientError) in
                // libcurl does not copy the body, and only reads it.
                let start = unsafe UnsafeMutableRawPointer(mutating: bytes.baseAddress)
                try session.check(unsafe ccurl_set_pointer(session.easy, CURLOPT_POSTFIELDS, start))
                return session.run { !isCancelled.load(ordering: .relaxed) }
            }
        }
        return try withExtendedLifetime((headers, body)) { () throws(HTTPClientError) in try result.get() }
    }

    private func setLimits() throws(HTTPClientError) {
        try session.set(CURLOPT_NOSIGNAL, 1)
        try session.set(CURLOPT_POST, 1)
        try session.set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.milliseconds)
        try session.set(CURLOPT_TIMEOUT_MS, request.timeout.milliseconds)
        try session.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    }

    private func response(_ body: ResponseBody) -> HTTPClientResponse {
        var response = HTTPClientResponse(status: unsafe ccurl_status(session.easy), body: body.start)
        let pause = unsafe ccurl_retry_after(session.easy)
        if pause > 0 { response.retryAfter = .seconds(min(pause, 86_400)) }
        for name in request.wantedHeaders { response.headers[name] = session.header(name) }
        return response
    }
}

/// The headers of a request as libcurl's list.
///
/// libcurl does not copy the list.
@safe private final class HeaderList {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init(_ headers: [String: String]) throws(HTTPClientError) {
        // An empty value removes a header: the server's consent to a long body is not awaited.
        var lines = ["Expect:"]
        for (name, value) in headers {
            guard (name + value).utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw HTTPClientError(.local, "the header '\(name)' has a control character")
            }
            lines.append("\(name): \(value)")
        }
        for line in lines { unsafe first = unsafe curl_slist_append(first, line) }
    }

    deinit {
        unsafe curl_slist_free_all(first)
    }
}

/// The start of a response's body; the rest is read and dropped, up to a limit.
///
/// Used on the thread of the transfer only.
private final class ResponseBody {
    private static let kept = 4096
    private static let maximumBytes = 1 << 20
    /// The maximum size of all headers, also of interim responses and of those after the body.
    ///
    /// libcurl keeps them all, and 7.88 limits only those before the body.
    private static let maximumHeaders = 1 << 17

    private(set) var start: [UInt8] = []
    private var count = 0
    private var headers = 0

    /// True if the transfer was ended because the body does not end.
    var isOverlong: Bool { count > Self.maximumBytes }

    /// True if the transfer was ended because the headers do not end.
    var hasOverlongHeaders: Bool { headers > Self.maximumHeaders }

    /// libcurl's callback for a header; another result than `size * number` ends the transfer.
    static let countHeader: curl_write_callback = { _, size, number, context in
        guard let context = unsafe context else { return 0 }
        let body = unsafe Unmanaged<ResponseBody>.fromOpaque(context).takeUnretainedValue()
        body.headers += size &* number
        return body.hasOverlongHeaders ? 0 : size &* number
    }

    /// libcurl's callback; another result than `size * number` ends the transfer.
    static let append: curl_write_callback = { bytes, size, number, context in
        guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
        let body = unsafe Unmanaged<ResponseBody>.fromOpaque(context).takeUnretainedValue()
        let length = size &* number
        return unsafe body.append(UnsafeRawBufferPointer(start: bytes, count: length)) ? length : 0
    }

    private func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        count += bytes.count
        unsafe start.append(contentsOf: bytes.prefix(max(0, Self.kept - start.count)))
        return !isOverlong
    }
}

extension Duration {
    /// The whole milliseconds, at most a day.
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(clamping: min(max(seconds, 0), 86_400) * 1000 + attoseconds / 1_000_000_000_000_000)
    }
}
