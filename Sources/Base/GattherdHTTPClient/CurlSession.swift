import CCurl
import GattherdSync

/// The handles of libcurl for one request at a time, and the connection that is kept between requests.
///
/// `@unchecked Sendable` is safe: ``HTTPClient`` gives a session to one thread at a time. Other threads call only
/// ``wake()``, which libcurl allows.
@safe final class CurlSession: @unchecked Sendable {
    /// libcurl must be initialised once before its first use.
    private static let isInitialised = curl_global_init(3) == CURLE_OK
    /// The longest wait for a transfer in milliseconds; ``wake()`` interrupts it.
    private static let transferWait: Int32 = 1000
    /// The interval in milliseconds at which a wait for a connection checks for its cancellation.
    private static let connectionWait: Int32 = 200

    /// One transfer; its options are set for each request.
    let easy: UnsafeMutableRawPointer
    private let multi: UnsafeMutableRawPointer
    /// Receives libcurl's message for an error.
    private let words: UnsafeMutablePointer<CChar>

    init?() {
        guard Self.isInitialised, let easy = unsafe curl_easy_init() else { return nil }
        guard let multi = unsafe curl_multi_init() else {
            unsafe curl_easy_cleanup(easy)
            return nil
        }
        unsafe self.easy = easy
        unsafe self.multi = multi
        unsafe words = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        // Only that of ``connect(while:)`` is still there; removing another is an error without effect.
        _ = unsafe curl_multi_remove_handle(multi, easy)
        unsafe curl_easy_cleanup(easy)
        unsafe curl_multi_cleanup(multi)
        unsafe words.deallocate()
    }

    /// Interrupts the wait of ``run(while:)``; callable from any thread.
    func wake() {
        _ = unsafe curl_multi_wakeup(multi)
    }

    /// Performs the transfer and waits for its end; `nil` if `mayContinue` has returned false.
    func run(while mayContinue: () -> Bool) -> CURLcode? {
        guard unsafe curl_multi_add_handle(multi, easy) == CURLM_OK else { return CURLE_OUT_OF_MEMORY }
        defer { unsafe curl_multi_remove_handle(multi, easy) }
        var running: Int32 = 1
        while mayContinue() {
            guard unsafe curl_multi_perform(multi, &running) == CURLM_OK else { return CURLE_OUT_OF_MEMORY }
            guard running > 0 else { return unsafe ccurl_result(multi) }
            _ = unsafe curl_multi_poll(multi, nil, 0, Self.transferWait, nil)
        }
        return nil
    }

    /// Makes the connection of `CURLOPT_CONNECT_ONLY`; `nil` if `mayContinue` has returned false.
    ///
    /// The transfer stays in the multi handle: libcurl closes the connection when it is removed.
    func connect(while mayContinue: () -> Bool) -> CURLcode? {
        guard unsafe curl_multi_add_handle(multi, easy) == CURLM_OK else { return CURLE_OUT_OF_MEMORY }
        var running: Int32 = 1
        while mayContinue() {
            guard unsafe curl_multi_perform(multi, &running) == CURLM_OK else { return CURLE_OUT_OF_MEMORY }
            guard running > 0 else { return unsafe ccurl_result(multi) }
            _ = unsafe curl_multi_poll(multi, nil, 0, Self.connectionWait, nil)
        }
        return nil
    }

    /// Returns libcurl's message for the last error.
    func words(for code: CURLcode) -> String {
        let text = unsafe String(cString: words)
        return text.isEmpty ? unsafe String(cString: curl_easy_strerror(code)) : text
    }

    /// Removes the options of the previous request.
    func reset() {
        unsafe curl_easy_reset(easy)
        unsafe words.pointee = 0
        _ = unsafe ccurl_set_pointer(easy, CURLOPT_ERRORBUFFER, words)
    }

    func set(_ option: CURLoption, _ value: Int) throws(HTTPClientError) {
        try check(unsafe ccurl_set_long(easy, option, value))
    }

    /// Sets a text, which libcurl copies.
    func set(_ option: CURLoption, _ value: String) throws(HTTPClientError) {
        try check(unsafe ccurl_set_text(easy, option, value))
    }

    func check(_ code: CURLcode) throws(HTTPClientError) {
        guard code != CURLE_OK else { return }
        throw HTTPClientError(.local, "libcurl refuses an option: \(unsafe String(cString: curl_easy_strerror(code)))")
    }

    /// Returns a header of the response.
    func header(_ name: String) -> String? {
        var found: UnsafeMutablePointer<curl_header>?
        // 1 is CURLH_HEADER, and -1 stands for the last response.
        guard unsafe curl_easy_header(easy, name, 0, 1, -1, &found) == CURLHE_OK, let found = unsafe found else {
            return nil
        }
        return unsafe String(String(cString: found.pointee.value).prefix(1024))
    }
}

/// Bytes on a connection that ``connect(while:)`` made.
extension CurlSession {
    enum Wait {
        case reading
        case writing
    }

    private static let chunk = 65_536

    /// Sends as many bytes as the socket accepts now; `CURLE_AGAIN` if it accepts none.
    func send(_ bytes: ArraySlice<UInt8>) -> (code: CURLcode, count: Int) {
        var count = 0
        let code = unsafe bytes.withUnsafeBytes { unsafe curl_easy_send(easy, $0.baseAddress, $0.count, &count) }
        return (code, code == CURLE_OK ? min(count, bytes.count) : 0)
    }

    /// Returns the received bytes: none at the end of the connection, `CURLE_AGAIN` if none have arrived.
    func receive() -> (code: CURLcode, bytes: [UInt8]) {
        var code = CURLE_OK
        // libcurl writes at most the given number of bytes, and counts them.
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Self.chunk) { buffer, count in
            code = unsafe curl_easy_recv(easy, buffer.baseAddress, buffer.count, &count)
            if code != CURLE_OK { count = 0 }
        }
        return (code, bytes)
    }

    /// Waits until the socket is ready, at most for a time.
    func wait(_ reason: Wait, milliseconds: Int32) {
        let events = reason == .reading ? CURL_WAIT_POLLIN : CURL_WAIT_POLLOUT
        var wanted = curl_waitfd(fd: unsafe ccurl_socket(easy), events: Int16(events), revents: 0)
        _ = unsafe curl_multi_poll(multi, &wanted, 1, milliseconds, nil)
    }
}

/// The rules for all connections, and their errors.
extension CurlSession {
    /// Sets the certificates; a secret in the headers reaches only the server of the URL.
    func setSecurity(_ files: HTTPTLSFiles) throws(HTTPClientError) {
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
        // A renewed file is read by the next connection; libcurl would keep it for a day.
        try set(CURLOPT_CA_CACHE_TIMEOUT, 0)
        // OpenSSL would ask the terminal for the passphrase of a key.
        try set(CURLOPT_KEYPASSWD, "")
        if let ca = files.ca {
            try set(CURLOPT_CAINFO, ca)
            try check(unsafe ccurl_set_text(easy, CURLOPT_CAPATH, nil))
        }
        if let certificate = files.certificate { try set(CURLOPT_SSLCERT, certificate) }
        if let key = files.key { try set(CURLOPT_SSLKEY, key) }
    }

    /// The error of a transfer that ended with `code`.
    func error(_ code: CURLcode) -> HTTPClientError {
        let words = words(for: code)
        let number = unsafe ccurl_system_error(easy)
        guard code == CURLE_COULDNT_CONNECT, number != 0 else { return HTTPClientError(.init(code), words) }
        return HTTPClientError(.unreachable, "\(words) (\(SystemError(number)))")
    }
}

extension HTTPClientError.Kind {
    fileprivate init(_ code: CURLcode) {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: self = .unresolved
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: self = .unreachable
        case CURLE_OPERATION_TIMEDOUT: self = .timeout
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR: self = .certificate
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED: self = .tls
        case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE: self = .file
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_HTTP2:
            self = .notHTTP
        case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT, CURLE_URL_MALFORMAT, CURLE_BAD_FUNCTION_ARGUMENT, CURLE_AGAIN:
            self = .local
        default: self = .interrupted
        }
    }
}
