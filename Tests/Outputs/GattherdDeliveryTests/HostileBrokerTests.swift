import GattherdDelivery
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync
import Glibc
import TestKit
import Testing

/// Malicious brokers, with and without TLS.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct HostileBrokerTests {
    enum Wire: CaseIterable, Sendable {
        case plain
        case tls
    }

    private struct Book: Sendable {
        var sessions = 0
        var packets: [FakeBroker.Packet] = []
    }

    private let authority: Authority
    private let identity: Authority.Identity

    init() async throws {
        authority = try await Authority()
        identity = try await authority.identity(for: "DNS:localhost", "IP:127.0.0.1")
    }

    private func broker(
        _ wire: Wire,
        _ script: @escaping @Sendable (_ client: FakeBroker.Client, _ number: Int) -> Void
    ) throws -> FakeBroker {
        try FakeBroker(identity: wire == .tls ? identity : nil, script)
    }

    private func delivery(
        _ broker: FakeBroker,
        _ wire: Wire,
        _ fixture: DeliveryFixture,
        _ version: DeliverySettings.Version = .v5
    ) -> MQTTDelivery {
        broker.delivery(fixture, version) {
            if wire == .tls { $0.tls = settings }
            $0.options.answerTimeout = .seconds(1)
        }
    }

    private var settings: TLSSettings {
        var settings = TLSSettings()
        settings.ca = authority.certificate
        return settings
    }

    /// An unknown property in each kind of packet from a broker; these abort libmosquitto 2.0.11.
    static let assassins: [[UInt8]] = [
        [0x20, 5, 0, 0, 2, 0x7F, 0], [0x90, 6, 0, 1, 2, 0x7F, 0, 0], [0x30, 6, 0, 1, 0x61, 2, 0x7F, 0],
        [0xE0, 4, 0, 2, 0x7F, 0], [0xF0, 4, 0x18, 2, 0x7F, 0], [0x40, 6, 0, 1, 0, 2, 0x7F, 0],
        [0xB0, 6, 0, 1, 2, 0x7F, 0, 0], [0x20, 8, 0, 0, 5, 0x27, 0, 0, 0, 0],
    ]

    @Test(arguments: assassins.indices, Wire.allCases)
    func `no packet of a broker ends the process, and a better broker receives everything`(
        index: Int,
        wire: Wire
    ) async throws {
        let book = Locked(Book())
        let broker = try broker(wire) { client, number in
            book.withLock { $0.sessions += 1 }
            guard number > 0 else {
                _ = client.next()
                return client.send(Self.assassins[index])
            }
            client.accept()
            if number == 1 { client.send(Self.assassins[index]) }
            client.serve()
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(20)
        await delivery(broker, wire, fixture).running { await fixture.log.waitForCursor(20) }
        #expect(book.withLock { $0.sessions } == 3)
    }

    @Test(arguments: assassins.indices, Wire.allCases)
    func `a probe survives malicious packets and reports them`(index: Int, wire: Wire) async throws {
        let broker = try broker(wire) { client, _ in
            _ = client.next()
            client.send(Self.assassins[index])
        }
        var settings = DeliverySettings(gateway: "lab", host: "localhost", port: UInt16(broker.port))
        if wire == .tls { settings.tls = self.settings }
        let fault = await #expect(throws: BrokerFault.self) {
            try await BrokerProbe.connect(with: settings, within: .seconds(20))
        }
        #expect(fault?.kind == .unreachable)
        #expect(fault?.detail.contains("does not speak MQTT") == true, "\(fault?.detail ?? "")")
    }

    @Test(arguments: Wire.allCases)
    func `a malformed packet is answered with a DISCONNECT that says so`(wire: Wire) async throws {
        let book = Locked(Book())
        let hasEnded = LatestValue(false)
        let broker = try broker(wire) { client, number in
            client.accept()
            if number == 0 { client.send([0x40, 1, 0]) }
            client.serve { packet in if number == 0 { book.withLock { $0.packets.append(packet) } } }
            if number == 0 { hasEnded.set(true) }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(1)
        await delivery(broker, wire, fixture).running { await fixture.log.waitForCursor(1) }
        for await isEnd in hasEnded.watch() where isEnd { break }
        let last = book.withLock { $0.packets.last }
        #expect(last?.kind == .disconnect)
        #expect(last?.body == [0x81])
    }

    @Test(arguments: Wire.allCases, [DeliverySettings.Version.v5, .v311])
    func `a huge message is refused, and the session continues`(
        wire: Wire,
        version: DeliverySettings.Version
    ) async throws {
        let book = Locked(Book())
        let size = 20_000_000
        let broker = try broker(wire) { client, _ in
            var client = client
            client.version = version
            book.withLock { $0.sessions += 1 }
            client.accept()
            client.readings(1).forEach { client.answer($0) }
            let payload = [UInt8](repeating: 0x37, count: size)
            client.send(client.message("gattherd/lab/lamp/number/set", payload, identifier: 9))
            client.serve { packet in book.withLock { $0.packets.append(packet) } }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(1)
        try await delivery(broker, wire, fixture, version).running {
            try await eventually {
                book.withLock { $0.packets.contains { $0.kind == .publish && $0.topic.hasSuffix("/result") } }
            }
        }
        let seen = book.withLock { $0 }
        #expect(seen.sessions == 1)
        #expect(seen.packets.contains { $0.kind == .acknowledgement && $0.body == [0, 9] })
        #expect(seen.packets.contains { $0.kind == .publish && $0.payload.contains("a payload of \(size) bytes") })
        #expect(fixture.requests.withLock { $0.isEmpty })
    }

    /// mosquitto 2.0.11 forwards such topics, and a retained request would arrive in each session.
    @Test(arguments: ["", "a/#"])
    func `a response topic that no response can have does not end the session`(responseTopic: String) async throws {
        let book = Locked(Book())
        let broker = try broker(.plain) { client, _ in
            book.withLock { $0.sessions += 1 }
            client.accept()
            client.readings(1).forEach { client.answer($0) }
            client.send(client.message("gattherd/lab/lamp/number/set", [0x37], responseTopic: responseTopic))
            client.serve { packet in book.withLock { $0.packets.append(packet) } }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(1)
        try await delivery(broker, .plain, fixture).running {
            try await eventually {
                book.withLock { book in
                    book.sessions > 1 || book.packets.contains { $0.kind == .publish && $0.topic.hasSuffix("/result") }
                }
            }
        }
        #expect(book.withLock { $0.sessions } == 1)
        #expect(fixture.requests.withLock { $0.count } == 1)
    }

    /// A full receive window without a reader would block both sides forever.
    @Test(arguments: Wire.allCases)
    func `tens of thousands of retained messages do not block a start`(wire: Wire) async throws {
        let book = Locked(Book())
        let broker = try broker(wire) { client, _ in
            book.withLock { $0.sessions += 1 }
            client.accept()
            client.serve { packet in
                guard packet.kind == .subscribe, packet.body.contains("availability".utf8) else { return }
                for thousand in 0..<30 {
                    let messages = (0..<1000).flatMap { number in
                        client.retained("gattherd/lab/d\(1000 * thousand + number)/availability", Array("online".utf8))
                    }
                    client.send(messages)
                }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(50)
        let delivery = delivery(broker, wire, fixture)
        delivery.enrol(["strap": "C0:FF:EE:00:00:01"])
        await delivery.running { await fixture.log.waitForCursor(50) }
        #expect(book.withLock { $0.sessions } == 1)
        #expect(fixture.losses.isEmpty)
    }

    @Test(arguments: Wire.allCases)
    func `a broker that answers no ping is disconnected`(wire: Wire) async throws {
        let broker = try broker(wire) { client, _ in
            // A keepalive of one second.
            client.accept(properties: [0x13, 0, 1])
            while let packet = client.next() { if packet.kind != .ping { client.answer(packet) } }
        }
        let fixture = DeliveryFixture(try Broker())
        let delivery = delivery(broker, wire, fixture)
        await delivery.running {
            #expect(await delivery.waitForFault()?.detail.contains("a ping was not answered in time") == true)
        }
    }

    @Test func `a broker that demands answers of TLS and reads none is not read any more`() throws {
        let broker = try FakeBroker(isNarrow: true, identity: identity) { client, _ in
            for _ in 0..<1_000_000 where !client.renewKeys() { return }
        }
        let port = UInt16(broker.port)
        let endpoint = BrokerEndpoint(host: "localhost", port: port, tls: settings, connectTimeout: .seconds(5))
        let dialled = try endpoint.dial(first: 0)
        let options = MQTTOptions(.v5, clientID: "gattherd")
        let connection = try MQTTConnection(dialled.socket, dialled.tls, options, at: .zero)
        while connection.interest.contains(.readable) {
            var state = pollfd(fd: connection.descriptor, events: Int16(POLLIN | POLLOUT), revents: 0)
            #expect(unsafe poll(&state, 1, -1) > 0)
            try connection.receive(at: .zero)
            try connection.flush(at: .zero)
        }
        #expect(!connection.isClear)
    }

    @Test func `of very many small messages a bounded number is read at a time, and all in the end`() throws {
        let count = 200_000
        let broker = try FakeBroker { client, _ in
            client.accept()
            client.send(Array(repeatElement([0x30, 4, 0, 1, 0x61, 0], count: count).joined()))
            client.serve()
        }
        let endpoint = BrokerEndpoint(
            host: "127.0.0.1",
            port: UInt16(broker.port),
            tls: nil,
            connectTimeout: .seconds(5)
        )
        let dialled = try endpoint.dial(first: 0)
        let connection = try MQTTConnection(dialled.socket, nil, MQTTOptions(.v5, clientID: "gattherd"), at: .zero)
        try connection.flush(at: .zero)
        var events: [Int] = []
        // CONNACK is an event as well.
        while events.reduce(0, +) < count + 1 {
            var state = pollfd(fd: connection.descriptor, events: Int16(POLLIN), revents: 0)
            #expect(unsafe poll(&state, 1, -1) > 0)
            try connection.receive(at: .zero)
            events.append(connection.drainEvents().count)
        }
        #expect(events.reduce(0, +) == count + 1)
        #expect(events.allSatisfy { $0 < 8192 })
    }

    @Test func `a broker that sends but reads nothing is disconnected`() async throws {
        let broker = try FakeBroker(isNarrow: true) { client, _ in
            // A keepalive of one second.
            client.accept(properties: [0x13, 0, 1])
            for _ in 0..<200 {
                client.send([0xD0, 0])
                usleep(50_000)
            }
        }
        let fixture = DeliveryFixture(try Broker())
        let text = String(repeating: "x", count: 200_000)
        for _ in 0..<40 { fixture.log.commit(payload: "\"text\":\"\(text)\"", device: "strap", stream: "text") }
        let delivery = broker.delivery(fixture) {
            $0.options.answerTimeout = .seconds(1)
            $0.options.acknowledgement = .seconds(2)
        }
        // If the kernel buffers the whole reading, only the missing acknowledgement shows that nothing is read.
        let reasons = ["has read nothing", "has not acknowledged", "has not answered"]
        try await delivery.running {
            try await eventually { fixture.losses.contains { loss in reasons.contains { loss.contains($0) } } }
        }
    }
}
