import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdDelivery

/// The repair of a broker that has lost its retained messages, while it holds back or refuses answers.
@Suite(.timeLimit(.minutes(1)))
struct RetainedRepairTests {
    private struct Book: Sendable {
        var seqs: [Int64] = []
        var hasResponded = false
        /// The number of repeated readings that were unanswered when the response arrived.
        var unanswered = 0
    }

    /// Returns a broker that accepts `count` readings in the first session; the later ones run `script`.
    private static func broker(
        accepting count: Int,
        _ script: @escaping @Sendable (FakeBroker.Client, _ number: Int) -> Void
    ) throws -> FakeBroker {
        try FakeBroker { client, number in
            client.accept()
            guard number == 0 else { return script(client, number) }
            for _ in 0..<count { client.readings(1).forEach { client.answer($0) } }
            client.end()
        }
    }

    private static func fixture(devices count: Int) throws -> DeliveryFixture {
        let fixture = DeliveryFixture(try Broker())
        for number in 1...count { fixture.log.commit(1, device: "device\(number)") }
        return fixture
    }

    /// Device 10 has a newer reading, number 21, while its last one waits.
    @Test func `repeated readings leave room for responses, and a newer reading replaces a waiting one`() async throws {
        let book = Locked(Book())
        let broker = try Self.broker(accepting: 20) { client, _ in
            var held: [FakeBroker.Packet] = []
            while held.last?.seq != 21, let packet = client.next() {
                guard let seq = packet.seq else {
                    client.answer(packet)
                    if packet.kind == .publish, packet.topic.hasSuffix("/response/health") {
                        book.withLock { ($0.hasResponded, $0.unanswered) = (true, held.count) }
                    }
                    continue
                }
                if held.isEmpty { client.send(client.message("gattherd/lab/bridge/request/health", [])) }
                held.append(packet)
                book.withLock { $0.seqs.append(seq) }
            }
            held.forEach { client.answer($0) }
            client.serve { packet in if let seq = packet.seq { book.withLock { $0.seqs.append(seq) } } }
        }
        let fixture = try Self.fixture(devices: 20)
        let delivery = broker.delivery(fixture) { $0.repairPause = .zero }
        try await delivery.running {
            try await eventually { book.withLock { $0.hasResponded } }
            fixture.log.commit(1, device: "device10")
            try await eventually { book.withLock { $0.seqs.count } >= 20 }
        }
        #expect(book.withLock { $0.seqs.sorted() } == (1...21).filter { $0 != 10 })
        #expect(book.withLock { $0.unanswered } <= 8)
    }

    @Test func `a repeated reading that the broker refuses as busy is published again`() async throws {
        let book = Locked(Book())
        let broker = try Self.broker(accepting: 2) { client, _ in
            while let packet = client.next() {
                let isFirst = packet.seq != nil && book.withLock { $0.seqs.isEmpty }
                if let seq = packet.seq { book.withLock { $0.seqs.append(seq) } }
                // "Quota exceeded".
                client.answer(packet, reason: isFirst ? 0x97 : 0)
            }
        }
        let delivery = broker.delivery(try Self.fixture(devices: 2)) { $0.repairPause = .zero }
        try await delivery.running { try await eventually { book.withLock { $0.seqs.count } >= 3 } }
        #expect(book.withLock { $0.seqs } == [1, 2, 1])
    }

    /// Each session ends when the broker has accepted one repeated reading.
    ///
    /// The later ones find the state that the first of them has published.
    @Test func `a repair that lost connections interrupt continues with the readings without an answer`() async throws {
        let book = Locked(Book())
        let broker = try Self.broker(accepting: 3) { client, number in
            while let packet = client.next() {
                if number > 1, packet.isSubscription(to: "bridge/state/#") { client.send(client.retainedState) }
                client.answer(packet)
                guard let seq = packet.seq else { continue }
                book.withLock { $0.seqs.append(seq) }
                return client.end()
            }
        }
        let delivery = broker.delivery(try Self.fixture(devices: 3)) { $0.repairPause = .zero }
        try await delivery.running { try await eventually { book.withLock { $0.seqs.count } >= 3 } }
        #expect(book.withLock { $0.seqs.sorted() } == [1, 2, 3])
    }
}

/// The order and the times of a repair, in virtual time.
@Suite struct RepairQueueTests {
    private static func queue(_ count: Int64, pace: TokenBucket) -> RepairQueue {
        var options = DeliveryMachine.Options()
        options.pace = pace
        options.retryPause = .seconds(1)
        var queue = RepairQueue(options)
        let stream = StreamDefinition(device: "strap", profile: "p", stream: "s", metrics: [])
        let readings = (1...count).map {
            JournalReading(seq: $0, stream: stream, time: Timestamp(microseconds: $0), source: .notify, samples: [])
        }
        queue.start(readings)
        return queue
    }

    @Test func `repeated readings keep the pace of a backlog`() {
        var queue = Self.queue(1000, pace: TokenBucket(rate: 100, burst: 10))
        var (now, seqs) = (Duration.zero, [Int64]())
        while !queue.isEmpty {
            while let item = queue.dequeue(at: now, where: { _ in true }) { seqs.append(item.reading.seq) }
            #expect(Double(seqs.count) <= 10 + 100 * (now / .seconds(1)) + 1)
            now = queue.nextTime(at: now)
        }
        #expect(seqs == Array(1...1000))
        #expect(now >= .seconds(9) && now <= .seconds(11))
    }

    @Test func `readings that are no longer missing need no time`() {
        var queue = Self.queue(1000, pace: TokenBucket(rate: 1, burst: 1))
        let item = queue.dequeue(at: .zero) { $0.seq == 1000 }
        #expect(item?.reading.seq == 1000)
        #expect(queue.isEmpty)
    }

    @Test func `a refused reading follows the others after growing pauses, and is given up in the end`() {
        var queue = Self.queue(2, pace: TokenBucket())
        var (now, seqs) = (Duration.zero, [Int64]())
        var pauses: [Duration] = []
        while !queue.isEmpty {
            now = queue.nextTime(at: now)
            guard let item = queue.dequeue(at: now, where: { _ in true }) else { break }
            seqs.append(item.reading.seq)
            guard item.reading.seq == 1, queue.retry(item, at: now) else { continue }
            pauses.append(queue.nextTime(at: now) - now)
        }
        #expect(seqs == [1, 2] + Array(repeating: 1, count: 6))
        #expect(pauses == [1, 2, 4, 8, 16, 32].map { .seconds($0) })
    }
}
