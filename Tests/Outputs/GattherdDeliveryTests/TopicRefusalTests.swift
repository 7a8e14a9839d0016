import GattherdDelivery
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

/// Topics that a broker refuses.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct TopicRefusalTests {
    /// The ways in which brokers refuse a topic.
    enum Refusal: CaseIterable, Sendable {
        /// The connection is closed.
        case close
        case closeInMQTT311
        /// DISCONNECT with "not authorized".
        case disconnect
        /// PUBACK with "not authorized".
        case acknowledgement

        var version: DeliverySettings.Version { self == .closeInMQTT311 ? .v311 : .v5 }
    }

    private struct Book: Sendable {
        var topics: [String] = []
        var sessions = 0
    }

    /// A broker that refuses some topics and accepts all others.
    private func broker(
        _ refusal: Refusal,
        _ book: Locked<Book>,
        denying isDenied: @escaping @Sendable (String) -> Bool
    ) throws -> FakeBroker {
        try FakeBroker { client, _ in
            var client = client
            client.version = refusal.version
            book.withLock { $0.sessions += 1 }
            client.accept()
            while let packet = client.next() {
                let isRefused = packet.kind == .publish && isDenied(packet.topic)
                switch refusal {
                case .close where isRefused, .closeInMQTT311 where isRefused: return
                case .disconnect where isRefused: return client.send([0xE0, 1, 0x87])
                default: client.answer(packet, reason: isRefused ? 0x87 : 0)
                }
                if packet.kind == .publish, !isRefused { book.withLock { $0.topics.append(packet.topic) } }
            }
        }
    }

    private func delivery(_ broker: FakeBroker, _ fixture: DeliveryFixture, _ refusal: Refusal) -> MQTTDelivery {
        broker.delivery(fixture, refusal.version) { settings in
            settings.options.topics.delay = .zero
            settings.options.refusedBackoff = Backoff(minimum: .milliseconds(20), maximum: .seconds(1))
        }
    }

    @Test(arguments: Refusal.allCases)
    func `a denied topic is set aside, and the others continue`(refusal: Refusal) async throws {
        let book = Locked(Book())
        let broker = try broker(refusal, book) { $0 == "gattherd/lab/lamp/heart_rate" }
        let fixture = DeliveryFixture(try Broker())
        for _ in 0..<10 {
            for device in ["strap", "lamp", "dial"] { fixture.log.commit(1, device: device) }
        }
        let delivery = delivery(broker, fixture, refusal)
        await delivery.running {
            await fixture.log.waitForCursor(30)
            fixture.log.commit(5, device: "lamp")
            fixture.log.commit(1)
            await fixture.log.waitForCursor(36)
            #expect(delivery.deliveryStatus.refusals.map(\.topic) == ["gattherd/lab/lamp/heart_rate"])
        }
        let seen = book.withLock { $0 }
        #expect(seen.topics.count { $0 == "gattherd/lab/strap/heart_rate" } >= 11)
        #expect(seen.topics.count { $0 == "gattherd/lab/dial/heart_rate" } >= 10)
        #expect(delivery.counters.topicsSetAside.value == 1)
        #expect(delivery.counters.refused.value == 15)
        let events = fixture.events.withLock { $0.filter { $0.contains("topic_set_aside") } }
        #expect(events.count == 1)
        #expect(events.first?.contains(#""device":"lamp""#) == true)
    }

    @Test(arguments: Refusal.allCases)
    func `denied state and events stop nothing else`(refusal: Refusal) async throws {
        let book = Locked(Book())
        let broker = try broker(refusal, book) { $0.hasSuffix("/lamp/connection") || $0.hasSuffix("bridge/info") }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(20)
        let delivery = delivery(broker, fixture, refusal)
        delivery.setInfo(Array("{}".utf8))
        for device in ["lamp", "strap"] { delivery.update(DeliveryFixture.status(device, .ready)) }
        try await delivery.running {
            await fixture.log.waitForCursor(20)
            try await eventually {
                // Readings that the broker accepts show that it refuses some topics only.
                fixture.log.commit(1)
                return delivery.deliveryStatus.refusals.count == 2
            }
            try await eventually { book.withLock { $0.topics.contains("gattherd/lab/strap/availability") } }
        }
    }

    /// MQTT can refuse a message of QoS 0 only by ending the session.
    @Test(arguments: [Refusal.close, .closeInMQTT311, .disconnect])
    func `a denied topic is found with QoS 0 and with bare values`(refusal: Refusal) async throws {
        let book = Locked(Book())
        let broker = try broker(refusal, book) { $0 == "gattherd/lab/lamp/air/t" }
        let fixture = DeliveryFixture(try Broker())
        let delivery = broker.delivery(fixture, refusal.version) { settings in
            settings.options.topics.delay = .zero
            settings.publishing.all.isAcknowledged = false
            settings.publishing.all.hasScalars = true
        }
        try await delivery.running {
            try await eventually {
                for device in ["strap", "lamp"] {
                    fixture.log.commit(payload: "\"t\":1", device: device, stream: "air")
                }
                return delivery.deliveryStatus.refusals.map(\.topic) == ["gattherd/lab/lamp/air/t"]
            }
            await fixture.log.waitForCursor(2)
        }
    }

    @Test(arguments: [DeliverySettings.Version.v5, .v311])
    func `an access list of mosquitto stops one topic only`(version: DeliverySettings.Version) async throws {
        let folder = try TemporaryFolder()
        let list = try folder.write("topic read #\ntopic deny gattherd/lab/lamp/heart_rate\ntopic write #\n", to: "acl")
        let fixture = try await DeliveryFixture.started(settings: ["acl_file \(list)"])
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery(version) { $0.options.topics.delay = .zero }
        for _ in 0..<10 { for device in ["strap", "lamp"] { fixture.log.commit(1, device: device) } }
        await delivery.running {
            await fixture.log.waitForCursor(20)
            let messages = await subscriber.messages { $0.count(on: "strap/heart_rate") == 10 }
            #expect(messages.count(on: "lamp/heart_rate") == 0)
        }
        // MQTT 3.1.1 has no reason codes, and mosquitto acknowledges the message.
        #expect(delivery.counters.topicsSetAside.value == (version == .v5 ? 1 : 0))
        #expect(delivery.counters.connects.value == 1)
    }

    static let responses: [(topic: String, isUsed: Bool)] = [
        ("answers/1", true), ("gattherd/lab/bridge/response/mine", true), ("gattherd/lab/bridge/response/set", false),
        ("gattherd/lab/lamp/number/set", false),
        ("gattherd/lab/strap/heart_rate", false), ("gattherd/other/lamp/number/set", false), ("gattherd", false),
        ("homeassistant/device/x/config", false), ("$SYS/broker", false),
        (Array(repeating: "a", count: 20).joined(separator: "/"), true),
        (Array(repeating: "a", count: 21).joined(separator: "/"), false), (String(repeating: "a", count: 1025), false),
    ]

    @Test(arguments: responses)
    func `a response goes only to topics where it does no harm`(response: (topic: String, isUsed: Bool)) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: response.isUsed ? response.topic : "gattherd/lab/#")
        let delivery = fixture.delivery()
        try await delivery.running {
            await delivery.wait(for: .connected)
            try await eventually { delivery.counters.connects.value == 1 }
            let state = try await Subscriber(fixture.broker, to: "gattherd/lab/bridge/state")
            await state.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish(
                "7".utf8,
                to: "gattherd/lab/lamp/number/set",
                "-D",
                "PUBLISH",
                "response-topic",
                response.topic
            )
            let place = response.isUsed ? response.topic : "gattherd/lab/lamp/number/result"
            await subscriber.messages { $0.contains { $0.topic == place && $0.payload.contains(#""value":7"#) } }
        }
        #expect(delivery.counters.messagesRefused.value == (response.isUsed ? 0 : 1))
        #expect(delivery.counters.connects.value == 1)
    }

    @Test func `a broker that closes every session loses no reading`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, number in
            client.accept()
            while let packet = client.next() {
                if number < 12, packet.kind == .publish { return }
                client.answer(packet)
                if packet.kind == .publish { book.withLock { $0.topics.append(packet.topic) } }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        for _ in 0..<5 { for device in ["strap", "lamp"] { fixture.log.commit(1, device: device) } }
        let delivery = delivery(broker, fixture, .close)
        await delivery.running {
            await fixture.log.waitForCursor(10)
            #expect(delivery.deliveryStatus.refusals.isEmpty)
        }
        #expect(delivery.counters.refused.value == 0)
        #expect(delivery.counters.topicsSetAside.value == 0)
        #expect(book.withLock { $0.topics.count { $0.hasSuffix("/heart_rate") } } == 10)
    }

    @Test func `a broker that refuses every message by name loses no reading`() async throws {
        let book = Locked(Book())
        let isRepaired = Locked(false)
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                let isDenied = packet.kind == .publish && !isRepaired.withLock { $0 }
                client.answer(packet, reason: isDenied ? 0x87 : 0)
                if packet.kind == .publish, !isDenied { book.withLock { $0.topics.append(packet.topic) } }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        for _ in 0..<5 { for device in ["strap", "lamp"] { fixture.log.commit(1, device: device) } }
        let delivery = broker.delivery(fixture) { $0.options.refusalTimeout = .milliseconds(300) }
        delivery.setInfo(Array("{}".utf8))
        try await delivery.running {
            try await eventually { fixture.losses.contains { $0.contains("accepts_nothing") } }
            try await eventually { delivery.counters.connects.value > 1 }
            #expect(delivery.deliveryStatus.refusals.isEmpty)
            isRepaired.withLock { $0 = true }
            await fixture.log.waitForCursor(10)
            try await eventually { book.withLock { $0.topics.contains("gattherd/lab/bridge/info") } }
        }
        #expect(delivery.counters.refused.value == 0)
        #expect(delivery.counters.topicsSetAside.value == 0)
        #expect(book.withLock { $0.topics.count { $0.hasSuffix("/heart_rate") } } == 10)
    }

    @Test func `a broker that refuses every message by name in another order loses no reading`() async throws {
        let broker = try FakeBroker { client, _ in
            client.accept()
            client.readings(1).forEach { client.answer($0) }
            for packet in client.readings(9).reversed() { client.answer(packet, reason: 0x87) }
            client.serve()
        }
        let fixture = DeliveryFixture(try Broker())
        for _ in 0..<5 { for device in ["strap", "lamp"] { fixture.log.commit(1, device: device) } }
        let delivery = broker.delivery(fixture)
        await delivery.running { await fixture.log.waitForCursor(10) }
        #expect(delivery.counters.refused.value == 0)
        #expect(delivery.counters.connects.value == 1)
    }

    /// 0x80 gives no reason; 0x97 is "quota exceeded".
    @Test(arguments: [0x80, 0x97] as [UInt8])
    func `one topic that stays busy is set aside, and the others continue`(reason: UInt8) async throws {
        let denied = "gattherd/lab/lamp/heart_rate"
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                client.answer(packet, reason: packet.kind == .publish && packet.topic == denied ? reason : 0)
            }
        }
        let fixture = DeliveryFixture(try Broker())
        for _ in 0..<10 { for device in ["lamp", "strap"] { fixture.log.commit(1, device: device) } }
        let delivery = broker.delivery(fixture) { $0.options.busyTimeout = .milliseconds(200) }
        await delivery.running {
            await fixture.log.waitForCursor(20)
            fixture.log.commit(1, device: "lamp")
            fixture.log.commit(1)
            await fixture.log.waitForCursor(22)
            #expect(delivery.deliveryStatus.refusals.map(\.topic) == [denied])
        }
        #expect(delivery.counters.refused.value == 11)
        #expect(delivery.counters.connects.value == 1)
    }

    @Test func `a state that is set aside is published again in the same session`() async throws {
        let isRefusing = Locked(true)
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                let isState = packet.kind == .publish && packet.topic.hasSuffix("bridge/state")
                client.answer(packet, reason: isState && isRefusing.withLock { $0 } ? 0x87 : 0)
            }
        }
        let fixture = DeliveryFixture(try Broker())
        let delivery = broker.delivery(fixture) { settings in
            settings.options.topics.delay = .zero
            settings.options.topics.retryPause = .milliseconds(50)
        }
        try await delivery.running {
            try await eventually {
                // The broker must accept something else in between.
                fixture.log.commit(1)
                return delivery.deliveryStatus.refusals.map(\.topic) == ["gattherd/lab/bridge/state"]
            }
            isRefusing.withLock { $0 = false }
            try await eventually { delivery.deliveryStatus.refusals.isEmpty }
        }
        #expect(delivery.counters.topicsSetAside.value == 1)
        #expect(delivery.counters.connects.value == 1)
    }

    @Test func `a topic that the broker never acknowledges is set aside`() async throws {
        let denied = "gattherd/lab/lamp/heart_rate"
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                if packet.kind != .publish || packet.topic != denied { client.answer(packet) }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        for device in ["strap", "lamp", "strap"] { fixture.log.commit(1, device: device) }
        let delivery = broker.delivery(fixture) { $0.options.acknowledgement = .milliseconds(200) }
        try await delivery.running {
            try await eventually {
                fixture.log.commit(1)
                return delivery.deliveryStatus.refusals.map(\.topic) == [denied]
            }
            await fixture.log.waitForCursor(4)
        }
    }

    @Test func `a session ends when the broker acknowledges no state`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            book.withLock { $0.sessions += 1 }
            client.accept()
            while let packet = client.next() { if packet.kind == .ping { client.answer(packet) } }
        }
        let fixture = DeliveryFixture(try Broker())
        let delivery = broker.delivery(fixture) { $0.options.acknowledgement = .milliseconds(200) }
        for number in 1...6 { delivery.update(DeliveryFixture.status("lamp\(number)", .ready)) }
        try await delivery.running {
            try await eventually { book.withLock { $0.sessions } >= 2 }
        }
        #expect(fixture.losses.contains { $0.contains("has not answered") })
    }

    @Test func `denied response topics are not set aside, and responses use the gateway's topics`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            client.accept()
            client.readings(1).forEach { client.answer($0) }
            for number in 0..<1100 {
                client.send(client.message("gattherd/lab/lamp/n/set", [0x31], responseTopic: "evil/\(number)"))
            }
            while let packet = client.next() {
                let isDenied =
                    packet.kind == .publish && (packet.topic.hasPrefix("evil") || packet.seq.map { $0 > 1 } == true)
                client.answer(packet, reason: isDenied ? 0x87 : 0)
                if packet.kind == .publish, !isDenied { book.withLock { $0.topics.append(packet.topic) } }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(1)
        let delivery = broker.delivery(fixture) { $0.options.topics.delay = .zero }
        try await delivery.running {
            try await eventually { book.withLock { $0.topics.count { $0.hasSuffix("/n/result") } } == 1100 }
            #expect(delivery.deliveryStatus.refusals.isEmpty)
            fixture.log.commit(1, device: "lamp")
            try await eventually {
                delivery.setHealth(Array("{}".utf8))
                return delivery.deliveryStatus.refusals.map(\.topic) == ["gattherd/lab/lamp/heart_rate"]
            }
        }
        #expect(fixture.losses.count { $0.contains("response_topics_refused") } == 1)
        #expect(delivery.counters.answersDropped.value == 0)
    }

    @Test func `a topic of 65,533 octets is refused, and the session continues`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery()
        let name = String(repeating: "x", count: 65_533 - "gattherd/lab//number/set".utf8.count)
        try await delivery.running {
            let state = try await Subscriber(fixture.broker, to: "gattherd/lab/bridge/state")
            await state.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish("1", to: "gattherd/lab/\(name)/number/set")
            try await eventually { delivery.counters.messagesRefused.value == 1 }
            fixture.log.commit(1)
            await fixture.log.waitForCursor(1)
        }
        #expect(fixture.requests.withLock { $0.isEmpty })
        #expect(delivery.counters.connects.value == 1)
    }
}
