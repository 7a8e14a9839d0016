import GattherdDelivery
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import Glibc
import TestKit
import Testing

/// Brokers that read little, or late.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct PressureTests {
    private struct Book: Sendable {
        var seqs: [Int64] = []
        var results: [String] = []
        var acknowledged: [[UInt8]] = []
        var maximumInFlight = 0

        mutating func record(_ packet: FakeBroker.Packet) {
            if let seq = packet.seq { seqs.append(seq) }
            if packet.kind == .acknowledgement { acknowledged.append(packet.body) }
            if packet.kind == .publish, packet.topic.hasSuffix("lamp/number/result") { results.append(packet.payload) }
        }
    }

    private static let set = "gattherd/lab/lamp/number/set"

    @Test(arguments: [DeliverySettings.Version.v5, .v311])
    func `a packet received during a half-written packet is answered after it`(
        version: DeliverySettings.Version
    ) async throws {
        let book = Locked(Book())
        let broker = try FakeBroker(isNarrow: true) { client, _ in
            var client = client
            client.version = version
            client.accept()
            client.readings(1).forEach { client.answer($0) }
            client.waitForUnread(4000)
            // Both sides have something to write now.
            client.send(client.message(Self.set, [0x31], identifier: 9) + [0xD0, 0])
            client.serve { packet in book.withLock { $0.record(packet) } }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.commitLong(5, octets: 200_000)
        try await broker.delivery(fixture, version).running {
            await fixture.log.waitForCursor(5)
            try await eventually { book.withLock { $0.results.count == 1 } }
        }
        let seen = book.withLock { $0 }
        #expect(seen.seqs == Array(2...5))
        #expect(seen.acknowledged == [[0, 9]])
        #expect(fixture.losses.isEmpty)
    }

    @Test(arguments: [1, 2, 5])
    func `unacknowledged readings never exceed the broker's receive maximum`(maximum: UInt8) async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            client.accept(properties: [0x21, 0, maximum])
            var waiting: [FakeBroker.Packet] = []
            repeat {
                if !client.hasMore(within: 3) {
                    waiting.forEach { client.answer($0) }
                    waiting = []
                }
                guard let packet = client.next() else { return }
                if packet.isAcknowledged { waiting.append(packet) } else { client.answer(packet) }
                book.withLock { book in
                    book.record(packet)
                    book.maximumInFlight = max(book.maximumInFlight, waiting.count)
                }
            } while true
        }
        let fixture = DeliveryFixture(try Broker())
        let delivery = broker.delivery(fixture)
        await delivery.running {
            fixture.log.commit(3)
            await fixture.log.waitForCursor(3)
            fixture.log.commit(20)
            for name in ["lamp", "dial", "strap"] { delivery.update(DeliveryFixture.status(name, .ready)) }
            await fixture.log.waitForCursor(23)
        }
        #expect(book.withLock { $0.seqs } == Array(1...23))
        #expect(book.withLock { $0.maximumInFlight } == maximum)
        #expect(fixture.losses.isEmpty)
    }

    @Test func `responses that were not acknowledged are published again in the next session`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, number in
            client.accept()
            if number == 0 {
                client.readings(1).forEach { client.answer($0) }
                for value in 0..<10 as Range<UInt8> {
                    client.send(client.message(Self.set, [0x30 + value], identifier: value + 1))
                }
                while let packet = client.next(), !(packet.kind == .publish && packet.topic.hasSuffix("/result")) {
                    client.answer(packet)
                }
                return
            }
            client.serve { packet in book.withLock { $0.record(packet) } }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(1)
        let delivery = broker.delivery(fixture)
        try await delivery.running {
            try await eventually { Set(book.withLock { $0.results }).count == 10 }
        }
        #expect(delivery.counters.answersDropped.value == 0)
    }

    @Test func `a response is published again when the broker was busy`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            client.accept()
            client.readings(1).forEach { client.answer($0) }
            client.send(client.message(Self.set, [0x31], identifier: 1))
            while let packet = client.next() {
                book.withLock { $0.record(packet) }
                let isBusy =
                    packet.kind == .publish && packet.topic.hasSuffix("/result")
                    && book.withLock { $0.results.count } == 1
                client.answer(packet, reason: isBusy ? 0x97 : 0)
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(1)
        let delivery = broker.delivery(fixture)
        try await delivery.running { try await eventually { book.withLock { $0.results.count } == 2 } }
        #expect(delivery.counters.answersDropped.value == 0)
    }

    @Test func `a stop publishes the responses that wait`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            client.accept()
            client.readings(1).forEach { client.answer($0) }
            for value in 0..<100 as Range<UInt8> {
                client.send(client.message(Self.set, [0x31], identifier: value + 1))
            }
            client.serve { packet in
                book.withLock { $0.record(packet) }
                if packet.kind == .publish { usleep(1000) }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(1)
        let delivery = broker.delivery(fixture) { $0.stopPatiently() }
        try await delivery.running {
            try await eventually { fixture.requests.withLock { $0.count } == 100 }
        }
        #expect(book.withLock { $0.results.count } + Int(delivery.counters.answersDropped.value) == 100)
    }

    @Test func `a flood of retained messages is bounded, and a control is answered`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                book.withLock { $0.record(packet) }
                guard packet.kind == .subscribe, packet.body.contains("availability".utf8) else { continue }
                for hundred in 0..<1000 {
                    client.send(
                        (0..<100).flatMap { number in
                            client.retained("gattherd/lab/d\(100 * hundred + number)/availability", [0x31])
                        }
                    )
                }
                client.send(client.message(Self.set, [0x31], identifier: 1))
            }
        }
        let fixture = DeliveryFixture(try Broker())
        let delivery = broker.delivery(fixture)
        delivery.enrol(["strap": "C0:FF:EE:00:00:01"])
        try await delivery.running { try await eventually { book.withLock { $0.results.count } == 1 } }
        #expect(fixture.losses.isEmpty)
    }

    @Test func `a broker that reads slowly and sends nothing is alive`() async throws {
        let seqs = Locked<[Int64]>([])
        let broker = try FakeBroker(isNarrow: true) { client, _ in
            // A keepalive of one second.
            client.accept(properties: [0x13, 0, 1])
            client.serve { packet in
                guard let seq = packet.seq else { return }
                seqs.withLock { $0.append(seq) }
                if seq <= 50 { usleep(25_000) }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.commitLong(60, octets: 100_000)
        try await broker.delivery(fixture) { $0.publishing.all.isAcknowledged = false }.running {
            try await eventually { seqs.withLock { $0.count == 60 } || !fixture.losses.isEmpty }
        }
        #expect(seqs.withLock { $0 } == Array(1...60))
        #expect(fixture.losses.isEmpty)
    }

    @Test(arguments: [DeliverySettings.Version.v5, .v311])
    func `commands are answered while readings are published at full speed`(
        version: DeliverySettings.Version
    ) async throws {
        let fixture = try await DeliveryFixture.started(settings: ["max_queued_messages 0"])
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery(version) { $0.options.pace = TokenBucket(rate: 1_000_000, burst: 1_000_000) }
        try await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            let numbers = (1...60).map { "\($0)\n" }.joined()
            async let sent: Void = fixture.broker.publish(numbers.utf8, to: Self.set, lines: true)
            var count: Int64 = 0
            repeat {
                fixture.log.commit(500)
                count += 500
                await fixture.log.waitForCursor(count - 250)
            } while subscriber.messages.count(on: "lamp/number/result") < 60
            try await sent
            let messages = await subscriber.messages { $0.seqs.count >= count }
            #expect(messages.seqs == Array(1...count))
        }
        #expect(delivery.counters.connects.value == 1)
        #expect(delivery.counters.answersDropped.value == 0)
    }
}

extension DeliveryFixture {
    /// Commits more octets of readings than a narrow broker's kernel holds.
    fileprivate func commitLong(_ count: Int, octets: Int) {
        let text = String(repeating: "x", count: octets)
        for _ in 0..<count { log.commit(payload: "\"text\":\"\(text)\"", device: "strap", stream: "text") }
    }
}
