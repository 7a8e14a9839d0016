import GattherdHTTPClient
import GattherdSync
import TestKit
import Testing

/// The client against a server that answers correctly, wrongly, late or not at all.
@Suite(.timeLimit(.minutes(1))) struct WebSocketTests {
    /// Runs `body` with a connection, on a thread of its own.
    private func connected<Value: Sendable>(
        to server: WebSocketServer,
        timeout: Duration = .seconds(20),
        maximum: Int = 1 << 24,
        isCancelled: @escaping @Sendable () -> Bool = { false },
        _ body: @escaping @Sendable (WebSocket) throws -> Value
    ) async throws -> Value {
        let host = "127.0.0.1:\(server.port)"
        var request = WebSocketRequest(url: "http://\(host)/api", host: host, path: "/api")
        (request.timeout, request.longestMessage) = (timeout, maximum)
        let result = await NamedThread.result(name: "test") { [request] in
            Result { try body(try WebSocket(request, isCancelled: isCancelled)) }
        }
        defer { withExtendedLifetime(server) {} }
        return try #require(result).get()
    }

    private func failure(
        _ steps: [WebSocketServer.Step],
        timeout: Duration = .seconds(20),
        maximum: Int = 1 << 24
    ) async throws -> HTTPClientError? {
        let server = try WebSocketServer { $0 == nil ? steps : [] }
        return await #expect(throws: HTTPClientError.self) {
            try await connected(to: server, timeout: timeout, maximum: maximum) { _ = try $0.receive() }
        }
    }

    @Test func `texts of all lengths are sent and received`() async throws {
        let server = try WebSocketServer { text in text.map { [.text($0)] } ?? [.text("welcome")] }
        let echoes = try await connected(to: server) { socket in
            #expect(try socket.receive() == Array("welcome".utf8))
            return try [0, 1, 125, 126, 65_535, 65_536, 3_000_000].map { count in
                try socket.send([UInt8](repeating: 0x61, count: count))
                return try socket.receive().count
            }
        }
        #expect(echoes == [0, 1, 125, 126, 65_535, 65_536, 3_000_000])
    }

    @Test func `pings are answered and fragments joined`() async throws {
        let frames =
            WebSocketServer.frame(9, [1, 2]) + WebSocketServer.frame(1, [0x61], isFinal: false)
            + WebSocketServer.frame(10, []) + WebSocketServer.frame(0, [0x62])
        let server = try WebSocketServer { $0 == nil ? [.bytes(frames)] : [.text("done")] }
        try await connected(to: server) { socket in
            #expect(try socket.receive() == Array("ab".utf8))
            try socket.send([])
            #expect(try socket.receive() == Array("done".utf8))
            socket.close()
        }
        #expect(server.receivedOpcodes.prefix(2) == [10, 1])
    }

    @Test func `a server that closes, violates the rules or is silent is an error`() async throws {
        let close = WebSocketServer.frame(8, [0x03, 0xE9] + Array("restart".utf8))
        let error = try await failure([.bytes(close)])
        #expect(error?.kind == .interrupted)
        #expect(error?.detail.contains("code 1001, restart") == true)
        #expect(try await failure([.close])?.kind == .interrupted)
        #expect(try await failure([.bytes([0x81, 5]), .close])?.kind == .interrupted)
        #expect(try await failure([.bytes([0xC1, 0])])?.kind == .notWebSocket)
        #expect(try await failure([.bytes(WebSocketServer.frame(2, [1]))])?.kind == .notWebSocket)
        #expect(try await failure([.text("four")], maximum: 3)?.kind == .notWebSocket)
        #expect(try await failure([], timeout: .milliseconds(50))?.kind == .timeout)
        // Bytes that never become a message.
        let filler = WebSocketServer.frame(1, [], isFinal: false) + WebSocketServer.frame(10, [1])
        #expect(
            try await failure(
                [.bytes(filler), .bytesForever(WebSocketServer.frame(10, [1]))],
                timeout: .milliseconds(200)
            )?.kind == .timeout
        )
    }

    @Test func `a response that is not a handshake is an error`() async throws {
        let refusal = try WebSocketServer(handshake: { _ in "HTTP/1.1 404 Not Found\r\n\r\n" }) { _ in [] }
        let error = await #expect(throws: HTTPClientError.self) { try await connected(to: refusal) { _ in } }
        #expect(error?.kind == .notWebSocket)
        #expect(error?.detail.contains("404") == true)
    }

    @Test func `a cancelled connection ends soon`() async throws {
        let isCancelled = LatestValue(false)
        let server = try WebSocketServer { _ in
            isCancelled.update { $0 = true }
            return []
        }
        let error = await #expect(throws: HTTPClientError.self) {
            try await connected(to: server, isCancelled: { isCancelled.state }) { _ = try $0.receive() }
        }
        #expect(error?.kind == .cancelled)
    }

    @Test func `certificates are verified`() async throws {
        let authority = try await Authority()
        let server = try await TLSServer(try await authority.identity(for: "DNS:localhost"), [])
        let host = "localhost:\(server.port)"
        func error(_ files: HTTPTLSFiles) async -> HTTPClientError? {
            var request = WebSocketRequest(url: "https://\(host)/", host: host, path: "/")
            request.files = files
            return await NamedThread.result(name: "test") { [request] in
                do throws(HTTPClientError) {
                    _ = try WebSocket(request)
                    return nil
                } catch {
                    return error
                }
            } ?? nil
        }
        #expect(await error(HTTPTLSFiles())?.kind == .certificate)
        // openssl answers with a page: the bytes went through TLS both ways.
        let error = await error(HTTPTLSFiles(ca: authority.certificate))
        #expect(error?.kind == .notWebSocket)
        #expect(error?.detail == "the server does not speak HTTP/1.1")
    }
}
