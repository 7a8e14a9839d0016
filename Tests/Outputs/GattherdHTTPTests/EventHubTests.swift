import GattherdLog
import GattherdModel
import GattherdSync
import Glibc
import TestKit
import Testing

@testable import GattherdHTTP

/// The event stream as a client reads it.
@Suite(.timeLimit(.minutes(1))) struct EventHubTests {
    private let backend = FakeBackend()
    private let live = LiveStatus()

    /// Runs `body`, which may block, while the service runs.
    private func serve(
        _ limits: HTTPLimits = HTTPLimits(),
        while body: @escaping @Sendable (HTTPServer, UInt16) throws -> Void
    ) async throws {
        var limits = limits
        limits.eventPeriod = .milliseconds(20)
        let server = HTTPServer(host: "127.0.0.1", port: 0, limits: limits, log: .silent)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await HTTPService(backend, live, server: server).run() }
            defer { group.cancelAll() }
            for await case let port? in server.port.watch() {
                return try await onThread { try body(server, port) }
            }
        }
    }

    @Test func `a HEAD request for the event stream has no body`() async throws {
        try await serve { _, port in
            let client = try RawClient(port)
            client.send("HEAD /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            #expect(client.read(through: "\r\n\r\n").contains("Content-Type: text/event-stream\r\n"))
            #expect(client.get("/healthz").head.hasPrefix("HTTP/1.1 200 "))
        }
    }

    private static func listen(_ port: UInt16, buffer: Int32? = nil) throws -> RawClient {
        let client = try RawClient(port, receiveBuffer: buffer)
        client.send("GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        #expect(client.read(through: "\r\n\r\n").contains("Content-Type: text/event-stream\r\n"))
        return client
    }

    /// The JSON of the next message of this name.
    private static func next(_ name: String, _ client: RawClient) -> String {
        _ = client.read(through: "event: \(name)\ndata: ")
        return String(client.read(through: "\n\n").dropLast(2))
    }

    @Test func `a reader receives a snapshot, then changes`() async throws {
        live.update(LiveFixtures.link("strap", .ready))
        live.describe(LiveFixtures.description)
        live.announce(LifecycleEvent(time: LiveFixtures.time, device: "strap", kind: "bond", [:]))
        try await serve { [live] _, port in
            let client = try Self.listen(port)
            let snapshot = Self.next("snapshot", client)
            #expect(snapshot.hasPrefix(#"{"now":"2026-11-21T03:01:00.000000Z","status":{"adapters":[{"address":"#))
            #expect(snapshot.contains(#""devices":[{"address":"C0:FF:EE:00:00:02","attempt":0,"device":"dial","#))
            #expect(snapshot.contains(#""device":"strap","kind":"bond","detail":{}}]}"#))

            live.update(LiveFixtures.link("strap", .backingOff, .remote))
            #expect(Self.next("link", client).hasPrefix(#"{"device":"strap","state":"backingOff","since":"2026-"#))
            let samples = [Sample(metric: 0, value: .integer(72))]
            live.observe(LiveFixtures.batch(LiveFixtures.stream(), samples))
            #expect(Self.next("values", client) == #"{"strap":{"heart_rate":72}}"#)
            var description = LiveFixtures.description
            description.controls = []
            live.describe(description)
            #expect(Self.next("device", client).contains(#""controls":[],"values":{"heart_rate":72}}"#))
            live.announce(LifecycleEvent(time: LiveFixtures.time, kind: "broker", ["state": .text("lost")]))
            #expect(Self.next("event", client).hasSuffix(#""device":null,"kind":"broker","detail":{"state":"lost"}}"#))
            #expect(Self.next("gateway", client).contains(#""counts":{"dial":[0,0],"strap":[0,0,-58]},"records":{}}"#))
        }
    }

    @Test func `the stream that has a metric second never changes its plain name`() async throws {
        live.update(LiveFixtures.link("strap", .ready))
        live.describe(LiveFixtures.description(batteries: ["battery", "vendor"]))
        try await serve { [live] _, port in
            let client = try Self.listen(port)
            _ = Self.next("snapshot", client)
            let level = { (number: Int64) in [Sample(metric: 0, value: .integer(number))] }
            live.observe(LiveFixtures.batch(LiveFixtures.battery("vendor"), level(40)))
            #expect(Self.next("values", client) == #"{"strap":{"vendor/battery_level":40}}"#)
            live.observe(LiveFixtures.batch(LiveFixtures.battery("battery"), level(98)))
            #expect(Self.next("values", client) == #"{"strap":{"battery/battery_level":98,"battery_level":98}}"#)
        }
    }

    @Test func `a reader follows downloads of stored records`() async throws {
        live.update(LiveFixtures.link("strap", .ready))
        try await serve { [live, backend] _, port in
            let client = try Self.listen(port)
            _ = Self.next("snapshot", client)
            var download = DaemonStatus.Download(
                stream: "log",
                state: "downloading",
                since: LiveFixtures.time,
                done: 812,
                new: 0
            )
            download.total = 1000
            backend.update { [download] status in status.devices[1].records = [download] }
            var message = ""
            repeat { message = Self.next("gateway", client) } while message.hasSuffix(#""records":{}}"#)
            #expect(message.contains(#""records":{"strap":[{"done":812,"new":0,"since":"#))
            #expect(message.contains(#""state":"downloading","stream":"log","total":1000}]}}"#))
            live.renew()
            #expect(Self.next("snapshot", client).contains(#""records":[{"done":812"#))
        }
    }

    @Test func `a reader follows the last advertisements of devices without readings`() async throws {
        backend.update { status in
            for index in status.devices.indices { status.devices[index].lastHeard = "2026-11-21T03:00:59.500000Z" }
        }
        try await serve { _, port in
            let client = try Self.listen(port)
            _ = Self.next("snapshot", client)
            let counts = #""counts":{"dial":[0,0,null,1795230059],"strap":[0,0,-58,1795230059]}"#
            #expect(Self.next("gateway", client).contains(counts))
        }
    }

    @Test func `each of several readers receives all changes`() async throws {
        try await serve { [live] _, port in
            live.update(LiveFixtures.link("strap", .waiting))
            let clients = try (0..<3).map { _ in try Self.listen(port) }
            for client in clients { _ = Self.next("snapshot", client) }
            live.update(LiveFixtures.link("strap", .ready))
            for client in clients { #expect(Self.next("link", client).contains(#""state":"ready""#)) }
        }
    }

    @Test func `an added or removed device causes a new snapshot for all readers`() async throws {
        try await serve { [live] _, port in
            let clients = try (0..<2).map { _ in try Self.listen(port) }
            for client in clients { _ = Self.next("snapshot", client) }
            live.update(LiveFixtures.link("new", .waiting))
            for client in clients { #expect(Self.next("snapshot", client).contains(#""devices":["#)) }
            live.remove(device: "new")
            for client in clients { #expect(Self.next("snapshot", client).contains(#""devices":["#)) }
        }
    }

    @Test func `a step of the wall clock causes a new snapshot`() async throws {
        live.update(LiveFixtures.link("strap", .ready))
        try await serve { [backend] _, port in
            let client = try Self.listen(port)
            _ = Self.next("snapshot", client)
            let started = "2026-11-28T03:00:00.000000Z"
            backend.update { $0.started = started }
            #expect(Self.next("snapshot", client).contains(#""started":"\#(started)""#))
        }
    }

    @Test func `the number of readers is limited`() async throws {
        var limits = HTTPLimits()
        limits.eventStreams = 1
        try await serve(limits) { _, port in
            let first = try Self.listen(port)
            _ = Self.next("snapshot", first)
            let second = try RawClient(port)
            #expect(second.get("/api/v1/events").status == 503)
            first.end()
            while second.get("/api/v1/events").status == 503 { sched_yield() }
        }
    }

    /// Opens an event stream as a client of a proxy, or on this host.
    private static func open(_ service: HTTPService, with token: String?) async throws -> EventChannel {
        var headers = ["host": "localhost"]
        if let token { headers.merge(["x-forwarded-for": "192.0.2.1", "authorization": "Bearer " + token]) { $1 } }
        let response = await service.answer(HTTPRequest(.get, "/api/v1/events", headers: headers))
        guard case .events(let channel) = response.content else { throw CancellationError() }
        return channel
    }

    @Test func `a replaced token ends the event streams that were opened with it`() async throws {
        let (old, new) = ("0123456789abcdef", "fedcba9876543210")
        let token = Locked(AccessToken(old))
        let access = AccessRules(isLoopback: true, names: [], token: token.withLock { $0 })
        var limits = HTTPLimits()
        limits.eventPeriod = .milliseconds(5)
        let server = HTTPServer(host: "127.0.0.1", port: 0, limits: limits, log: .silent)
        let service = HTTPService(backend, live: live, access: access, server: server, log: .silent)
        let (remote, local) = (try await Self.open(service, with: old), try await Self.open(service, with: nil))
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        remote.onArrival { arrived.yield() }
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { await service.hub.run() }
            for await _ in arrivals { break }
            #expect(!remote.isClosed)
            token.withLock { $0 = AccessToken(new) }
            for await _ in arrivals where remote.isClosed { break }
            #expect(remote.dequeue(.max) == .end)
            #expect(!local.isClosed)
            let again = try await Self.open(service, with: new)
            #expect(!again.isClosed)
            group.cancelAll()
        }
    }

    @Test func `a slow reader skips messages and then receives a new snapshot`() async throws {
        var limits = HTTPLimits()
        limits.eventQueue = 100
        limits.eventPeriod = .milliseconds(5)
        let dropped = Counter("dropped", "")
        let hub = EventHub(live, backend, limits: limits, dropped: dropped)
        let channel = try #require(hub.subscribe())
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        channel.onArrival { arrived.yield() }
        await withDiscardingTaskGroup { group in
            group.addTask { await hub.run() }
            // The first snapshot stays in the queue; the next message does not fit behind it.
            for await _ in arrivals { break }
            live.announce(LifecycleEvent(time: LiveFixtures.time, kind: "missed", [:]))
            for await _ in arrivals { break }
            group.cancelAll()
        }
        #expect(dropped.value > 0)
        guard case .bytes(let bytes) = channel.dequeue(.max) else { throw CancellationError() }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.hasPrefix("event: snapshot\n"))
        #expect(text.contains(#""kind":"missed""#))
    }
}
