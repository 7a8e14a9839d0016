import Foundation
import GattherdInflux
import GattherdModel
import GattherdOutputs
import GattherdSync
import TestKit
import Testing

/// The sink against a server that plays a script.
@Suite(.timeLimit(.minutes(1))) struct InfluxSinkTests {
    private static let accepted: [ScriptedServer.Step] = [.send("HTTP/1.1 204 No Content\r\n\r\n")]

    private func sink(
        _ server: ScriptedServer,
        _ change: (inout InfluxOptions) -> Void = { _ in }
    ) throws -> InfluxSink {
        var settings = try InfluxOptions("http://127.0.0.1:\(server.port)")
        settings.compresses = false
        change(&settings)
        return InfluxSink(settings)
    }

    private func values(_ requests: [ScriptedServer.Request]) throws -> [Int] {
        try requests.flatMap { try ParsedPoint.parse($0.body) }.map { point in
            guard case .float(let number) = point.fields["bpm"] else { return -1 }
            return Int(number)
        }
    }

    @Test func `a batch is one request with all readings`() async throws {
        let server = try ScriptedServer { _ in Self.accepted }
        let sink = try sink(server)
        try await sink.write(Readings.numbered(1...100))
        #expect(server.requests.count == 1)
        #expect(try values(server.requests) == Array(1...100))
        let head = try #require(server.requests.first).head
        #expect(head.hasPrefix("POST /write?db=home&precision=ns HTTP/1.1\r\n"))
        #expect(!head.contains("Authorization") && !head.contains("Content-Encoding"))
        await sink.close()
    }

    @Test func `entries that are not readings need no request`() async throws {
        let server = try ScriptedServer { _ in Self.accepted }
        let reject = Reject(time: Readings.time, device: "strap", characteristic: "2a37", payload: [1], reason: "short")
        let empty = JournalEntry.reading(Readings.reading((0, .null), seq: 3))
        try await sink(server).write([.reject(reject, seq: 1), empty])
        #expect(server.requests.isEmpty)
        try await sink(server).write([.reject(reject, seq: 1), empty] + Readings.numbered(4...5))
        #expect(try values(server.requests) == [4, 5])
    }

    @Test func `bodies are compressed`() async throws {
        let server = try ScriptedServer { _ in Self.accepted }
        try await sink(server) { $0.compresses = true }.write(Readings.numbered(1...1000))
        let request = try #require(server.requests.first)
        #expect(request.head.contains("\r\nContent-Encoding: gzip\r\n"))
        let file = try TemporaryFolder()
        try Data(request.body).write(to: URL(filePath: file.file("body.gz")))
        let (_, text) = try await Programs.run("gzip", ["-d", "-c", file.file("body.gz")])
        #expect(try ParsedPoint.parse(Array(text.utf8)).count == 1000)
    }

    private static let refused: [ScriptedServer.Step] = [
        .send("HTTP/1.1 400 Bad Request\r\nX-Influxdb-Version: 1.8\r\nContent-Length: 0\r\n\r\n")
    ]

    @Test func `a server that ignores the compression gets uncompressed bodies, and all readings once`() async throws {
        let server = try ScriptedServer { $0.head.contains("Content-Encoding: gzip") ? Self.refused : Self.accepted }
        let sink = try sink(server) { $0.compresses = true }
        try await sink.write(Readings.numbered(1...100))
        try await sink.write(Readings.numbered(101...200))
        #expect(server.requests.map { $0.head.contains("Content-Encoding: gzip") } == [true, false, false])
        #expect(try values(Array(server.requests.dropFirst())) == Array(1...200))
    }

    @Test func `a refused body is not sent again once the server has accepted a compressed one`() async throws {
        let count = Locked(0)
        let server = try ScriptedServer { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return number == 1 ? Self.accepted : Self.refused
        }
        let sink = try sink(server) { $0.compresses = true }
        try await sink.write(Readings.numbered(1...100))
        let error = await #expect(throws: OutputFault.self) { try await sink.write(Readings.numbered(101...200)) }
        #expect(error?.kind == .refused)
        #expect(server.requests.map { $0.head.contains("Content-Encoding: gzip") } == [true, true])
    }

    @Test func `a server that ignores the compression later gets one reading uncompressed, then all`() async throws {
        let isOld = Locked(false)
        let server = try ScriptedServer { request in
            request.head.contains("Content-Encoding: gzip") && isOld.withLock(\.self) ? Self.refused : Self.accepted
        }
        let sink = try sink(server) { $0.compresses = true }
        try await sink.write(Readings.numbered(1...100))
        isOld.withLock { $0 = true }
        let error = await #expect(throws: OutputFault.self) { try await sink.write(Readings.numbered(101...102)) }
        #expect(error?.kind == .refused)
        try await sink.write(Readings.numbered(101...101))
        try await sink.write(Readings.numbered(102...200))
        let requests = server.requests
        #expect(requests.map { $0.head.contains("Content-Encoding: gzip") } == [true, true, true, false, false])
        #expect(try values(Array(requests.dropFirst(3))) == Array(101...200))
    }

    @Test func `credentials are in a header, never in the URL`() async throws {
        let server = try ScriptedServer { _ in Self.accepted }
        try await sink(server) { $0.credentials = .token("s3cret") }.write(Readings.numbered(1...1))
        try await sink(server) { $0.credentials = .password(user: "me", "s3cret:ü") }.write(Readings.numbered(1...1))
        let heads = server.requests.map(\.head)
        #expect(heads[0].contains("\r\nAuthorization: Token s3cret\r\n"))
        let encoded = Data("me:s3cret:ü".utf8).base64EncodedString()
        #expect(heads[1].contains("\r\nAuthorization: Basic \(encoded)\r\n"))
        #expect(heads.allSatisfy { !$0.prefix { $0 != "\r\n" }.contains("s3cret") })
    }

    @Test func `renewed credentials are read after the server has refused the old ones`() async throws {
        let server = try ScriptedServer { request in
            request.head.contains("Token new\r\n")
                ? Self.accepted : [.send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")]
        }
        var settings = try InfluxOptions("http://127.0.0.1:\(server.port)")
        settings.credentials = .token("old")
        let file = Locked<InfluxCredentials?>(nil)
        let sink = InfluxSink(settings) { file.withLock(\.self) }
        for token in [nil, nil, "wrong"] as [String?] {
            file.withLock { $0 = token.map { .token($0) } }
            let error = await #expect(throws: OutputFault.self) { try await sink.write(Readings.numbered(1...1)) }
            #expect(error?.kind == .misconfigured)
        }
        file.withLock { $0 = .token("new") }
        try await sink.write(Readings.numbered(1...1))
        let tokens = server.requests.map { $0.head.split(separator: "\r\n").first { $0.hasPrefix("Auth") }?.suffix(5) }
        #expect(tokens == ["n old", "n old", "wrong", "n new"])
    }

    @Test func `a server with a small limit gets small bodies, and all readings once`() async throws {
        let server = try ScriptedServer { request in
            request.body.count > 1000
                ? [.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")] : Self.accepted
        }
        let sink = try sink(server)
        try await sink.write(Readings.numbered(1...300))
        #expect(try values(server.requests.filter { $0.body.count <= 1000 }) == Array(1...300))
        let count = server.requests.count
        try await sink.write(Readings.numbered(301...600))
        #expect(server.requests.dropFirst(count).allSatisfy { $0.body.count <= 1000 })
    }

    @Test func `bodies grow again after a server has got a larger limit`() async throws {
        let limit = Locked(1000)
        let server = try ScriptedServer { request in
            request.body.count > limit.withLock(\.self)
                ? [.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")] : Self.accepted
        }
        let sink = try sink(server)
        try await sink.write(Readings.numbered(1...300))
        let count = server.requests.count
        limit.withLock { $0 = .max }
        for start in stride(from: Int64(301), to: 6301, by: 300) {
            try await sink.write(Readings.numbered(start...(start + 299)))
        }
        let later = Array(server.requests.dropFirst(count))
        #expect(later.prefix(20).allSatisfy { $0.body.count <= 1000 }, "slowly")
        #expect(later.contains { $0.body.count > 2000 })
        #expect(try values(later) == Array(301...6300))
    }

    @Test func `a reading above the server's limit is refused alone`() async throws {
        let server = try ScriptedServer { request in
            request.body.count > 1000
                ? [.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")] : Self.accepted
        }
        let long = Readings.reading((3, .text(String(repeating: "x", count: 2000))), seq: 3)
        let sink = try sink(server)
        let error = await #expect(throws: OutputFault.self) {
            try await sink.write(Readings.numbered(1...2) + [.reading(long)] + Readings.numbered(4...4))
        }
        #expect(error?.kind == .refused)
        try await sink.write(Readings.numbered(4...4))
    }

    @Test func `a reading whose time InfluxDB cannot represent is refused without a request`() async throws {
        let server = try ScriptedServer { _ in Self.accepted }
        let reading = Readings.reading((0, .integer(1)), time: Timestamp(microseconds: .max))
        let error = await #expect(throws: OutputFault.self) { try await sink(server).write([.reading(reading)]) }
        #expect(error?.kind == .refused)
        #expect(server.requests.isEmpty)
    }

    @Test func `each answer of the server becomes its fault`() async throws {
        let head = "Content-Type: application/json\r\nX-Influxdb-Version: 1.8\r\n"
        for (answer, kind) in [
            ("400 Bad Request", OutputFault.Kind.refused), ("404 Not Found", .misconfigured),
            ("503 Busy\r\nRetry-After: 3", .unavailable), ("301 Moved\r\nLocation: http://x/", .misconfigured),
            ("200 OK", .misconfigured),
        ] {
            let server = try ScriptedServer { _ in [.send("HTTP/1.1 \(answer)\r\n\(head)Content-Length: 0\r\n\r\n")] }
            let error = await #expect(throws: OutputFault.self) {
                try await sink(server).write(Readings.numbered(1...1))
            }
            #expect(error?.kind == kind)
            #expect(error?.retryAfter == (answer.hasPrefix("503") ? .seconds(3) : nil))
        }
    }

    @Test func `a server that breaks off is unavailable, and the next write works`() async throws {
        let count = Locked(0)
        let server = try ScriptedServer { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            switch number {
            case 1: return [.reset]
            case 2: return [.send("HTTP/1.1 20"), .close]
            default: return Self.accepted
            }
        }
        let sink = try sink(server)
        for _ in 1...2 {
            let error = await #expect(throws: OutputFault.self) { try await sink.write(Readings.numbered(1...3)) }
            #expect(error?.kind == .unavailable)
        }
        try await sink.write(Readings.numbered(1...3))
        #expect(try values(server.requests) == [1, 2, 3, 1, 2, 3, 1, 2, 3])
    }

    @Test func `a cancelled write returns while the server hangs`() async throws {
        let (reached, reach) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { _ in
            reach.yield()
            return [.hang]
        }
        let sink = try sink(server)
        let task = Task { try await sink.write(Readings.numbered(1...1)) }
        for await _ in reached { break }
        task.cancel()
        await #expect(throws: OutputFault.self) { try await task.value }
        await server.waitForEnd(ofConnections: 1)
    }
}
