import CCurl

/// The server of a WebSocket connection, and its limits.
public struct WebSocketRequest: Sendable {
    /// The URL, which begins with `http://` or `https://`, without user information, query and fragment.
    public var url: String
    /// The host as the URL has it, with its port if it has one.
    public var host: String
    public var path: String
    public var files = HTTPTLSFiles()
    /// The longest time for name lookup, connecting and TLS.
    public var connectTimeout = Duration.seconds(10)
    /// The longest time for the handshake, for sending a message, and between two messages.
    public var timeout = Duration.seconds(30)
    /// The most bytes of a message from the server.
    public var longestMessage = 16 << 20

    public init(url: String, host: String, path: String) {
        (self.url, self.host, self.path) = (url, host, path)
    }
}

/// A WebSocket connection as a client, RFC 6455: TCP and TLS by libcurl, frames by ourselves.
///
/// Calls block and belong to one thread. Certificates are verified as by ``HTTPClient``. No extension is used.
public final class WebSocket {
    /// The longest time until a cancellation is noticed, in milliseconds.
    private static let pollInterval: Int32 = 200
    /// The longest time for the close frame, which is a courtesy to the server.
    private static let closeLimit = Duration.seconds(1)

    /// The server's time at the handshake, in seconds since 1970; `nil` if it did not tell it.
    public private(set) var serverTime: Int64?
    private let session: CurlSession
    private let isCancelled: () -> Bool
    private let timeout: Duration
    private var decoder: WebSocketDecoder

    /// Connects and performs the handshake.
    ///
    /// - Parameters:
    ///   - request: The server.
    ///   - isCancelled: Returns true to end calls soon; called often.
    /// - Throws: ``HTTPClientError``.
    public init(
        _ request: WebSocketRequest,
        isCancelled: @escaping () -> Bool = { false }
    ) throws(HTTPClientError) {
        guard let session = CurlSession() else {
            throw HTTPClientError(.local, "libcurl cannot be started; memory may be short")
        }
        self.session = session
        self.isCancelled = isCancelled
        timeout = request.timeout
        decoder = WebSocketDecoder(maximum: request.longestMessage)
        session.reset()
        try session.set(CURLOPT_NOSIGNAL, 1)
        try session.set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.milliseconds)
        try session.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        try session.setSecurity(request.files)
        try session.set(CURLOPT_URL, request.url)
        try session.set(CURLOPT_CONNECT_ONLY, 1)
        guard let code = session.connect(while: { !isCancelled() }) else { throw Self.cancelled }
        guard code == CURLE_OK else { throw session.error(code) }
        try shakeHands(WebSocketHandshake(host: request.host, path: request.path))
    }

    /// Sends a text.
    public func send(_ text: [UInt8]) throws(HTTPClientError) {
        try send(.text, text, before: .now + timeout)
    }

    /// Returns the next message of the server; answers pings meanwhile.
    ///
    /// - Throws: ``HTTPClientError``: `interrupted` also after a close frame, `notWebSocket` for a binary message.
    public func receive() throws(HTTPClientError) -> [UInt8] {
        let end = ContinuousClock.now + timeout
        while true {
            guard let event = try decoded({ decoder throws(WebSocketError) in try decoder.next() }) else {
                decoder.append(try read(before: end))
                continue
            }
            switch event {
            case .text(let text): return text
            case .ping(let payload): try send(.pong, payload, before: end)
            case .pong: break
            case .binary: throw HTTPClientError(.notWebSocket, "the server sends a message that is not text")
            case .close(let code, let reason):
                let words = [code.map { "code \($0)" }, reason.isEmpty ? nil : reason].compactMap(\.self)
                let cause = words.isEmpty ? "" : ": \(words.joined(separator: ", "))"
                throw HTTPClientError(.interrupted, "the server closes the connection\(cause)")
            }
        }
    }

    /// Sends a close frame, without waiting for the server's answer.
    public func close() {
        // 1000: the purpose of the connection is fulfilled. An error changes nothing any more.
        do throws(HTTPClientError) { try send(.close, [0x03, 0xE8], before: .now + Self.closeLimit) } catch {}
    }

    private static var cancelled: HTTPClientError { HTTPClientError(.cancelled, "the connection was cancelled") }

    private func shakeHands(_ handshake: WebSocketHandshake) throws(HTTPClientError) {
        let end = ContinuousClock.now + timeout
        try write(handshake.request, before: end)
        var received: [UInt8] = []
        while true {
            received += try read(before: end)
            let length = try decoded { _ throws(WebSocketError) in try handshake.responseLength(in: received) }
            guard let length else { continue }
            serverTime = WebSocketHandshake.date(in: received.prefix(length))
            return decoder.append(received.dropFirst(length))
        }
    }

    /// Runs `body` with the decoder; a violation of the protocol is an error of the connection.
    private func decoded<Value>(
        _ body: (inout WebSocketDecoder) throws(WebSocketError) -> Value
    ) throws(HTTPClientError) -> Value {
        do throws(WebSocketError) {
            return try body(&decoder)
        } catch {
            throw HTTPClientError(.notWebSocket, error.detail)
        }
    }

    private func send(
        _ opcode: WebSocketOpcode,
        _ payload: [UInt8],
        before end: ContinuousClock.Instant
    ) throws(HTTPClientError) {
        let frame = WebSocketFrame(opcode: opcode, payload: payload)
        try write(frame.encoded(mask: WebSocketFrame.randomMask()), before: end)
    }

    private func write(_ bytes: [UInt8], before end: ContinuousClock.Instant) throws(HTTPClientError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let (code, count) = session.send(rest)
            guard code == CURLE_OK || code == CURLE_AGAIN else { throw session.error(code) }
            rest = rest.dropFirst(count)
            if code == CURLE_AGAIN { try wait(.writing, before: end) }
        }
    }

    /// Returns the received bytes, at least one.
    private func read(before end: ContinuousClock.Instant) throws(HTTPClientError) -> [UInt8] {
        while true {
            let (code, bytes) = session.receive()
            if code == CURLE_AGAIN {
                try wait(.reading, before: end)
                continue
            }
            guard code == CURLE_OK else { throw session.error(code) }
            guard !bytes.isEmpty else { throw HTTPClientError(.interrupted, "the server has closed the connection") }
            // A server that never stops sending must not hold the thread.
            guard ContinuousClock.now < end else { throw HTTPClientError(.timeout, "the server takes too long") }
            return bytes
        }
    }

    private func wait(_ reason: CurlSession.Wait, before end: ContinuousClock.Instant) throws(HTTPClientError) {
        guard !isCancelled() else { throw Self.cancelled }
        guard ContinuousClock.now < end else { throw HTTPClientError(.timeout, "the server takes too long") }
        session.wait(reason, milliseconds: Self.pollInterval)
    }
}
