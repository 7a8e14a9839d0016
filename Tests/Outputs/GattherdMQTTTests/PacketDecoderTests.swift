import Testing

@testable import GattherdMQTT

/// Packets of a broker, well formed and malformed.
@Suite(.timeLimit(.minutes(1)))
struct PacketDecoderTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let octets: [UInt8]
        var version = MQTTVersion.v5
    }

    struct Good: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let octets: [UInt8]
        var version = MQTTVersion.v5
        let packet: InboundPacket
    }

    /// The packets of the octets, passed in pieces of `size`.
    static func decode(_ octets: [UInt8], _ version: MQTTVersion, by size: Int) throws(MQTTViolation) -> [InboundPacket]
    {
        var decoder = PacketDecoder(version)
        var packets: [InboundPacket] = []
        var rest = octets[...]
        while !rest.isEmpty {
            try decoder.decode(rest.prefix(size)) { packets.append($0) }
            rest = rest.dropFirst(size)
        }
        return packets
    }

    private static func message(_ payload: [UInt8], retained: Bool = false) -> BrokerMessage {
        BrokerMessage(topic: "a", payload: payload, length: payload.count, isRetained: retained)
    }

    private static var everything: BrokerLimits {
        var limits = BrokerLimits()
        limits.receiveMaximum = 20
        limits.keepalive = 60
        limits.canRetain = false
        limits.takesQoS1 = true
        limits.topicAliases = 10
        limits.maximumPacket = 1024
        return limits
    }

    static let good: [Good] = [
        Good(
            testDescription: "CONNACK",
            octets: [0x20, 3, 0, 0, 0],
            packet: .connectAnswer(.success, text: nil, .init())
        ),
        Good(
            testDescription: "CONNACK with limits",
            octets: [0x20, 21, 0, 0, 18, 0x21, 0, 20, 0x13, 0, 60, 0x25, 0, 0x22, 0, 10, 0x27, 0, 0, 4, 0, 0x24, 1],
            packet: .connectAnswer(.success, text: nil, everything)
        ),
        Good(
            testDescription: "CONNACK with words",
            octets: [0x20, 9, 0, 0x87, 6, 0x1F, 0, 3, 0x6E, 0x6F, 0x21],
            packet: .connectAnswer(.notAuthorized, text: "no!", .init())
        ),
        Good(
            testDescription: "CONNACK of a broker that knows no MQTT 5",
            octets: [0x20, 2, 0, 1],
            packet: .connectAnswer(.unsupportedProtocolVersion, text: nil, .init())
        ),
        Good(
            testDescription: "CONNACK of MQTT 3.1.1",
            octets: [0x20, 2, 0, 4],
            version: .v311,
            packet: .connectAnswer(.badUserNameOrPassword, text: nil, .init())
        ),
        Good(testDescription: "PUBACK", octets: [0x40, 2, 1, 2], packet: .acknowledgement(identifier: 258, .success)),
        Good(
            testDescription: "PUBACK with a reason",
            octets: [0x40, 3, 1, 2, 0x10],
            packet: .acknowledgement(identifier: 258, .noMatchingSubscribers)
        ),
        Good(
            testDescription: "PUBACK with properties",
            octets: [0x40, 15, 0, 1, 0x97, 11, 0x1F, 0, 1, 0x61, 0x26, 0, 1, 0x62, 0, 1, 0x63],
            packet: .acknowledgement(identifier: 1, .quotaExceeded)
        ),
        Good(
            testDescription: "PUBACK of MQTT 3.1.1",
            octets: [0x40, 2, 0, 7],
            version: .v311,
            packet: .acknowledgement(identifier: 7, .success)
        ),
        Good(
            testDescription: "SUBACK",
            octets: [0x90, 4, 0, 3, 0, 1],
            packet: .subscribed(identifier: 3, MQTTReason(rawValue: 1))
        ),
        Good(
            testDescription: "SUBACK of MQTT 3.1.1, refused",
            octets: [0x90, 3, 0, 3, 0x80],
            version: .v311,
            packet: .subscribed(identifier: 3, .unspecified)
        ),
        Good(testDescription: "UNSUBACK", octets: [0xB0, 4, 0, 3, 0, 0x11], packet: .unsubscribed(identifier: 3)),
        Good(
            testDescription: "UNSUBACK of MQTT 3.1.1",
            octets: [0xB0, 2, 0, 3],
            version: .v311,
            packet: .unsubscribed(identifier: 3)
        ),
        Good(testDescription: "PINGRESP", octets: [0xD0, 0], packet: .pong),
        Good(testDescription: "PINGRESP with a length that is too long", octets: [0xD0, 0x80, 0], packet: .pong),
        Good(testDescription: "DISCONNECT", octets: [0xE0, 0], packet: .disconnect(.success, text: nil)),
        Good(
            testDescription: "DISCONNECT with a reason",
            octets: [0xE0, 1, 0x8E],
            packet: .disconnect(.sessionTakenOver, text: nil)
        ),
        Good(
            testDescription: "DISCONNECT to another server",
            octets: [0xE0, 6, 0x9D, 4, 0x1C, 0, 1, 0x62],
            packet: .disconnect(.serverMoved, text: "b")
        ),
        Good(
            testDescription: "PUBLISH with QoS 0",
            octets: [0x31, 6, 0, 1, 0x61, 0, 8, 9],
            packet: .message(message([8, 9], retained: true), identifier: 0)
        ),
        Good(
            testDescription: "PUBLISH with QoS 0, again; RabbitMQ 3 forwards it",
            octets: [0x38, 5, 0, 1, 0x61, 0, 8],
            packet: .message(message([8]), identifier: 0)
        ),
        Good(
            testDescription: "PUBLISH with QoS 1, again",
            octets: [0x3A, 6, 0, 1, 0x61, 0, 5, 0],
            packet: .message(message([]), identifier: 5)
        ),
        Good(
            testDescription: "PUBLISH of MQTT 3.1.1",
            octets: [0x30, 4, 0, 1, 0x61, 0x23],
            version: .v311,
            packet: .message(message([0x23]), identifier: 0)
        ),
        Good(
            testDescription: "PUBLISH with every property",
            octets: [
                0x30, 35, 0, 1, 0x61, 30, 0x01, 1, 0x02, 0, 0, 0, 9, 0x03, 0, 1, 0x74, 0x08, 0, 1, 0x72, 0x09, 0, 2, 0,
                1,
                0x0B, 0x81, 1, 0x0B, 5, 0x26, 0, 0, 0, 0, 7,
            ],
            packet: .message(
                BrokerMessage(
                    topic: "a",
                    payload: [7],
                    length: 1,
                    isRetained: false,
                    responseTopic: "r",
                    correlation: [0, 1]
                ),
                identifier: 0
            )
        ),
    ]

    /// Properties that a broker may forward as any of its clients wrote them.
    @Test(
        arguments: [
            ("", [0x30, 7, 0, 1, 0x61, 3, 0x08, 0, 0]), ("#", [0x30, 8, 0, 1, 0x61, 4, 0x08, 0, 1, 0x23]),
            (nil, [0x30, 6, 0, 1, 0x61, 2, 0x01, 2]),
            (nil, [0x30, 8, 0, 1, 0x61, 4, 0x03, 0, 1, 0xFF]), ("", [0x30, 8, 0, 1, 0x61, 4, 0x08, 0, 1, 0xFF]),
            ("\0", [0x30, 8, 0, 1, 0x61, 4, 0x08, 0, 1, 0]),
            (nil, [0x30, 11, 0, 1, 0x61, 7, 0x26, 0, 1, 0xC0, 0, 1, 0]),
        ] as [(String?, [UInt8])]
    )
    func `properties that another client got wrong do not end the session`(
        responseTopic: String?,
        octets: [UInt8]
    ) throws {
        var message = Self.message([])
        message.responseTopic = responseTopic
        #expect(try Self.decode(octets, .v5, by: octets.count) == [.message(message, identifier: 0)])
    }

    /// Topics that are not UTF-8, or have a surrogate, a NUL or a wildcard; RabbitMQ 3 forwards them.
    @Test(
        arguments: [[0xFF], [0xED, 0xA0, 0x80], [0], [0x23], [0x61, 0x2F, 0x2B]] as [[UInt8]],
        [MQTTVersion.v5, .v311]
    )
    func `a message on a topic that no message can have does not end the session`(
        topic: [UInt8],
        version: MQTTVersion
    ) throws {
        let properties: [UInt8] = version == .v5 ? [0] : []
        let body = [0, UInt8(topic.count)] + topic + [0, 5] + properties + [7, 8]
        let octets = [0x32, UInt8(body.count)] + body + [0xD0, 0]
        let message = BrokerMessage(topic: "", payload: [], length: 2, isRetained: false)
        for size in 1...octets.count {
            #expect(try Self.decode(octets, version, by: size) == [.message(message, identifier: 5), .pong])
        }
    }

    @Test(arguments: good)
    func `a packet is decoded however it is split`(row: Good) throws {
        for size in 1...row.octets.count {
            let octets = row.octets + row.octets
            #expect(try Self.decode(octets, row.version, by: size) == [row.packet, row.packet])
        }
    }

    @Test(arguments: good)
    func `a truncated packet is incomplete`(row: Good) throws {
        for count in 0..<row.octets.count {
            #expect(try Self.decode(Array(row.octets.prefix(count)), row.version, by: 3) == [])
        }
    }

    /// Malformed packets, including bytes that abort libmosquitto 2.0.11.
    static let malformed: [Row] = [
        Row(testDescription: "CONNACK with an unknown property", octets: [0x20, 5, 0, 0, 2, 0x7F, 0]),
        Row(testDescription: "PUBACK with an unknown property", octets: [0x40, 6, 0, 1, 0, 2, 0x7F, 0]),
        Row(testDescription: "SUBACK with an unknown property", octets: [0x90, 6, 0, 1, 2, 0x7F, 0, 0]),
        Row(testDescription: "UNSUBACK with an unknown property", octets: [0xB0, 6, 0, 1, 2, 0x7F, 0, 0]),
        Row(testDescription: "PUBLISH with an unknown property", octets: [0x30, 6, 0, 1, 0x61, 2, 0x7F, 0]),
        Row(testDescription: "DISCONNECT with an unknown property", octets: [0xE0, 4, 0, 2, 0x7F, 0]),
        Row(testDescription: "a property of a huge number", octets: [0x20, 6, 0, 0, 3, 0xFF, 0xFF, 0x7F]),
        Row(testDescription: "a property of another packet", octets: [0x20, 6, 0, 0, 3, 0x23, 0, 1]),
        Row(testDescription: "DISCONNECT with a session expiry", octets: [0xE0, 7, 0, 5, 0x11, 0, 0, 0, 1]),
        Row(testDescription: "properties that end too early", octets: [0x20, 5, 0, 0, 2, 0x21, 0]),
        Row(testDescription: "properties longer than the packet", octets: [0x20, 4, 0, 0, 9, 0x21]),
        Row(testDescription: "a text longer than the properties", octets: [0x20, 7, 0, 0, 4, 0x1F, 0, 2, 0x61]),
        Row(testDescription: "CONNACK without properties", octets: [0x20, 2, 0, 0]),
        Row(testDescription: "CONNACK with reserved flags", octets: [0x20, 3, 2, 0, 0]),
        Row(testDescription: "CONNACK of one byte", octets: [0x20, 1, 0]),
        Row(testDescription: "CONNACK with a rest", octets: [0x20, 4, 0, 0, 0, 0]),
        Row(testDescription: "CONNACK with a rest in MQTT 3.1.1", octets: [0x20, 3, 0, 0, 0], version: .v311),
        Row(testDescription: "PUBACK of one byte", octets: [0x40, 1, 0]),
        Row(testDescription: "PUBACK with a rest", octets: [0x40, 5, 0, 1, 0, 0, 0]),
        Row(testDescription: "PUBACK with a reason in MQTT 3.1.1", octets: [0x40, 3, 0, 1, 0], version: .v311),
        Row(testDescription: "PUBACK with flags", octets: [0x41, 2, 0, 1]),
        Row(testDescription: "SUBACK without a reason", octets: [0x90, 3, 0, 1, 0]),
        Row(testDescription: "SUBACK with two reasons", octets: [0x90, 5, 0, 1, 0, 0, 0]),
        Row(testDescription: "SUBACK with two reasons in MQTT 3.1.1", octets: [0x90, 4, 0, 1, 0, 0], version: .v311),
        Row(testDescription: "UNSUBACK with a reason in MQTT 3.1.1", octets: [0xB0, 3, 0, 1, 0], version: .v311),
        Row(testDescription: "UNSUBACK without a reason", octets: [0xB0, 3, 0, 1, 0]),
        Row(testDescription: "PINGRESP with a content", octets: [0xD0, 1, 0]),
        Row(testDescription: "PINGRESP with flags", octets: [0xD1, 0]),
        Row(testDescription: "DISCONNECT with flags", octets: [0xE2, 0]),
        Row(testDescription: "type 0", octets: [0, 0]),
        Row(testDescription: "a length of five bytes", octets: [0xD0, 0x80, 0x80, 0x80, 0x80]),
        Row(testDescription: "PUBLISH of QoS 3", octets: [0x36, 6, 0, 1, 0x61, 0, 5, 0]),
        Row(testDescription: "PUBLISH without a topic's length", octets: [0x30, 1, 0]),
        Row(testDescription: "PUBLISH with a topic beyond its end", octets: [0x30, 3, 0, 9, 0x61]),
        Row(testDescription: "PUBLISH without an identifier", octets: [0x32, 4, 0, 1, 0x61, 0]),
        Row(testDescription: "PUBLISH without properties", octets: [0x30, 3, 0, 1, 0x61]),
        Row(testDescription: "PUBLISH with properties beyond its end", octets: [0x30, 4, 0, 1, 0x61, 9]),
        Row(testDescription: "properties with a length without end", octets: [0x30, 5, 0, 1, 0x61, 0x80, 0x80]),
        Row(
            testDescription: "properties' length of five bytes",
            octets: [0x30, 9, 0, 1, 0x61, 0x80, 0x80, 0x80, 0x80, 1, 0]
        ),
        Row(testDescription: "a reason that is not UTF-8", octets: [0xE0, 6, 0x80, 4, 0x1F, 0, 1, 0xC0]),
    ]

    static let protocolErrors: [Row] = [
        Row(testDescription: "a property twice", octets: [0x20, 9, 0, 0, 6, 0x21, 0, 1, 0x21, 0, 1]),
        Row(testDescription: "a receive maximum of 0", octets: [0x20, 6, 0, 0, 3, 0x21, 0, 0]),
        Row(testDescription: "a maximum packet of 0", octets: [0x20, 8, 0, 0, 5, 0x27, 0, 0, 0, 0]),
        Row(testDescription: "a maximum QoS of 2", octets: [0x20, 5, 0, 0, 2, 0x24, 2]),
        Row(testDescription: "a flag of 2", octets: [0x20, 5, 0, 0, 2, 0x25, 2]),
        Row(testDescription: "a session that we did not ask for", octets: [0x20, 3, 1, 0, 0]),
        Row(testDescription: "PUBACK of packet 0", octets: [0x40, 2, 0, 0]),
        Row(testDescription: "SUBACK of packet 0", octets: [0x90, 4, 0, 0, 0, 0]),
        Row(testDescription: "SUBACK that grants QoS 2", octets: [0x90, 4, 0, 1, 0, 2]),
        Row(testDescription: "PUBLISH of packet 0", octets: [0x32, 6, 0, 1, 0x61, 0, 0, 0]),
        Row(testDescription: "PUBLISH of QoS 2", octets: [0x34, 6, 0, 1, 0x61, 0, 5, 0]),
        Row(testDescription: "PUBLISH without a topic", octets: [0x30, 3, 0, 0, 0]),
        Row(testDescription: "PUBLISH without a topic in MQTT 3.1.1", octets: [0x30, 3, 0, 0, 0], version: .v311),
        Row(testDescription: "a subscription identifier of 0", octets: [0x30, 6, 0, 1, 0x61, 2, 0x0B, 0]),
        Row(testDescription: "DISCONNECT in MQTT 3.1.1", octets: [0xE0, 0], version: .v311),
        Row(testDescription: "AUTH", octets: [0xF0, 4, 0x18, 2, 0x7F, 0]),
        Row(testDescription: "CONNECT", octets: [0x10, 0]),
        Row(testDescription: "PUBREC", octets: [0x50, 2, 0, 1]),
        Row(testDescription: "PUBREL", octets: [0x62, 2, 0, 1]),
        Row(testDescription: "PUBCOMP", octets: [0x70, 2, 0, 1]),
        Row(testDescription: "SUBSCRIBE", octets: [0x82, 0]),
        Row(testDescription: "PINGREQ", octets: [0xC0, 0]),
    ]

    static let others: [(MQTTReason, [UInt8])] = [
        (.topicAliasInvalid, [0x30, 7, 0, 1, 0x61, 3, 0x23, 0, 1]),
        (.topicAliasInvalid, [0x30, 6, 0, 0, 3, 0x23, 0, 1]),
        (.packetTooLarge, [0x20, 0x81, 0x80, 0x10]), (.packetTooLarge, [0x90, 0xFF, 0xFF, 0xFF, 0x7F]),
    ]

    @Test(arguments: malformed)
    func `a malformed packet is reported as such, however it is split`(row: Row) {
        expect(.malformedPacket, row.octets, row.version)
    }

    @Test(arguments: protocolErrors)
    func `a packet that may not come is a protocol error, however it is split`(row: Row) {
        expect(.protocolError, row.octets, row.version)
    }

    @Test(arguments: others.indices)
    func `MQTT 5 has further reasons`(index: Int) {
        expect(Self.others[index].0, Self.others[index].1, .v5)
    }

    private func expect(_ reason: MQTTReason, _ octets: [UInt8], _ version: MQTTVersion) {
        for size in 1...octets.count {
            do throws(MQTTViolation) {
                let packets = try Self.decode(octets, version, by: size)
                Issue.record("understood as \(packets)")
            } catch {
                #expect(error.reason == reason, "\(error)")
            }
        }
    }

    @Test func `packets before a violation are decoded`() {
        var decoder = PacketDecoder(.v5)
        var packets: [InboundPacket] = []
        #expect(throws: MQTTViolation.self) {
            try decoder.decode([0x40, 2, 0, 1, 0xD0, 0, 0, 0, 0x40, 2, 0, 2][...]) { packets.append($0) }
        }
        #expect(packets == [.acknowledgement(identifier: 1, .success), .pong])
    }
}
