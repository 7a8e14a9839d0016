import GattherdLog
import GattherdMachines
import GattherdSync
import TestKit
import Testing

@testable import GattherdDelivery

/// A network that cuts each connection after one reading, in front of a broker that goes on.
@Suite(.timeLimit(.minutes(1)))
struct CutConnectionTests {
    private struct Book: Sendable {
        var seqs: [Int64] = []
        /// The properties of the retained last will.
        var will: [UInt8]?
    }

    @Test func `the last will lets delivery continue after the readings that the broker has`() async throws {
        let book = Locked(Book())
        let broker = try FakeBroker { client, _ in
            guard let connect = client.next() else { return }
            client.send([0x20, 3, 0, 0, 0])
            let will = book.withLock { book in
                defer { book.will = connect.willProperties }
                return book.will
            }
            while let packet = client.next() {
                if let will, packet.isSubscription(to: "bridge/state/#") { client.send(client.lastWill(will)) }
                client.answer(packet)
                guard let seq = packet.seq else { continue }
                book.withLock { $0.seqs.append(seq) }
                return client.end()
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(4)
        let delivery = broker.delivery(fixture) { settings in
            settings.options.replay = .seconds(60)
            // The last will arrives before the first reading.
            settings.options.reconnectPause = .milliseconds(100)
        }
        try await delivery.running { try await eventually { book.withLock { $0.seqs.contains(4) } } }
        var seen: Set<Int64> = []
        #expect(book.withLock { $0.seqs }.filter { seen.insert($0).inserted } == [1, 2, 3, 4])
    }

    /// mosquitto 2.0.11 does not say that it stops, publishes the last will and saves it.
    @Test func `a broker that restarts again and again at once receives acknowledged readings again`() async throws {
        let folder = try TemporaryFolder()
        let fixture = DeliveryFixture(
            try Broker(settings: ["persistence true", "persistence_location \(folder.path)/"])
        )
        try await fixture.broker.start()
        let delivery = fixture.delivery { settings in
            settings.options.replay = .seconds(60)
            // The last will arrives before the first reading, and the broker is back before the next attempt.
            settings.options.reconnectPause = .milliseconds(300)
            settings.options.backoff = Backoff(minimum: .milliseconds(500), maximum: .milliseconds(500))
        }
        try await delivery.running {
            for count in 1...5 as ClosedRange<Int64> {
                let before = delivery.counters.republished.value
                fixture.log.commit(1)
                await fixture.log.waitForCursor(count)
                #expect(delivery.counters.republished.value - before == UInt64(count - 1))
                if count == 5 { return }
                await fixture.broker.stop()
                try await fixture.broker.start()
            }
        }
    }
}

extension FakeBroker.Packet {
    /// The properties of a CONNECT's will, with their length; short ones only.
    fileprivate var willProperties: [UInt8] {
        let identifier = Array("gattherd-lab".utf8)
        guard let start = body.indices.first(where: { body[$0...].starts(with: identifier) }) else { return [] }
        let rest = body.dropFirst(start + identifier.count)
        return Array(rest.prefix(1 + Int(rest.first ?? 0)))
    }
}

extension FakeBroker.Client {
    /// The last will of an earlier session as a retained message.
    fileprivate func lastWill(_ properties: [UInt8]) -> [UInt8] {
        let topic = Array("gattherd/lab/bridge/state".utf8)
        let body = [0, UInt8(topic.count)] + topic + properties + Array("offline".utf8)
        return [0x31, UInt8(body.count)] + body
    }
}
