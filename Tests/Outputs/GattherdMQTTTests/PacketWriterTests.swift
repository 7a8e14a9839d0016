import Testing

@testable import GattherdMQTT

/// Packets that a client writes.
@Suite struct PacketWriterTests {
    /// MQTT 5.0, 3.3; written by hand from the specification's tables.
    private static let packets: [(PublishPacket, UInt16, MQTTVersion, [UInt8])] = [
        (packet("a/b", [1, 2], isRetained: true), 0x0102, .v311, [0x33, 9, 0, 3, 0x61, 0x2F, 0x62, 1, 2, 1, 2]),
        (packet("a", [], isRetained: false), 0, .v311, [0x30, 3, 0, 1, 0x61]),
        (
            packet("a", [9], isRetained: false, .init(isJSON: false)), 7, .v5,
            [0x32, 7, 0, 1, 0x61, 0, 7, 0, 9]
        ),
        (
            packet(nil, [9], isRetained: false, .init(isJSON: false, expiry: 0x0102_0304, alias: 5)), 7, .v5,
            [0x32, 14, 0, 0, 0, 7, 8, 0x02, 1, 2, 3, 4, 0x23, 0, 5, 9]
        ),
        (
            packet("a", [], isRetained: false, .init(correlation: [8])), 0, .v5,
            [0x30, 27, 0, 1, 0x61, 23, 0x03, 0, 16] + Array("application/json".utf8) + [0x09, 0, 1, 8]
        ),
        (
            packet("a", [], isRetained: false, .init(isJSON: false, user: [.init(name: "n", value: "v")])), 0, .v5,
            [0x30, 11, 0, 1, 0x61, 7, 0x26, 0, 1, 0x6E, 0, 1, 0x76]
        ),
    ]

    private static func packet(
        _ topic: String?,
        _ payload: [UInt8],
        isRetained: Bool,
        _ properties: MessageProperties = MessageProperties()
    ) -> PublishPacket {
        PublishPacket(topic: topic, payload: payload[...], isRetained: isRetained, properties: properties)
    }

    @Test(arguments: packets.indices)
    func `a message is encoded as the specification says`(index: Int) {
        let (packet, identifier, version, expected) = Self.packets[index]
        var octets: [UInt8] = []
        var buffer: [UInt8] = [1, 2, 3]
        packet.append(to: &octets, by: &buffer, identifier: identifier, version)
        #expect(octets == expected)
    }

    @Test(
        arguments: [(121, [125]), (124, [0x80, 1]), (16_379, [0xFF, 0x7F]), (16_380, [0x80, 0x80, 1])]
            as [(Int, [UInt8])]
    )
    func `a length has as many octets as it needs`(payload: Int, length: [UInt8]) {
        var octets: [UInt8] = []
        let packet = Self.packet("ab", Array(repeating: 0, count: payload), isRetained: false)
        var buffer: [UInt8] = []
        packet.append(to: &octets, by: &buffer, identifier: 0, .v311)
        #expect(Array(octets[1...length.count]) == length)
        #expect(octets.count == 1 + length.count + 4 + payload)
    }

    /// MQTT 5.0, 3.1 and 3.8; written by hand from the specification's tables.
    @Test func `CONNECT, SUBSCRIBE, UNSUBSCRIBE and DISCONNECT are encoded as the specification says`() throws {
        var options = MQTTOptions(.v5, clientID: "c")
        options.keepalive = .seconds(30)
        let limits: [UInt8] = [8, 0x21, 0, 100, 0x27, 0, 0x80, 0, 0]
        let head: [UInt8] = [0, 4] + "MQTT".utf8
        #expect(try MQTTWriter.connect(options) == [0x10, 22] + head + [5, 0x02, 0, 30] + limits + [0, 1, 0x63])
        options.version = .v311
        options.username = "u"
        options.password = "p"
        options.will = BrokerWill(topic: "t", payload: "w".utf8, isRetained: true)
        let rest: [UInt8] = [0, 1, 0x63, 0, 1, 0x74, 0, 1, 0x77, 0, 1, 0x75, 0, 1, 0x70]
        #expect(try MQTTWriter.connect(options) == [0x10, 25] + head + [4, 0xEE, 0, 30] + rest)
        let requests = SubscriptionOptions(keepsRetainFlag: true)
        #expect(
            MQTTWriter.subscribe(to: "a/#", requests, identifier: 258, .v5)
                == [0x82, 9, 1, 2, 0, 0, 3, 0x61, 0x2F, 0x23, 0x09]
        )
        let leftovers = SubscriptionOptions(qos: 0, excludesOwn: true, excludesRetained: true)
        #expect(MQTTWriter.subscribe(to: "a", leftovers, identifier: 1, .v5).last == 0x24)
        #expect(MQTTWriter.subscribe(to: "a", requests, identifier: 1, .v311) == [0x82, 6, 0, 1, 0, 1, 0x61, 1])
        #expect(MQTTWriter.unsubscribe(from: "a", identifier: 1, .v5) == [0xA2, 6, 0, 1, 0, 0, 1, 0x61])
        #expect(MQTTWriter.unsubscribe(from: "a", identifier: 1, .v311) == [0xA2, 5, 0, 1, 0, 1, 0x61])
        #expect(MQTTWriter.disconnect(.malformedPacket, .v5) == [0xE0, 1, 0x81])
        #expect(MQTTWriter.disconnect(.success, .v5) == [0xE0, 0])
        #expect(MQTTWriter.disconnect(.disconnectWithWill, .v5) == [0xE0, 1, 0x04])
        #expect(MQTTWriter.disconnect(.malformedPacket, .v311) == [0xE0, 0])
    }

    /// MQTT 5.0, section 3.1.3.2.
    @Test func `a will has correlation data in MQTT 5 only`() throws {
        var options = MQTTOptions(.v5, clientID: "c")
        options.will = BrokerWill(topic: "t", payload: "w".utf8, isRetained: true, correlation: [1, 2])
        let will: [UInt8] = [0, 1, 0x74, 0, 1, 0x77]
        #expect(try MQTTWriter.connect(options).suffix(15) == [0, 1, 0x63, 5, 0x09, 0, 2, 1, 2] + will)
        options.version = .v311
        #expect(try MQTTWriter.connect(options).suffix(9) == [0, 1, 0x63] + will)
    }

    @Test func `fields too long for a packet are refused`() {
        let long = String(repeating: "x", count: 65_536)
        for topic in ["", "a/+", "#", "a\0", long] {
            #expect(throws: MQTTRefusal.invalidTopic) { try Self.packet(topic, [], isRetained: false).check() }
        }
        let correlation = MessageProperties(correlation: Array(repeating: 0, count: 65_536))
        #expect(throws: MQTTRefusal.tooLong("correlation data")) {
            try Self.packet("a", [], isRetained: false, correlation).check()
        }
        #expect(throws: MQTTRefusal.tooLong("client id")) {
            try MQTTWriter.connect(MQTTOptions(.v311, clientID: long))
        }
    }

    @Test func `identifiers in use are never assigned twice, and they run out`() throws {
        var identifiers = PacketIdentifiers()
        var underWay: [UInt16] = []
        for _ in 0..<200_000 {
            let reserved = identifiers.reserve(.publish)
            let identifier = try #require(reserved)
            if identifier == 0 || underWay.contains(identifier) { Issue.record("\(identifier) is taken") }
            underWay.append(identifier)
            if underWay.count > 20 {
                let isReleased = try identifiers.release(underWay.removeFirst(), of: .publish)
                if !isReleased { Issue.record("it was forgotten") }
            }
        }
        #expect(identifiers.count == underWay.count)
        while identifiers.reserve(.subscribe) != nil {}
        #expect(identifiers.count == 65_535)
        #expect(identifiers.publishCount == underWay.count)
    }

    @Test func `only a sent packet can be acknowledged, once, and as its own kind`() throws {
        var identifiers = PacketIdentifiers()
        let (first, second) = (identifiers.reserve(.publish) ?? 0, identifiers.reserve(.subscribe) ?? 0)
        #expect([first, second] == [1, 2])
        for (identifier, owner) in [(0, .publish), (3, .publish), (first, .subscribe), (second, .publish)]
            as [(UInt16, PacketIdentifiers.Owner)]
        {
            #expect(throws: MQTTViolation.self) { _ = try identifiers.release(identifier, of: owner) }
        }
        let released = [
            try identifiers.release(first, of: .publish), try identifiers.release(first, of: .publish),
            try identifiers.release(second, of: .subscribe),
        ]
        #expect(released == [true, false, true])
        #expect(identifiers.count == 0)
    }
}
