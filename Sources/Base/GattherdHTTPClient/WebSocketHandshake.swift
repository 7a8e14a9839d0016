import CCurl
import COpenSSL
import FoundationEssentials

/// The opening handshake of a client, RFC 6455, section 4.
package struct WebSocketHandshake {
    /// The most bytes of the server's response.
    private static let longestHead = 16_384
    private static let end = Array("\r\n\r\n".utf8)

    /// The value of `Host`: the server's name, and its port if the URL has one.
    let host: String
    let path: String
    /// The nonce, 16 bytes in Base64.
    let key: String

    init(host: String, path: String, key: String = Self.randomKey()) {
        (self.host, self.path, self.key) = (host, path, key)
    }

    /// Returns a nonce.
    static func randomKey() -> String {
        Data((0..<16).map { _ in UInt8.random(in: 0 ... .max) }).base64EncodedString()
    }

    /// Returns the value of `Sec-WebSocket-Accept` that belongs to a nonce.
    package static func acceptance(of key: String) -> String {
        let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        // SHA-1 has 20 bytes, and OpenSSL writes no more.
        let code = unsafe EVP_Digest(text, text.count, &digest, nil, EVP_sha1(), nil)
        return code == 1 ? Data(digest).base64EncodedString() : ""
    }

    /// The request.
    var request: [UInt8] {
        let lines = [
            "GET \(path) HTTP/1.1", "Host: \(host)", "User-Agent: gattherd", "Upgrade: websocket",
            "Connection: Upgrade", "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13",
        ]
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    /// Checks the start of what the server has sent.
    ///
    /// - Returns: The number of bytes of the response; `nil` until it is complete.
    /// - Throws: ``WebSocketError`` if the server does not accept the connection.
    func responseLength(in bytes: [UInt8]) throws(WebSocketError) -> Int? {
        guard "HTTP/1.1 ".utf8.starts(with: bytes.prefix(9)) else {
            throw WebSocketError("the server does not speak HTTP/1.1")
        }
        let head = bytes.prefix(Self.longestHead)
        guard let last = head.indices.first(where: { head[$0...].starts(with: Self.end) }) else {
            guard bytes.count < Self.longestHead else { throw WebSocketError("the server's response has no end") }
            return nil
        }
        try check(Self.lines(head[..<last]))
        return last + Self.end.count
    }

    /// Returns the header `Date` of a response in seconds since 1970; `nil` without a valid one.
    static func date(in response: some Collection<UInt8>) -> Int64? {
        let line = lines(response).first { $0.prefix { $0 != ":" }.lowercased() == "date" }
        guard let text = line?.drop(while: { $0 != ":" }).dropFirst() else { return nil }
        let seconds = unsafe Int64(curl_getdate(String(text), nil))
        return seconds > 0 ? seconds : nil
    }

    private static func lines(_ head: some Collection<UInt8>) -> [Substring] {
        String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    }

    private func check(_ lines: [Substring]) throws(WebSocketError) {
        let status = lines.first?.dropFirst(9).prefix(3) ?? ""
        guard status == "101" else {
            throw WebSocketError("the server refuses a WebSocket connection with status \(status.filter(\.isNumber))")
        }
        func values(_ name: String) -> [String] {
            lines.dropFirst().filter { $0.prefix { $0 != ":" }.lowercased() == name }
                .flatMap { $0.drop { $0 != ":" }.dropFirst().split(separator: ",") }
                .map { $0.trimmingSpaces }
        }
        guard values("upgrade").contains(where: { $0.lowercased() == "websocket" }),
            values("connection").contains(where: { $0.lowercased() == "upgrade" }),
            values("sec-websocket-accept") == [Self.acceptance(of: key)]
        else { throw WebSocketError("the server's answer to the WebSocket handshake is wrong") }
        guard values("sec-websocket-extensions").isEmpty, values("sec-websocket-protocol").isEmpty else {
            throw WebSocketError("the server uses an extension or a protocol that was not offered")
        }
    }
}

extension Substring {
    fileprivate var trimmingSpaces: String {
        let start = drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
