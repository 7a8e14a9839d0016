import GattherdHTTP
import GattherdSync
import Glibc
import TestKit
import Testing

/// Event streams from the channel to the client.
@Suite(.timeLimit(.minutes(1))) struct EventStreamTests {
    private static let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    /// Returns a handler that answers each request with a new channel and passes it to `begun`.
    private func handler(_ begun: @escaping @Sendable (EventChannel) -> Void, capacity: Int = 100_000) -> Handler {
        { _ in
            let channel = EventChannel(capacity: capacity)
            begun(channel)
            return HTTPResponse(events: channel)
        }
    }

    @Test func `messages from before and after the request arrive in order`() async throws {
        let latest = Locked<EventChannel?>(nil)
        let begun = handler { channel in
            #expect(channel.send(Array("one\n".utf8)))
            latest.withLock { $0 = channel }
        }
        try await serve(HTTPLimits(), begun) { _, port in
            let client = try RawClient(port)
            client.send(Self.request)
            #expect(client.read(through: "one\n").contains("Content-Type: text/event-stream\r\n"))
            let channel = try #require(latest.withLock { $0 })
            for word in ["two", "three"] {
                #expect(channel.send(Array("\(word)\n".utf8)))
                #expect(client.read(through: word + "\n").contains(word))
            }
            let long = String(repeating: "x", count: 60_000) + "!"
            #expect(channel.send(Array(long.utf8)))
            channel.close()
            #expect(client.read(through: "!").filter { $0 == "x" }.count == 60_000)
            #expect(client.read(through: "0\r\n\r\n").hasSuffix("0\r\n\r\n"))
            // The connection accepts another request.
            client.send(Self.request)
            #expect(client.read(through: "one\n").contains("200"))
        }
    }

    @Test func `sending to a client that is gone closes the channel`() async throws {
        let latest = Locked<EventChannel?>(nil)
        try await serve(HTTPLimits(), handler { channel in latest.withLock { $0 = channel } }) { _, port in
            let client = try RawClient(port)
            client.send(Self.request)
            #expect(client.read(through: "\r\n\r\n").contains("200"))
            client.end()
            let channel = try #require(latest.withLock { $0 })
            while !channel.isClosed {
                _ = channel.send([10])
                sched_yield()
            }
        }
    }

    @Test func `the queue of a client that does not read is bounded, and its connection is closed`() async throws {
        var limits = HTTPLimits()
        limits.stallTime = .seconds(1)
        let latest = Locked<EventChannel?>(nil)
        let begun = handler { channel in latest.withLock { $0 = channel } }
        try await serve(limits, begun) { _, port in
            let client = try RawClient(port, receiveBuffer: 4096)
            client.send(Self.request)
            #expect(client.read(through: "\r\n\r\n").contains("200"))
            let channel = try #require(latest.withLock { $0 })
            let message = [UInt8](repeating: 120, count: 50_000)
            var refusals = 0
            while !channel.isClosed {
                if !channel.send(message) { refusals += 1 }
                sched_yield()
            }
            #expect(refusals > 1)
        }
    }

    @Test func `the stream of a client that lost its network ends`() async throws {
        var limits = HTTPLimits()
        limits.silenceTime = .milliseconds(300)
        limits.stallTime = .seconds(3600)
        let latest = Locked<EventChannel?>(nil)
        try await serve(limits, handler { channel in latest.withLock { $0 = channel } }) { _, port in
            let client = try RawClient(port)
            client.send(Self.request)
            #expect(client.read(through: "\r\n\r\n").contains("200"))
            client.loseNetwork()
            let channel = try #require(latest.withLock { $0 })
            while !channel.isClosed {
                _ = channel.send([10])
                sched_yield()
            }
        }
    }

    @Test func `an idle stream stays open until the server stops`() async throws {
        var limits = HTTPLimits()
        limits.requestTime = .seconds(2)
        limits.responseTime = .milliseconds(50)
        limits.idleTime = .milliseconds(50)
        let latest = Locked<EventChannel?>(nil)
        try await serve(limits, handler { channel in latest.withLock { $0 = channel } }) { _, port in
            let client = try RawClient(port)
            client.send(Self.request)
            #expect(client.read(through: "\r\n\r\n").contains("200"))
            // Another connection's limit passes meanwhile.
            #expect(try RawClient(port).readToEnd().isEmpty)
            let channel = try #require(latest.withLock { $0 })
            #expect(channel.send([33]))
            #expect(client.read(through: "!").contains("!"))
        }
        #expect(latest.withLock { $0 }?.isClosed == true)
    }

    @Test func `queued messages can be dropped`() {
        let channel = EventChannel(capacity: 10)
        #expect(channel.send([1, 2, 3, 4, 5]))
        #expect(channel.send([6, 7, 8, 9, 10]))
        #expect(!channel.send([11]))
        channel.dropQueued()
        #expect(channel.send([11]))
        channel.close()
        #expect(!channel.send([12]))
    }
}
