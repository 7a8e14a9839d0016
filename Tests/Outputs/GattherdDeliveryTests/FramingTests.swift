import GattherdDelivery
import GattherdLog
import GattherdMachines
import GattherdSync
import Glibc
import TestKit
import Testing

/// Packets of a broker, split at any octet.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct FramingTests {
    /// The packets that a scripted broker received.
    private struct Book: Sendable {
        var sessions = 0
        var seqs: [Int64] = []
        var results: [String] = []
        var acknowledged: [[UInt8]] = []

        mutating func record(_ packet: FakeBroker.Packet) {
            if let seq = packet.seq { seqs.append(seq) }
            if packet.kind == .acknowledgement { acknowledged.append(packet.body) }
            if packet.kind == .publish, packet.topic.hasSuffix("lamp/number/result") { results.append(packet.payload) }
        }
    }

    private static let set = "gattherd/lab/lamp/number/set"

    /// A broker that acknowledges the first reading, which arrives alone, and then runs `script` with the client.
    private func broker(
        _ version: DeliverySettings.Version = .v5,
        _ book: Locked<Book>,
        _ script: @escaping @Sendable (FakeBroker.Client) -> Void
    ) throws -> FakeBroker {
        try FakeBroker { client, number in
            var client = client
            client.version = version
            book.withLock { $0.sessions += 1 }
            client.accept()
            if number == 0 {
                for packet in client.readings(1) {
                    book.withLock { $0.record(packet) }
                    client.answer(packet)
                }
                script(client)
            }
            client.serve { packet in book.withLock { $0.record(packet) } }
        }
    }

    @Test(arguments: [DeliverySettings.Version.v5, .v311])
    func `acknowledgements may be split anywhere`(version: DeliverySettings.Version) async throws {
        let book = Locked(Book())
        let broker = try broker(version, book) { client in
            let readings = client.readings(30)
            for packet in readings.prefix(10) { client.sendApart(client.acknowledgement(of: packet)) }
            for (cut, packet) in readings.dropFirst(10).enumerated() where cut.isMultiple(of: 2) {
                let pair = client.acknowledgement(of: packet) + client.acknowledgement(of: readings[cut + 11])
                client.sendApart(pair, at: cut / 2 % (pair.count - 1) + 1)
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(31)
        await broker.delivery(fixture, version).running { await fixture.log.waitForCursor(31) }
        #expect(book.withLock { $0.sessions } == 1)
    }

    @Test(arguments: [DeliverySettings.Version.v5, .v311])
    func `other packets may come between acknowledgements in one segment`(
        version: DeliverySettings.Version
    ) async throws {
        let book = Locked(Book())
        let broker = try broker(version, book) { client in
            let acknowledgements = client.readings(20).map { client.acknowledgement(of: $0) }
            var segment = Array(acknowledgements[..<5].joined()) + client.message(Self.set, [0x31])
            segment += acknowledgements[5..<10].joined() + client.message(Self.set, [0x32], identifier: 9)
            segment += [0xD0, 0] + acknowledgements[10...].joined() + client.message(Self.set, [0x33], identifier: 10)
            client.send(segment)
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(21)
        try await broker.delivery(fixture, version).running {
            await fixture.log.waitForCursor(21)
            try await eventually { book.withLock { $0.results.count == 3 } }
        }
        let seen = book.withLock { $0 }
        #expect(seen.sessions == 1)
        #expect(seen.acknowledged == [[0, 9], [0, 10]])
        #expect(seen.results == (1...3).map { #"{"status":"ok","value":\#($0)}"# })
    }

    @Test(arguments: [0, 9], [0, 16_384, 40_000])
    func `a message longer than the kept maximum may come in pieces`(identifier: UInt8, size: Int) async throws {
        let book = Locked(Book())
        let broker = try broker(.v5, book) { client in
            let acknowledgements = client.readings(6).map { client.acknowledgement(of: $0) }
            let message = client.message(Self.set, Array(repeating: 0x37, count: size), identifier: identifier)
            let octets = acknowledgements[..<3].joined() + message + acknowledgements[3...].joined()
            var rest = octets[...]
            while !rest.isEmpty {
                client.send(Array(rest.prefix(1499)))
                rest = rest.dropFirst(1499)
                usleep(50)
            }
        }
        let log = TestLog()
        log.commit(7)
        try await broker.delivery(log).running {
            await log.waitForCursor(7)
            try await eventually { book.withLock { $0.results.count == 1 } }
        }
        #expect(book.withLock { $0.sessions } == 1)
        #expect(book.withLock { $0.acknowledged } == (identifier == 0 ? [] : [[0, identifier]]))
    }

    /// The reason, the number of times the reading is published, and the number of refused readings.
    @Test(arguments: [(0x10, 1, 0), (0x99, 1, 1), (0x87, 2, 0), (0x97, 2, 0)] as [(UInt8, Int, UInt64)])
    func `the reason of an acknowledgement decides whether a reading is published again`(
        reason: UInt8,
        times: Int,
        refused: UInt64
    ) async throws {
        let book = Locked(Book())
        let broker = try broker(.v5, book) { client in
            for packet in client.readings(4) {
                book.withLock { $0.record(packet) }
                client.answer(packet, reason: packet.seq == 3 ? reason : 0)
            }
        }
        let log = TestLog()
        log.commit(5)
        let delivery = try broker.delivery(log)
        await delivery.running { await log.waitForCursor(5) }
        let seqs = book.withLock { $0.seqs }
        #expect(seqs.count { $0 == 3 } == times)
        #expect(delivery.counters.refused.value == refused)
    }

    @Test func `a second acknowledgement changes nothing`() async throws {
        let book = Locked(Book())
        let broker = try broker(.v5, book) { client in
            for packet in client.readings(9) {
                book.withLock { $0.record(packet) }
                client.answer(packet)
                client.send(client.acknowledgement(of: packet, 0x87) + client.acknowledgement(of: packet, 0x97))
            }
        }
        let log = TestLog()
        log.commit(10)
        let delivery = try broker.delivery(log)
        await delivery.running { await log.waitForCursor(10) }
        #expect(book.withLock { $0.seqs } == Array(1...10))
        #expect(book.withLock { $0.sessions } == 1)
        #expect(delivery.counters.refused.value == 0)
    }

    static let nonsense: [([UInt8], String)] = [
        ([0x40, 0xFF, 0xFF, 0xFF, 0xFF], "malformed packet"), ([0xD0, 0x80, 0x80, 0x80, 0x80], "malformed packet"),
        ([0x34, 4, 0, 1, 0x61, 0], "QoS 2"), ([0x40, 0x81, 0x80, 0x10, 0, 1, 0], "packet too large"),
        ([0x90, 0x80, 0x80, 0x80, 1], "packet too large"), ([0x40, 1, 0], "malformed packet"),
        ([0, 0], "malformed packet"), ([0x40, 2, 0x7F, 7], "which was not sent"), ([0x40, 2, 0, 0], "protocol error"),
        ([0x90, 4, 0x7F, 7, 0, 1], "which was not sent"), ([0x20, 3, 0, 0, 0], "a second CONNACK"),
        ([0xF0, 0], "a packet of type 15"),
    ]

    @Test(arguments: nonsense)
    func `bytes that are not a packet end the session, and the next session continues`(
        octets: [UInt8],
        words: String
    ) async throws {
        let book = Locked(Book())
        let broker = try broker(.v5, book) { client in
            let readings = client.readings(4)
            client.send(client.acknowledgement(of: readings[0]) + octets)
            client.send(Array(readings.dropFirst().map { client.acknowledgement(of: $0) }.joined()))
            client.end()
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(5)
        await broker.delivery(fixture).running { await fixture.log.waitForCursor(5) }
        #expect(fixture.losses.first?.contains(words) == true, "\(fixture.losses)")
        #expect(book.withLock { $0.sessions } == 2)
        #expect(book.withLock { $0.seqs } == [1, 3, 4, 5])
    }

    /// Nothing, and parts of an acknowledgement, of a message and of another packet.
    @Test(arguments: [[], [0x40], [0x40, 3, 0], [0x30, 20, 0, 3, 0x61], [0x90, 4, 0]])
    func `readings acknowledged before the end of a connection are not published again`(rest: [UInt8]) async throws {
        let book = Locked(Book())
        let broker = try broker(.v5, book) { client in
            let acknowledgements = client.readings(20).prefix(12).map { client.acknowledgement(of: $0) }
            client.send(acknowledgements.joined() + rest)
            client.end()
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(21)
        await broker.delivery(fixture).running { await fixture.log.waitForCursor(21) }
        #expect(book.withLock { $0.seqs } == [1] + Array(14...21))
        #expect(book.withLock { $0.sessions } == 2)
        #expect(fixture.losses.first?.contains("the connection was lost: the broker closed it") == true)
    }
}
