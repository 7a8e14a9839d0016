import Testing

@testable import GattherdMachines

@Suite struct SentPacketsTests {
    private static func packets(_ identifiers: ClosedRange<UInt16>) -> SentPackets {
        var packets = SentPackets()
        for identifier in identifiers {
            packets.append(SentPackets.Packet(topic: "t\(identifier)", identifier: identifier, origin: .message))
        }
        return packets
    }

    @Test func `an acknowledgement removes its packet and all earlier ones`() throws {
        var packets = Self.packets(1...5)
        packets.remove(through: try #require(packets.position(of: 3)))
        #expect(packets.unanswered.map(\.topic) == ["t4", "t5"])
        #expect(packets.position(of: 2) == nil)
        packets.remove(through: try #require(packets.position(of: 5)))
        #expect(packets.unanswered.isEmpty)
    }

    @Test func `the oldest packets are dropped beyond the capacity`() {
        let last = UInt16(SentPackets.capacity * 3)
        let packets = Self.packets(1...last)
        #expect(packets.unanswered.count == SentPackets.capacity)
        #expect(packets.unanswered.last?.identifier == last)
    }
}

@Suite struct SessionProofTests {
    private var proof = SessionProof(refusals: 3, during: .seconds(20))

    @Test mutating func `refusals count only with acceptances of other topics in between`() {
        var proven = (0..<100).map { proof.refused("a", at: .seconds($0)) }
        #expect(!proven.contains(true))
        proven = []
        for second in 100..<103 {
            proof.accepted("b")
            proven.append(proof.refused("a", at: .seconds(second)))
        }
        #expect(proven == [false, true, true])
    }

    @Test mutating func `refusals within a short time prove nothing`() {
        var proven: [Bool] = []
        for second in [0, 1, 2, 19, 20] {
            proof.accepted("b")
            proven.append(proof.refused("a", at: .seconds(second)))
        }
        #expect(proven == [false, false, false, false, true])
    }

    @Test mutating func `a topic that was accepted once has no refusals`() {
        for second in 0..<30 {
            proof.accepted(second == 29 ? "a" : "b")
            _ = proof.refused("a", at: .seconds(second))
        }
        proof.accepted("b")
        let isProven = proof.refused("a", at: .seconds(31))
        #expect(!isProven)
    }

    @Test mutating func `an accepted topic proves that the broker accepts other topics, not that topic itself`() {
        proof.accepted("a")
        #expect(proof.isAccepting(without: "b") && !proof.isAccepting(without: "a"))
        proof.accepted("b")
        #expect(proof.isAccepting(without: "a"))
        proof.removeAll()
        #expect(!proof.isAccepting(without: "c"))
    }

    @Test mutating func `a broker counts as accepting nothing from the first refusal after an acceptance`() {
        _ = proof.refused("a", at: .seconds(1))
        var starts = [1, 5].map { proof.acceptsNothing(at: .seconds($0)) }
        proof.accepted("b")
        starts.append(proof.acceptsNothing(at: .seconds(9)))
        #expect(starts == [.seconds(1), .seconds(1), .seconds(9)])
    }
}
