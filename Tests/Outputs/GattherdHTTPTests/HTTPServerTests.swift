import GattherdHTTP
import GattherdLog
import GattherdMachines
import GattherdSync
import Glibc
import TestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct HTTPServerTests {
    private static let get = "GET /a%20b?x=1&y=%C3%A4&x=2 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\n\r\n"

    @Test func `two requests on one connection are answered`() async throws {
        try await serve { _, port in
            let client = try RawClient(port)
            for _ in 1...3 {
                client.send(Self.get)
                let answer = client.readAnswer()
                #expect(answer.status == 200)
                #expect(answer.body == "/a b\n")
                #expect(answer.header("Content-Type") == "text/plain")
            }
        }
    }

    @Test func `path, arguments, headers and body are decoded`() async throws {
        let seen = Locked<[HTTPRequest]>([])
        let answer: Handler = { request in
            seen.withLock { $0.append(request) }
            return HTTPResponse(200, type: "text/plain", [])
        }
        try await serve(HTTPLimits(), answer) { _, port in
            let client = try RawClient(port)
            client.send(Self.get)
            #expect(client.readAnswer().status == 200)
            client.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12")
            client.send("345")
            #expect(client.readAnswer().status == 200)
        }
        let requests = seen.withLock { $0 }
        var first = HTTPRequest(.get, "/a b", query: ["x": "1", "y": "ä"], headers: ["host": "h", "x-a": "1, 2"])
        first.repeated = ["x"]
        #expect(requests.first == first)
        #expect(requests.last?.method == .post)
        #expect(requests.last?.body == Array("12345".utf8))
    }

    @Test func `pipelined requests are answered in order`() async throws {
        try await serve { _, port in
            let client = try RawClient(port)
            client.send((1...5).map { "GET /\($0) HTTP/1.1\r\nHost: h\r\n\r\n" }.joined())
            for number in 1...5 { #expect(client.readAnswer().body == "/\(number)\n") }
        }
    }

    @Test func `malformed requests do not affect the next client`() async throws {
        try await serve { _, port in
            var random = SplitMix64(seed: 1)
            let words = [
                "GET ", "POST ", "/", "%", "%00", " HTTP/1.1", "\r\n", "Host: h", ":", "Content-Length: ", "9", "\0",
                "ä",
            ]
            for _ in 0..<200 {
                let client = try RawClient(port)
                client.send((0..<30).map { _ in words.randomElement(using: &random) ?? "" }.joined())
                client.end()
            }
            let client = try RawClient(port)
            client.send(Self.get)
            #expect(client.readAnswer().status == 200)
        }
    }

    @Test func `a HEAD request gets only the head`() async throws {
        try await serve { _, port in
            let client = try RawClient(port)
            client.send("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let text = client.readToEnd()
            #expect(text.contains("Content-Length: 3\r\n"))
            #expect(text.hasSuffix("\r\n\r\n"))
        }
    }

    private struct Refusal: CustomTestStringConvertible {
        let testDescription: String
        let status: Int
        let text: String

        init(_ name: String, _ status: Int, _ line: String = "POST / HTTP/1.1", _ headers: String...) {
            testDescription = name
            self.status = status
            text = ([line] + headers).map { $0 + "\r\n" }.joined() + "\r\n"
        }
    }

    private static let long = String(repeating: "x", count: 20_000)
    private static let refusals = [
        Refusal("another method", 405, "DELETE / HTTP/1.1", "Host: h"),
        Refusal("an unknown method", 405, "BREW / HTTP/1.1", "Host: h"),
        Refusal("a large body", 413, "POST / HTTP/1.1", "Host: h", "Content-Length: 5000"),
        Refusal(
            "a length that is no number",
            413,
            "POST / HTTP/1.1",
            "Host: h",
            "Content-Length: 99999999999999999999"
        ),
        Refusal("a body of unknown length", 411, "POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"),
        Refusal("no host", 400, "GET / HTTP/1.1"),
        Refusal("large headers", 431, "GET / HTTP/1.1", "Host: h", "X: " + long),
        Refusal("a long path", 414, "GET /\(long) HTTP/1.1", "Host: h"),
    ]

    @Test(arguments: refusals)
    private func `too large and malformed requests are refused without calling the handler`(
        refusal: Refusal
    ) async throws {
        try await serve(HTTPLimits(), { _ in HTTPResponse(200, type: "text/plain", []) }) { _, port in
            let client = try RawClient(port)
            client.send(refusal.text)
            #expect(client.readAnswer().status == refusal.status)
        }
    }

    private enum Slowness: String, CaseIterable {
        case head = "GET / HTTP/1.1\r\nHost: h\r\nX: "
        case body = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000\r\n\r\n"
    }

    @Test(arguments: Slowness.allCases)
    private func `a client that sends single bytes slowly is disconnected while others are served`(
        slowness: Slowness
    ) async throws {
        var limits = HTTPLimits()
        limits.requestTime = .milliseconds(300)
        try await serve(limits) { server, port in
            // Between requests, the limit of idle connections applies, so a busy machine does not end this one.
            let other = try RawClient(port)
            other.send(Self.get)
            #expect(other.readAnswer().status == 200)
            let slow = try RawClient(port)
            slow.send(slowness.rawValue)
            while slow.send("x") {
                for _ in 0..<10 {
                    other.send(Self.get)
                    #expect(other.readAnswer().status == 200)
                }
            }
            #expect(server.counters.slowClients.value == 1)
        }
    }

    @Test func `a client that does not read the response is disconnected`() async throws {
        var limits = HTTPLimits()
        limits.responseTime = .milliseconds(200)
        let size = 20_000_000
        let answer: Handler = { _ in HTTPResponse(200, type: "x/y", [UInt8](repeating: 65, count: size)) }
        try await serve(limits, answer) { server, port in
            let client = try RawClient(port, receiveBuffer: 4096)
            client.send(Self.get)
            while server.counters.slowClients.value == 0 { sched_yield() }
            #expect(client.readToEnd().utf8.count < size)
        }
    }

    @Test func `an idle connection is closed`() async throws {
        var limits = HTTPLimits()
        limits.idleTime = .milliseconds(50)
        limits.requestTime = .seconds(2)
        try await serve(limits) { _, port in
            let client = try RawClient(port)
            client.send(Self.get)
            #expect(client.readToEnd().hasPrefix("HTTP/1.1 200"))
            #expect(try RawClient(port).readToEnd().isEmpty)
        }
    }

    @Test func `a connection above the limit waits until another one ends`() async throws {
        var limits = HTTPLimits()
        limits.connections = 2
        try await serve(limits) { _, port in
            let (first, second) = (try RawClient(port), try RawClient(port))
            for client in [first, second] {
                client.send(Self.get)
                #expect(client.readAnswer().status == 200)
            }
            let third = try RawClient(port)
            third.send(Self.get)
            first.end()
            #expect(third.readAnswer().status == 200)
        }
    }

    @Test func `a slow response does not delay others`() async throws {
        let gate = LatestValue(false)
        let answer: Handler = { request in
            if request.path == "/slow" { for await isOpen in gate.watch() where isOpen { break } }
            return HTTPResponse(200, type: "text/plain", [])
        }
        try await serve(HTTPLimits(), answer) { _, port in
            let (slow, quick) = (try RawClient(port), try RawClient(port))
            slow.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
            quick.send(Self.get)
            #expect(quick.readAnswer().status == 200)
            gate.set(true)
            #expect(slow.readAnswer().status == 200)
        }
    }

    @Test func `a client that leaves cancels what it reads, and not what it changes`() async throws {
        let asked = Counter("asked", "")
        let gate = LatestValue(false)
        let ended = Locked<[String]>([])
        let answer: Handler = { request in
            asked.add()
            for await isOpen in gate.watch() where isOpen { break }
            ended.withLock { $0.append("\(request.path) \(Task.isCancelled)") }
            return HTTPResponse(200, type: "text/plain", [])
        }
        try await serve(HTTPLimits(), answer) { _, port in
            for (number, method) in ["POST /change", "GET /first", "GET /second"].enumerated() {
                let client = try RawClient(port)
                client.send("\(method) HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
                while asked.value == number { sched_yield() }
                client.end()
                while ended.withLock({ $0.count }) < number { sched_yield() }
            }
            #expect(ended.withLock { $0 } == ["/first true", "/second true"])
            gate.set(true)
            while ended.withLock({ $0.count }) < 3 { sched_yield() }
            #expect(ended.withLock { $0.last } == "/change false")
        }
    }

    @Test func `the server stops while requests are open`() async throws {
        let asked = Counter("asked", "")
        let answer: Handler = { _ in
            asked.add()
            try? await Task.sleep(for: .seconds(3600))
            return HTTPResponse(200, type: "text/plain", [])
        }
        try await serve(HTTPLimits(), answer) { _, port in
            let (first, second) = (try RawClient(port), try RawClient(port))
            first.send(Self.get)
            second.send("GET / HT")
            while asked.value == 0 { sched_yield() }
        }
    }

    @Test func `a port in use is logged and retried until the server stops`() async throws {
        let first = try ListeningPort()
        let (entries, said) = AsyncStream.makeStream(of: LogEntry.self)
        let log = Log(threshold: .error) { said.yield($0) }
        let server = HTTPServer(host: "127.0.0.1", port: first.port, log: log)
        let running = Task { await server.run { _ in HTTPResponse(200, type: "text/plain", []) } }
        for await entry in entries {
            let words = "cannot listen on 127.0.0.1, port \(first.port): Address already in use"
            #expect(entry.fields == [LogField("error", words)])
            break
        }
        #expect(server.port.state == nil)
        running.cancel()
        await running.value
    }
}
