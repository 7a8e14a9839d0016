import GattherdMachines
import Testing

@Suite struct LeaseElectionTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bids: [LeaseBid]
        var owner: String?
        var previous: String?
        let winner: String?

        init(_ rule: String, _ bids: [LeaseBid], owner: String? = nil, previous: String? = nil, _ winner: String?) {
            (testDescription, self.bids, self.owner) = (rule, bids, owner)
            (self.previous, self.winner) = (previous, winner)
        }
    }

    private static func bid(
        _ gateway: String,
        _ standing: LeaseBid.Standing,
        _ rssi: Int? = nil,
        problem: String? = nil
    ) -> LeaseBid {
        LeaseBid(gateway: gateway, standing: standing, rssi: rssi, problem: problem)
    }

    static let rows = [
        Row("a free device goes to the strongest", [bid("a", .heard, -80), bid("b", .heard, -70)], "b"),
        Row("of equal gateways the first in the alphabet wins", [bid("b", .heard, -70), bid("a", .steady, -70)], "a"),
        Row("a free device that nobody hears goes to nobody", [bid("a", .silent, -80), bid("b", .gone)], nil),
        Row("a link wins over any strength", [bid("a", .linked), bid("b", .steady, -30)], "a"),
        Row(
            "constraints come before strength",
            [bid("a", .steady, -30, problem: "full"), bid("b", .heard, -90)],
            "b"
        ),
        Row(
            "15 dB more are too few for a challenger",
            [bid("a", .steady, -70), bid("b", .steady, -55)],
            owner: "a",
            "a"
        ),
        Row("16 dB more are enough", [bid("a", .steady, -70), bid("b", .steady, -54)], owner: "a", "b"),
        Row(
            "a challenger must be heard several times",
            [bid("a", .steady, -70), bid("b", .heard, -50)],
            owner: "a",
            "a"
        ),
        Row(
            "the previous owner comes back with 6 dB more",
            [bid("a", .steady, -70), bid("b", .steady, -64)],
            owner: "a",
            previous: "b",
            "b"
        ),
        Row(
            "the previous owner does not come back with 5 dB more",
            [bid("a", .steady, -70), bid("b", .steady, -65)],
            owner: "a",
            previous: "b",
            "a"
        ),
        Row(
            "a silent owner is replaced by any gateway that hears",
            [bid("a", .silent, -50), bid("b", .heard, -85)],
            owner: "a",
            "b"
        ),
        Row("a silent owner stays if nobody hears", [bid("a", .silent, -50)], owner: "a", "a"),
        Row("an owner that is gone gives the lease up", [bid("a", .gone)], owner: "a", nil),
        Row("an owner without a bid is gone", [bid("b", .heard, -90)], owner: "a", "b"),
        Row(
            "an owner with the link stays, as its strength is unknown",
            [bid("a", .linked), bid("b", .steady, -40)],
            owner: "a",
            "a"
        ),
        Row(
            "an owner with the link gives up for a device that still advertises and is stronger elsewhere",
            [bid("a", .linked, -80), bid("b", .steady, -60)],
            owner: "a",
            "b"
        ),
        Row("a hold of the owner stands", [bid("a", .held), bid("b", .steady, -40)], owner: "a", "a"),
        Row(
            "an owner with a problem stays until another gateway hears",
            [bid("a", .heard, -60, problem: "its link failed")],
            owner: "a",
            "a"
        ),
        Row(
            "an owner with a problem is replaced",
            [bid("a", .heard, -60, problem: "its link failed"), bid("b", .heard, -80)],
            owner: "a",
            "b"
        ),
    ]

    @Test(arguments: rows) func `an owner is chosen by constraints, then by strength`(row: Row) {
        let election = LeaseElection(row.bids, owner: row.owner, previous: row.previous)
        #expect(election.winner == row.winner, "\(election.reason)")
        let reversed = LeaseElection(row.bids.reversed(), owner: row.owner, previous: row.previous)
        #expect(reversed == election)
    }

    @Test func `an owner that has lost its link gives up the lease for a smaller difference, and names the cause`() {
        let bids = [Self.bid("a", .steady, -80), Self.bid("b", .steady, -76)]
        let usual = LeaseElection(bids, owner: "a")
        #expect(usual.winner == "a" && usual.cause == nil)
        let lost = LeaseElection(bids, owner: "a", loss: .late)
        #expect(lost.winner == "b" && lost.cause == .stronger)
        #expect(LeaseElection(bids, owner: "a", loss: .recent).winner == "a")
        let deaf = [Self.bid("a", .heard), Self.bid("b", .steady, -85)]
        #expect(LeaseElection(deaf, owner: "a").winner == "a")
        #expect(LeaseElection(deaf, owner: "a", loss: .recent).winner == "b")
        let silent = LeaseElection([Self.bid("a", .silent, -50), Self.bid("b", .heard, -85)], owner: "a")
        #expect(silent.cause == .silent)
    }

    @Test func `the signal strength is a mean of advertisements, which starts over after an absence`() {
        var signal = SmoothedSignal()
        for (number, rssi) in [-60, -70, -50, -60].enumerated() { signal.record(rssi, at: .seconds(number)) }
        #expect(signal.level == -60 && signal.isSteady)
        #expect(!signal.isSilent(at: .seconds(4)) && signal.isSilent(at: .seconds(20)))
        #expect(signal.isGone(at: .seconds(20)))
        signal.record(-90, at: .seconds(20))
        #expect(signal.level == -90 && !signal.isSteady)
    }

    @Test func `the window follows the advertising interval, also of a device that advertises seldom`() {
        var signal = SmoothedSignal()
        for number in 0..<20 { signal.record(-60, at: .seconds(number * 600)) }
        #expect(signal.window > .seconds(1800) && signal.window <= .seconds(2400))
        var fast = SmoothedSignal()
        for number in 0..<20 { fast.record(-60, at: .milliseconds(number * 100)) }
        #expect(fast.window == .seconds(2))
        fast.record(-60, at: .seconds(3600))
        #expect(fast.window == .seconds(2))
    }
}
