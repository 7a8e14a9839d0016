import GattherdHTTPClient
import GattherdSync
import Glibc
import TestKit
import Testing

/// The client against a server that answers correctly, wrongly, late or not at all.
@Suite(.timeLimit(.minutes(1))) struct HTTPClientTests {
    private static let accepted = "HTTP/1.1 204 No Content\r\n\r\n"

    private func response(
        of steps: [ScriptedServer.Step],
        _ change: (inout HTTPClientRequest) -> Void = { _ in }
    ) async throws -> HTTPClientResponse {
        let server = try ScriptedServer { _ in steps }
        var request = HTTPClientRequest("http://127.0.0.1:\(server.port)/write?db=x", body: Array("hello".utf8))
        change(&request)
        defer { withExtendedLifetime(server) {} }
        return try await HTTPClient(threadName: "test").send(request)
    }

    private func kind(
        of steps: [ScriptedServer.Step],
        _ change: (inout HTTPClientRequest) -> Void = { _ in }
    ) async throws -> HTTPClientError.Kind? {
        do {
            _ = try await response(of: steps, change)
            return nil
        } catch let error as HTTPClientError {
            return error.kind
        }
    }

    @Test func `a request has its path, headers and body`() async throws {
        let server = try ScriptedServer { _ in [.send(Self.accepted)] }
        var request = HTTPClientRequest("http://127.0.0.1:\(server.port)/a/write?db=x%20y", body: Array("points".utf8))
        request.headers = ["Authorization": "Token secret", "Content-Type": "text/plain"]
        let response = try await HTTPClient(threadName: "test").send(request)
        #expect(response == HTTPClientResponse(status: 204))
        let received = try #require(server.requests.first)
        #expect(received.head.hasPrefix("POST /a/write?db=x%20y HTTP/1.1\r\n"))
        #expect(received.head.contains("\r\nAuthorization: Token secret\r\n"))
        #expect(received.head.contains("\r\nContent-Type: text/plain\r\n"))
        #expect(received.body == Array("points".utf8))
    }

    @Test func `the connection is kept for the next request`() async throws {
        let server = try ScriptedServer { _ in [.send(Self.accepted)] }
        let client = HTTPClient(threadName: "test")
        for _ in 0..<5 { _ = try await client.send(HTTPClientRequest("http://127.0.0.1:\(server.port)/", body: [1])) }
        #expect(server.requests.map(\.connection) == [1, 1, 1, 1, 1])
        client.close()
        await server.waitForEnd(ofConnections: 1)
    }

    @Test func `a connection that the server closed in between is replaced`() async throws {
        let server = try ScriptedServer { _ in [.send(Self.accepted), .close] }
        let client = HTTPClient(threadName: "test")
        for number in 1...5 {
            _ = try await client.send(HTTPClientRequest("http://127.0.0.1:\(server.port)/", body: [1]))
            await server.waitForEnd(ofConnections: number)
        }
        #expect(server.requests.map(\.connection) == [1, 2, 3, 4, 5])
    }

    @Test func `a body of megabytes is sent without waiting for consent`() async throws {
        let server = try ScriptedServer { _ in [.send(Self.accepted)] }
        let body = [UInt8](repeating: 7, count: 5 << 20)
        _ = try await HTTPClient(threadName: "test").send(
            HTTPClientRequest("http://127.0.0.1:\(server.port)/", body: body)
        )
        let received = try #require(server.requests.first)
        #expect(received.body == body)
        #expect(!received.head.lowercased().contains("expect:"))
    }

    @Test func `an empty body is sent with its length`() async throws {
        let server = try ScriptedServer { _ in [.send(Self.accepted)] }
        _ = try await HTTPClient(threadName: "test").send(
            HTTPClientRequest("http://127.0.0.1:\(server.port)/", body: [])
        )
        #expect(try #require(server.requests.first).head.contains("Content-Length: 0"))
    }

    @Test func `interim responses are skipped`() async throws {
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLocation: /x\r\n\r\n"
        let response = try await response(of: [.send(interim + Self.accepted)]) { $0.wantedHeaders = ["Location"] }
        #expect(response == HTTPClientResponse(status: 204))
    }

    @Test func `the start of the body, the wanted headers and the pause are returned`() async throws {
        let body = String(repeating: "x", count: 10_000)
        let head = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nx-version: 1.6\r\nOther: o\r\nContent-Length: 10000\r\n\r\n"
        let response = try await response(of: [.send(head + body)]) { $0.wantedHeaders = ["X-Version", "Absent"] }
        #expect(response.status == 503)
        #expect(response.retryAfter == .seconds(7))
        #expect(response.headers == ["X-Version": "1.6"])
        #expect(response.body == Array(body.utf8.prefix(4096)))
    }

    @Test func `a pause of years is bounded by a day`() async throws {
        let head = "HTTP/1.1 503 Busy\r\nRetry-After: 999999999\r\nContent-Length: 0\r\n\r\n"
        #expect(try await response(of: [.send(head)]).retryAfter == .seconds(86_400))
    }

    @Test func `a body without end does not hold the request`() async throws {
        let chunk = "10000\r\n" + String(repeating: "x", count: 65_536) + "\r\n"
        let head = "HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n"
        let response = try await response(of: [.send(head), .sendForever(chunk)])
        #expect(response.status == 400)
        #expect(response.body.count == 4096)
    }

    /// Before the body, as interim responses, and after the body, where libcurl 7.88 has no limit.
    @Test(arguments: [
        ("HTTP/1.1 204 No Content\r\n", "X-Header: 1\r\n"), ("", "HTTP/1.1 102 Processing\r\nX-Header: 1\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X-Header: 1\r\n"),
    ]) func `headers without end are an error`(start: String, header: String) async throws {
        let headers = String(repeating: header, count: 1000)
        let error = await #expect(throws: HTTPClientError.self) {
            try await response(of: [.send(start), .sendForever(headers)])
        }
        #expect(error?.kind == .interrupted && error?.detail == "the answer has too many headers")
    }

    @Test func `a compressed answer is not expanded`() async throws {
        let answer = "HTTP/1.1 400 Bad Request\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nbytes"
        #expect(try await response(of: [.send(answer)]).body == Array("bytes".utf8))
    }

    @Test func `redirects are not followed`() async throws {
        let other = try ScriptedServer { _ in [.send(Self.accepted)] }
        let target = "http://127.0.0.1:\(other.port)/"
        let head = "HTTP/1.1 307 Elsewhere\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n"
        let response = try await response(of: [.send(head)]) {
            $0.headers = ["Authorization": "Token secret"]
            $0.wantedHeaders = ["Location"]
        }
        #expect(response == HTTPClientResponse(status: 307, headers: ["Location": target]))
        #expect(other.requests.isEmpty)
    }

    @Test func `a proxy of the environment is not used`() async throws {
        let proxy = try ScriptedServer { _ in [.send(Self.accepted)] }
        let server = try ScriptedServer { _ in [.send(Self.accepted)] }
        // The variable is read by libcurl in each transfer; no other test uses a proxy.
        unsafe setenv("http_proxy", "http://127.0.0.1:\(proxy.port)", 1)
        defer { unsafe unsetenv("http_proxy") }
        let request = HTTPClientRequest("http://127.0.0.1:\(server.port)/", body: [1])
        _ = try await HTTPClient(threadName: "test").send(request)
        #expect(proxy.requests.isEmpty)
        #expect(server.requests.count == 1)
    }

    @Test func `an answer that ends early is an error`() async throws {
        for text in [
            "", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        ] {
            let kind = try await kind(of: [.send(text), .close])
            #expect(kind == .interrupted || kind == .notHTTP, "\(text)")
        }
        #expect(try await kind(of: [.reset]) == .interrupted)
    }

    @Test func `a server of another protocol is recognised`() async throws {
        #expect(try await kind(of: [.send("SSH-2.0-OpenSSH_9.2\r\n"), .close]) == .notHTTP)
        #expect(try await kind(of: [.send("\u{15}\u{3}\u{1}\0\u{2}\u{2}F"), .close]) == .notHTTP)
    }

    @Test func `a server that does not answer fails the request at the time limit`() async throws {
        #expect(try await kind(of: [.hang]) { $0.timeout = .milliseconds(50) } == .timeout)
        let drip = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
        #expect(try await kind(of: [.send(drip), .hang]) { $0.timeout = .milliseconds(50) } == .timeout)
        #expect(
            try await kind(of: [.send("HTTP/1.1 200 OK\r\n"), .sendForever("X-Filler: x\r\n")]) {
                $0.timeout = .milliseconds(200)
            } != nil
        )
    }

    @Test func `a cancelled request returns and closes its connection`() async throws {
        let (reached, reach) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { _ in
            reach.yield()
            return [.hang]
        }
        let client = HTTPClient(threadName: "test")
        let task = Task {
            try await client.send(HTTPClientRequest("http://127.0.0.1:\(server.port)/", body: [1]))
        }
        for await _ in reached { break }
        task.cancel()
        await #expect(throws: HTTPClientError(.cancelled, "the request was cancelled")) { try await task.value }
        await server.waitForEnd(ofConnections: 1)
    }

    @Test func `a port without a listener is reported with its reason`() async throws {
        let port = try Broker.freePort()
        let request = HTTPClientRequest("http://127.0.0.1:\(port)/", body: [1])
        let error = await #expect(throws: HTTPClientError.self) {
            try await HTTPClient(threadName: "test").send(request)
        }
        #expect(error?.kind == .unreachable)
        #expect(error?.detail.contains("Connection refused") == true)
    }

    @Test func `a name without an address is reported`() async throws {
        let request = HTTPClientRequest("http://no-such-host.invalid/", body: [1])
        let error = await #expect(throws: HTTPClientError.self) {
            try await HTTPClient(threadName: "test").send(request)
        }
        #expect(error?.kind == .unresolved)
    }

    @Test func `URLs of protocols other than HTTP, and line breaks in headers, are refused`() async throws {
        for url in ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "not a url"] {
            let client = HTTPClient(threadName: "test")
            await #expect(throws: HTTPClientError.self) { try await client.send(HTTPClientRequest(url, body: [])) }
        }
        let kind = try await kind(of: [.send(Self.accepted)]) { $0.headers = ["Authorization": "a\r\nX-Other: b"] }
        #expect(kind == .local)
    }
}
