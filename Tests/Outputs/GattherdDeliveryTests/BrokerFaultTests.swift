import GattherdDelivery
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(3)))
struct BrokerFaultTests {
    /// The acknowledgements of a scripted broker, and the number of its sessions.
    private struct Book: Sendable {
        var seqs: [Int64] = []
        var sessions = 0
        var maximumInFlight = 0
        /// The topics as written, and the properties after them.
        var topics: [String] = []
        var aliases: [[UInt8]] = []
    }

    @Test(
        arguments: [0, 1]
    )
    func `a broker that closes at each publish receives every reading in order once it accepts some`(
        taken: Int
    ) async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, number in
            book.withLock { $0.sessions += 1 }
            client.accept()
            var left = number < 10 ? taken : .max
            while let packet = client.next() {
                guard let seq = packet.seq else { client.answer(packet); continue }
                guard left > 0 else { return }
                left -= 1
                book.withLock { $0.seqs.append(seq) }
                client.answer(packet)
            }
        }
        let log = TestLog()
        log.commit(40)
        try await broker.delivery(log).running {
            await log.waitForCursor(40)
        }
        let (seqs, sessions) = book.withLock { ($0.seqs, $0.sessions) }
        var seen: Set<Int64> = []
        #expect(seqs.filter { seen.insert($0).inserted } == Array(1...40))
        #expect(sessions == 11)
    }

    @Test func `the broker's receive maximum and topic alias maximum are kept`() async throws {
        let book = Locked(Book())
        // Receive maximum 3, topic alias maximum 1.
        let broker = try FakeBroker { client, _ in
            client.accept(properties: [0x21, 0, 3, 0x22, 0, 1])
            var waiting: [FakeBroker.Packet] = []
            while let packet = client.next() {
                guard packet.isReading else { client.answer(packet); continue }
                waiting.append(packet)
                book.withLock { book in
                    book.topics.append(packet.topic)
                    book.aliases.append(packet.properties.suffix(3))
                    book.maximumInFlight = max(book.maximumInFlight, waiting.count)
                }
                let isFirst = book.withLock { $0.topics.count } == 1
                if isFirst || waiting.count == 3 { waiting.forEach { client.answer($0) } }
                if isFirst || waiting.count == 3 { waiting = [] }
            }
        }
        let log = TestLog()
        for _ in 0..<5 {
            log.commit(1)
            log.commit(1, device: "lamp")
        }
        try await broker.delivery(log).running {
            await log.waitForCursor(10)
        }
        let seen = book.withLock { $0 }
        #expect(seen.maximumInFlight == 3)
        #expect(
            seen.topics.prefix(4) == [
                "gattherd/lab/strap/heart_rate", "gattherd/lab/lamp/heart_rate", "", "gattherd/lab/lamp/heart_rate",
            ]
        )
        #expect(seen.aliases.enumerated().allSatisfy { $0.offset % 2 == 1 || $0.element == [0x23, 0, 1] })
        #expect(seen.aliases[1] != [0x23, 0, 1])
    }

    @Test func `a topic is written in full until the broker has accepted a message with its alias`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            // Topic alias maximum 10.
            client.accept(properties: [0x22, 0, 10])
            while let packet = client.next() {
                guard packet.isReading else { client.answer(packet); continue }
                let isFirst = book.withLock { book in
                    book.topics.append(packet.topic)
                    return book.topics.count == 1
                }
                client.answer(packet, reason: isFirst ? 0x97 : 0)
            }
        }
        let log = TestLog()
        log.commit(3)
        try await broker.delivery(log).running { await log.waitForCursor(3) }
        let topic = "gattherd/lab/strap/heart_rate"
        #expect(book.withLock { $0.topics } == [topic, topic, "", ""])
    }

    @Test func `a broker that ends the session at an alias gets whole topics from then on`() async throws {
        let sessions = Locked(0)
        let broker = try FakeBroker { client, _ in
            sessions.withLock { $0 += 1 }
            // Topic alias maximum 10.
            client.accept(properties: [0x22, 0, 10])
            while let packet = client.next() {
                if packet.isReading, packet.topic.isEmpty {
                    // DISCONNECT with "topic alias invalid".
                    client.send([0xE0, 1, 0x94])
                    return client.end()
                }
                client.answer(packet)
            }
        }
        let log = TestLog()
        log.commit(5)
        try await broker.delivery(log).running { await log.waitForCursor(5) }
        #expect(sessions.withLock { $0 } == 2)
    }

    /// DISCONNECT would discard the will, and the retained state would stay `online`.
    @Test(arguments: [0, 0x97] as [UInt8])
    func `a refused final offline ends the session without DISCONNECT`(reason: UInt8) async throws {
        let kinds = Locked<[FakeBroker.Packet.Kind]>([])
        let hasEnded = Locked(false)
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                if let kind = packet.kind { kinds.withLock { $0.append(kind) } }
                let isState = packet.kind == .publish && packet.topic.hasSuffix("bridge/state")
                let isOffline = isState && packet.payload == "offline"
                client.answer(packet, reason: isOffline ? reason : 0)
            }
            hasEnded.withLock { $0 = true }
        }
        let log = TestLog()
        log.commit(1)
        try await broker.delivery(log) { $0.stopPatiently() }.running { await log.waitForCursor(1) }
        try await eventually { hasEnded.withLock { $0 } }
        #expect(kinds.withLock { $0.last == .disconnect } == (reason == 0))
    }

    /// Both packets often arrive in one segment.
    @Test func `a session that ends together with its CONNACK ends for the broker's reason, and loses no event`()
        async throws
    {
        let broker = try FakeBroker { client, _ in
            _ = client.next()
            // CONNACK, then DISCONNECT with "quota exceeded".
            client.send([0x20, 3, 0, 0, 0, 0xE0, 1, 0x97])
            client.end()
        }
        let delivery = try broker.delivery(TestLog())
        delivery.announce(LifecycleEvent(time: Timestamp(microseconds: 0), kind: "daemon", [:]))
        await delivery.running {
            #expect(await delivery.waitForFault()?.detail == "the broker ended the session (quota exceeded)")
        }
        #expect(delivery.counters.eventsDropped.value == 0)
    }

    static let refusals: [(UInt8, BrokerFault.Kind, String)] = [
        (0x86, .credentials, "bad user name or password"), (0x87, .credentials, "not authorized"),
        (0x84, .session, "version of MQTT"), (0x85, .session, "client id"), (0x88, .busy, "server unavailable"),
        (0x97, .busy, "quota exceeded"), (0x9F, .busy, "connection rate exceeded"),
    ]

    @Test(
        arguments: refusals
    )
    func `each refusal has its message, and configuration errors are retried more slowly`(
        reason: UInt8,
        kind: BrokerFault.Kind,
        words: String
    ) async throws {
        let broker = try FakeBroker { client, _ in
            client.accept(reason: reason)
            _ = client.next()
        }
        let delivery = try broker.delivery(TestLog())
        await delivery.running {
            let fault = await delivery.waitForFault()
            #expect(fault?.kind == kind)
            #expect(fault?.detail.contains(words) == true, "\(fault?.detail ?? "")")
        }
    }

    @Test func `a DISCONNECT with a reason is reported in words`() async throws {
        let broker = try FakeBroker { client, _ in
            client.accept()
            _ = client.next()
            client.send([0xE0, 2, 0x8B, 0])
        }
        let delivery = try broker.delivery(TestLog())
        await delivery.running {
            let fault = await delivery.waitForFault()
            #expect(fault?.kind == .lost)
            #expect(fault?.detail == "the broker ended the session (server shutting down)")
        }
    }

    @Test func `a DISCONNECT without a failure also ends the session`() async throws {
        let broker = try FakeBroker { client, number in
            client.accept()
            _ = client.next()
            // 4: a normal end, but with the will.
            if number == 0 { client.send([0xE0, 2, 0x04, 0]) }
            client.serve()
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(1)
        await broker.delivery(fixture).running { await fixture.log.waitForCursor(1) }
        #expect(fixture.losses.first?.contains("the connection was lost: the broker closed it") == true)
        #expect(fixture.losses.first?.contains("a gateway of the same name") == true)
    }

    @Test func `a message longer than the broker's maximum is counted as dropped`() async throws {
        let broker = try FakeBroker { client, _ in
            // Maximum packet size 100.
            client.accept(properties: [0x27, 0, 0, 0, 100])
            client.serve()
        }
        let fixture = DeliveryFixture(try Broker())
        let delivery = broker.delivery(fixture)
        let detail = SampleValue.text(String(repeating: "x", count: 200))
        delivery.announce(LifecycleEvent(time: Timestamp(microseconds: 0), kind: "test", ["detail": detail]))
        try await delivery.running {
            try await eventually { delivery.counters.eventsDropped.value == 1 }
        }
        #expect(fixture.losses.isEmpty)
    }

    @Test(
        arguments: [Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), [0x20, 0xFF, 0xFF, 0xFF, 0xFF], []]
    )
    func `an answer that is not MQTT starts no session`(answer: [UInt8]) async throws {
        let broker = try FakeBroker { client, _ in
            _ = client.next()
            client.send(answer)
        }
        let delivery = try broker.delivery(TestLog())
        await delivery.running {
            let fault = await delivery.waitForFault()
            #expect(fault?.kind == .unreachable)
        }
    }

    @Test func `all readings that the broker refuses are counted in events, the last ones at the end`() async throws {
        let broker = try FakeBroker { client, _ in
            client.accept()
            // PUBACK with "payload format invalid".
            while let packet = client.next() { client.answer(packet, reason: packet.isReading ? 0x99 : 0) }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(5)
        let delivery = broker.delivery(fixture)
        await delivery.running { await fixture.log.waitForCursor(5) }
        let start = #"{"state":"refused","count":"#
        let events = fixture.events.withLock { events in events.filter { $0.hasPrefix(start) } }
        let counts = events.compactMap { Int($0.dropFirst(start.count).prefix { $0.isNumber }) }
        #expect(counts.reduce(0, +) == 5)
        #expect(delivery.counters.refused.value == 5)
    }

    @Test func `a reading that exceeds the broker's quota is published again in its turn`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                guard let seq = packet.seq else { client.answer(packet); continue }
                let isRefused = book.withLock { book in
                    book.seqs.append(seq)
                    return seq == 2 && book.seqs.count { $0 == 2 } < 4
                }
                client.answer(packet, reason: isRefused ? 0x97 : 0)
            }
        }
        let log = TestLog()
        log.commit(5)
        let delivery = try broker.delivery(log)
        await delivery.running { await log.waitForCursor(5) }
        #expect(book.withLock { $0.seqs.count { $0 == 2 } } == 4)
        #expect(delivery.counters.refused.value == 0)
    }
}
