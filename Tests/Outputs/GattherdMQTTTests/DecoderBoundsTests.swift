import GattherdMachines
import Testing

@testable import GattherdMQTT

/// Octets of any kind and of any length.
@Suite(.timeLimit(.minutes(2)))
struct DecoderBoundsTests {
    /// A remaining length as MQTT writes it.
    private static func length(_ length: Int) -> [UInt8] {
        var octets: [UInt8] = []
        MQTTWriter.append(integer: length, to: &octets)
        return octets
    }

    private static func word(_ word: Int) -> [UInt8] { [UInt8(word >> 8), UInt8(word & 0xFF)] }

    @Test(arguments: [MQTTVersion.v5, .v311], [10_000_000, 200_000_000])
    func `a huge message is counted and skipped, and uses little memory`(version: MQTTVersion, size: Int) throws {
        let head: [UInt8] = [0, 1, 0x61, 0, 5] + (version == .v5 ? [0] : [])
        var decoder = PacketDecoder(version)
        var packets: [InboundPacket] = []
        try decoder.decode(([0x32] + Self.length(head.count + size) + head)[...]) { packets.append($0) }
        let chunk = [UInt8](repeating: 7, count: 16_384)
        var left = size
        while left > 0 {
            try decoder.decode(chunk.prefix(left)) { packets.append($0) }
            left -= min(left, chunk.count)
            if decoder.memory > 20_000 { Issue.record("\(decoder.memory) bytes are kept") }
        }
        try decoder.decode([0xD0, 0][...]) { packets.append($0) }
        let message = BrokerMessage(
            topic: "a",
            payload: Array(repeating: 7, count: BrokerMessage.maximum + 1),
            length: size,
            isRetained: false
        )
        #expect(packets == [.message(message, identifier: 5), .pong])
    }

    @Test func `a message with huge properties is skipped and can be acknowledged`() throws {
        let count = PacketDecoder.headLimit + 1
        let body = [0, 1, 0x61, 0, 5] + Self.length(count) + Array(repeating: 0x26, count: count) + [1, 2, 3]
        let octets = [0x32] + Self.length(body.count) + body + [0xD0, 0]
        for size in [1, 1000, octets.count] {
            let packets = try PacketDecoderTests.decode(octets, .v5, by: size)
            let message = BrokerMessage(topic: "", payload: [], length: 3, isRetained: false)
            #expect(packets == [.message(message, identifier: 5), .pong])
        }
    }

    @Test func `the longest topics are decoded`() throws {
        let topic = String(repeating: "a/", count: 32_766) + "a"
        let head = Self.word(topic.utf8.count) + topic.utf8
        let octets = [0x30] + Self.length(head.count + 1) + head + [9]
        let packets = try PacketDecoderTests.decode(octets, .v311, by: 1000)
        #expect(
            packets == [
                .message(BrokerMessage(topic: topic, payload: [9], length: 1, isRetained: false), identifier: 0)
            ]
        )
    }

    /// All valid packets with changed, inserted and removed bytes, and random bytes.
    @Test func `any octets are packets or a violation, the same however they are split`() {
        var random = SplitMix64(seed: 23)
        for round in 0..<40_000 {
            var octets = PacketDecoderTests.good.randomElement(using: &random)?.octets ?? []
            octets += PacketDecoderTests.good.randomElement(using: &random)?.octets ?? []
            for _ in 0..<Int.random(in: 0...3, using: &random) where !octets.isEmpty {
                let index = Int.random(in: 0..<octets.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: octets[index] = .random(in: .min ... .max, using: &random)
                case 1: octets.insert(.random(in: .min ... .max, using: &random), at: index)
                default: octets.remove(at: index)
                }
            }
            if round.isMultiple(of: 7) {
                octets = (0..<40).map { _ in .random(in: .min ... .max, using: &random) }
            }
            let version = Bool.random(using: &random) ? MQTTVersion.v5 : .v311
            let whole = outcome(octets, version, by: { octets.count })
            let cut = outcome(octets, version, by: { Int.random(in: 1...4, using: &random) })
            if whole != cut { Issue.record("\(octets): \(whole), \(cut)") }
        }
    }

    private struct Outcome: Equatable {
        var packets: [InboundPacket] = []
        var violation: MQTTViolation?
    }

    private func outcome(_ octets: [UInt8], _ version: MQTTVersion, by size: () -> Int) -> Outcome {
        var decoder = PacketDecoder(version)
        var outcome = Outcome()
        var rest = octets[...]
        while !rest.isEmpty {
            let count = max(1, size())
            do throws(MQTTViolation) {
                try decoder.decode(rest.prefix(count)) { outcome.packets.append($0) }
            } catch {
                outcome.violation = error
                return outcome
            }
            rest = rest.dropFirst(count)
        }
        return outcome
    }
}
