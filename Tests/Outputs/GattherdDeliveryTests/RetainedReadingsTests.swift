import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdDelivery

@Suite(.timeLimit(.minutes(3)))
struct RetainedReadingsTests {
    private struct Book: Sendable {
        var seqs: [Int64] = []
        var isDone = false
    }

    /// The packet that answers a request comes after the repair, whose pause is zero.
    @Test(arguments: [false, true], [DeliverySettings.Version.v5, .v311])
    func `a broker that has lost its retained messages receives the newest readings again, and no other broker`(
        isKept: Bool,
        version: DeliverySettings.Version
    ) async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, number in
            var client = client
            client.version = version
            client.accept()
            guard number > 0 else {
                for _ in 0..<3 { client.readings(1).forEach { client.answer($0) } }
                return client.end()
            }
            while let packet = client.next() {
                if let seq = packet.seq { book.withLock { $0.seqs.append(seq) } }
                if isKept, packet.isSubscription(to: "bridge/state/#") { client.send(client.retainedState) }
                client.answer(packet)
                guard packet.kind == .publish else { continue }
                if packet.payload == "online" { client.send(client.message("gattherd/lab/bridge/request/health", [])) }
                if packet.topic.hasSuffix("/response/health") { book.withLock { $0.isDone = true } }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(2)
        fixture.log.commit(1, device: "lamp")
        let delivery = broker.delivery(fixture, version) { $0.repairPause = .zero }
        try await delivery.running { try await eventually { book.withLock { $0.isDone } } }
        #expect(book.withLock { $0.seqs } == (isKept ? [] : [2, 3]))
    }

    @Test func `a reading that is to be published again anyway does not overtake earlier ones`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, number in
            client.accept()
            guard number > 0 else {
                client.readings(1).forEach { client.answer($0) }
                _ = client.readings(2)
                // DISCONNECT with "server shutting down".
                client.send([0xE0, 1, 0x8B])
                return client.end()
            }
            client.serve { packet in if let seq = packet.seq { book.withLock { $0.seqs.append(seq) } } }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(3)
        let delivery = broker.delivery(fixture) { settings in
            settings.repairPause = .zero
            settings.options.reconnectPause = .milliseconds(300)
        }
        await delivery.running { await fixture.log.waitForCursor(3) }
        #expect(book.withLock { $0.seqs } == [2, 3])
    }

    @Test func `the state that an earlier session published does not hide the loss`() {
        var check = RetainedStateCheck()
        check.subscribed(in: 1, at: .zero)
        // The session ends before the readings are published again.
        check.found(in: 2)
        check.subscribed(in: 2, at: .seconds(3))
        #expect(check.loss == RetainedStateCheck.Loss(session: 1, time: .zero))
        check.subscribed(in: 3, at: .seconds(6))
        check.found(in: 3)
        #expect(check.loss == RetainedStateCheck.Loss(session: 1, time: .zero))
        check.repaired()
        #expect(check.loss == nil)
    }

    @Test func `a broker that has lost the state again has lost what was published meanwhile`() {
        var check = RetainedStateCheck()
        check.subscribed(in: 1, at: .zero)
        check.subscribed(in: 3, at: .seconds(3))
        #expect(check.loss == RetainedStateCheck.Loss(session: 3, time: .seconds(3)))
    }

    @Test(arguments: [true, false])
    func `a state that arrives before or after the answer to the subscription is found`(isEarly: Bool) {
        var check = RetainedStateCheck()
        if isEarly { check.found(in: 1) }
        check.subscribed(in: 1, at: .zero)
        if !isEarly { check.found(in: 1) }
        #expect(check.loss == nil)
    }

    @Test func `only streams without a reading since the loss are missing, each with its newest reading`() {
        var streams = PublishedStreams()
        for (seq, device, session) in [(1, "strap", 1), (2, "lamp", 1), (3, "strap", 1), (4, "lamp", 2)] {
            let reading = Self.reading(Int64(seq), of: device)
            Self.stream(of: reading, in: &streams).record(reading, in: session)
        }
        #expect(streams.missing(since: 2) == [Self.reading(3, of: "strap")])
        #expect(streams.missing(since: 3) == [Self.reading(3, of: "strap"), Self.reading(4, of: "lamp")])
        streams.remove("strap")
        #expect(streams.missing(since: 3).map(\.seq) == [4])
    }

    @Test func `readings that the broker has not accepted follow all other missing ones`() {
        var streams = PublishedStreams()
        for seq in 1...4 as ClosedRange<Int64> {
            let reading = Self.reading(seq, of: "device\(seq)")
            let stream = Self.stream(of: reading, in: &streams)
            stream.record(reading, in: 1)
            if seq < 3 { stream.refused(reading) }
        }
        #expect(streams.missing(since: 2).map(\.seq) == [3, 4, 1, 2])
    }

    @Test func `the newest reading of a stream is kept when its rule or its definition is replaced`() {
        var streams = PublishedStreams()
        let reading = Self.reading(1, of: "strap")
        Self.stream(of: reading, in: &streams).record(reading, in: 1)
        var rule = StreamPublishing()
        rule.isRetained = false
        streams.update { _, _ in rule }
        let same = Self.stream(of: Self.reading(2, of: "strap"), in: &streams)
        #expect(!same.rule.isRetained && same === Self.stream(of: reading, in: &streams))
        #expect(same.isMissing(reading, since: 2))
    }

    @Test func `a reading is missing until it or a newer one of its stream is published and not refused`() {
        let stream = PublishedStream(topic: "strap", rule: StreamPublishing())
        let (old, new) = (Self.reading(1, of: "strap"), Self.reading(2, of: "strap"))
        stream.record(old, in: 1)
        #expect(stream.isMissing(old, since: 2))
        stream.record(old, in: 3)
        #expect(!stream.isMissing(old, since: 2))
        stream.refused(old)
        #expect(stream.isMissing(old, since: 2))
        stream.record(new, in: 3)
        stream.refused(old)
        #expect(!stream.isMissing(old, since: 2) && !stream.isMissing(new, since: 2))
    }

    private static func stream(of reading: JournalReading, in streams: inout PublishedStreams) -> PublishedStream {
        streams.stream(reading.stream) { PublishedStream(topic: $0.device, rule: StreamPublishing()) }
    }

    private static func reading(_ seq: Int64, of device: String) -> JournalReading {
        let metric = MetricDescriptor(name: "m")
        let stream = StreamDefinition(device: device, profile: "p", stream: "s", metrics: [metric])
        return JournalReading(
            seq: seq,
            stream: stream,
            time: Timestamp(microseconds: seq),
            source: .notify,
            samples: [Sample(metric: 0, value: .integer(seq))]
        )
    }
}

extension FakeBroker.Packet {
    func isSubscription(to filter: String) -> Bool {
        kind == .subscribe && String(decoding: body, as: UTF8.self).contains(filter)
    }
}

extension FakeBroker.Client {
    /// The last will of an earlier session, which the broker has kept.
    var retainedState: [UInt8] {
        let packet = message("gattherd/lab/bridge/state", Array("offline".utf8))
        return [packet[0] | 1] + packet.dropFirst()
    }
}
