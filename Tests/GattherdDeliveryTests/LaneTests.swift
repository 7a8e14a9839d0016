import Testing

@testable import GattherdDelivery

/// Packets that we write and read without the library.
@Suite struct LaneTests {
    /// MQTT 5.0, 3.3; written by hand from the specification's tables.
    private static let packets: [(PublishPacket, UInt16, DeliverySettings.Version, [UInt8])] = [
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
    func `A message becomes the octets of the specification`(index: Int) {
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
    func `A length takes as many octets as it needs`(payload: Int, length: [UInt8]) {
        var octets: [UInt8] = []
        let packet = Self.packet("ab", Array(repeating: 0, count: payload), isRetained: false)
        var buffer: [UInt8] = []
        packet.append(to: &octets, by: &buffer, identifier: 0, .v311)
        #expect(Array(octets[1...length.count]) == length)
        #expect(octets.count == 1 + length.count + 4 + payload)
    }

    private static let heads: [([UInt8], PacketHead)] = [
        ([], .incomplete(needed: 2)), ([0x40], .incomplete(needed: 2)), ([0x40, 0x80], .incomplete(needed: 3)),
        ([0x40, 2, 0], .incomplete(needed: 4)), ([0xE0, 2, 0x8B], .incomplete(needed: 4)),
        ([0x40, 2, 1, 2], .acknowledgement(identifier: 0x0102, reason: 0, length: 4)),
        ([0x40, 3, 1, 2, 0x10], .acknowledgement(identifier: 0x0102, reason: 0x10, length: 5)),
        ([0x40, 4, 1, 2, 0x97, 0, 0x40], .acknowledgement(identifier: 0x0102, reason: 0x97, length: 6)),
        ([0x40, 1, 1], .other), ([0x41, 2, 1, 2], .other), ([0xD0, 0], .other), ([0, 0], .other),
        ([0x30, 0x80, 0x80, 4], .message), ([0x3B, 1], .message), ([0x34, 9], .malformed), ([0x36, 9], .malformed),
        ([0x30, 0xFF, 0xFF, 0xFF, 0xFF], .malformed), ([0x40, 0x80, 0x80, 0x80], .incomplete(needed: 5)),
    ]

    @Test(arguments: heads.indices)
    func `What comes in is told by its head`(index: Int) {
        let (octets, head) = Self.heads[index]
        #expect(PacketHead(octets.span) == head)
    }

    @Test func `Identifiers never meet those of the library, nor each other, nor are they 0`() {
        var identifiers = PacketIdentifiers()
        var underWay: [UInt16] = []
        for round in 0..<200_000 {
            let foreign = UInt16(truncatingIfNeeded: round / 3)
            let identifier = identifiers.take(awayFrom: foreign)
            // Those of the library are at most sixteen behind its last one.
            let isFree = identifier != 0 && !underWay.contains(identifier) && identifier &- (foreign &- 16) > 16
            if !isFree { Issue.record("\(identifier) is taken") }
            underWay.append(identifier)
            if underWay.count > 20, !identifiers.release(underWay.removeFirst()) { Issue.record("it was forgotten") }
        }
        #expect(identifiers.count == underWay.count)
        let isZeroKnown = identifiers.release(0)
        #expect(!isZeroKnown)
    }
}
