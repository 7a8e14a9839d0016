import CCurl

/// The handles of libcurl for one request at a time, and the connection that is kept between requests.
///
/// `@unchecked Sendable` is safe: ``HTTPClient`` gives a session to one thread at a time. Only ``wake()`` is called by
/// others, which libcurl allows.
@safe final class CurlSession: @unchecked Sendable {
    /// libcurl must be initialised once before its first use.
    private static let isInitialised = curl_global_init(3) == CURLE_OK

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
            _ = unsafe curl_multi_poll(multi, nil, 0, 1000, nil)
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
