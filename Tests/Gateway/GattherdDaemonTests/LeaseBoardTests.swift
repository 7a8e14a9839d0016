import GattherdMachines
import GattherdModel
import Testing

@testable import GattherdDaemon

@Suite struct LeaseBoardTests {
    private static let time = Timestamp(microseconds: 1_795_230_000_000_000)

    private func entry(
        _ owner: String?,
        epoch: Int64 = 7,
        until: ContinuousClock.Instant? = nil,
        isElsewhere: Bool = false
    ) -> LeaseBoard.Entry {
        let status = LeaseStatus(role: .owner, owner: owner, epoch: epoch, reason: "", bids: [])
        return LeaseBoard.Entry(status, until: until, isOwnedElsewhere: isElsewhere)
    }

    private func request(epoch: Int64? = nil, transaction: String? = nil) -> ControlRequest {
        var request = ControlRequest(device: "lamp", control: "level", value: .integer(1), transaction: transaction)
        request.epoch = epoch
        return request
    }

    @Test func `a control is refused unless the lease is this gateway's and has not ended`() {
        let board = LeaseBoard()
        #expect(board.refusal(of: request()) == .notOwner(device: "lamp", owner: nil))
        board.update(["lamp": entry("west", until: .now + .seconds(30))], problem: nil, at: Self.time)
        #expect(board.refusal(of: request()) == nil)
        #expect(board.refusal(of: request(epoch: 7)) == nil)
        #expect(board.refusal(of: request(epoch: 6)) == .otherEpoch(present: 7))
        board.update(["lamp": entry("west", until: .now - .seconds(1))], problem: nil, at: Self.time)
        #expect(board.refusal(of: request(epoch: 7)) == .notOwner(device: "lamp", owner: nil))
        board.update(["lamp": entry("east", isElsewhere: true)], problem: nil, at: Self.time)
        #expect(board.refusal(of: request()) == .notOwner(device: "lamp", owner: "east"))
        var local = request()
        local.isLocal = true
        #expect(board.refusal(of: local) == nil)
    }

    @Test func `a transaction of an epoch is carried out once, and again only if it was not written`() {
        let board = LeaseBoard()
        #expect(board.begin(request(epoch: 7, transaction: "1")))
        #expect(!board.begin(request(epoch: 7, transaction: "1")))
        #expect(board.begin(request(epoch: 8, transaction: "1")))
        #expect(board.begin(request(transaction: "1")) && board.begin(request(transaction: "1")))
        board.cancel(request(epoch: 7, transaction: "1"))
        #expect(board.begin(request(epoch: 7, transaction: "1")))
        for number in 0..<1000 { #expect(board.begin(request(epoch: 9, transaction: "\(number)"))) }
        #expect(!board.begin(request(epoch: 9, transaction: "999")))
    }

    @Test func `readings of advertisements are published by the owner at their time`() {
        let board = LeaseBoard()
        func at(_ seconds: Int) -> Timestamp { Self.time.advanced(by: .seconds(seconds)) }
        #expect(board.publishes("tag", at: at(0)))
        board.update(["tag": entry("east", isElsewhere: true)], problem: nil, at: at(10))
        board.update(["tag": entry("west", until: .now)], problem: nil, at: at(20))
        board.update(["tag": entry("east", isElsewhere: true)], problem: nil, at: at(30))
        board.update(["tag": entry(nil)], problem: nil, at: at(40))
        #expect([5, 15, 25, 35, 45].map { board.publishes("tag", at: at($0)) } == [true, false, true, false, true])
        board.update([:], problem: nil, at: at(50))
        #expect(board.publishes("tag", at: at(15)))
    }

    @Test func `after the clock is set back the current owner publishes`() {
        let board = LeaseBoard()
        func at(_ seconds: Int) -> Timestamp { Self.time.advanced(by: .seconds(seconds)) }
        board.update(["tag": entry("east", isElsewhere: true)], problem: nil, at: at(3600))
        board.update(["tag": entry("east", isElsewhere: true)], problem: nil, at: at(10))
        #expect(!board.publishes("tag", at: at(20)))
        board.update(["tag": entry("west", until: .now)], problem: nil, at: at(30))
        board.update(["tag": entry("west", until: .now)], problem: nil, at: at(15))
        #expect(board.publishes("tag", at: at(20)))
    }

    @Test func `advertisements between two reads are bounded`() {
        let board = LeaseBoard()
        let sighting = LeaseBoard.Sighting(address: "a", adapter: "b", rssi: -60)
        for _ in 0..<10_000 { board.record(sighting) }
        #expect(board.drainSightings().count == 4096)
        #expect(board.drainSightings().isEmpty)
    }

    @Test func `held leases, hand-overs and refused controls are counted`() {
        let board = LeaseBoard()
        #expect(board.summary.answerAge == nil && board.summary.held == 0)
        board.update(["lamp": entry("west", until: .now + .seconds(30))], problem: "away", at: Self.time)
        board.recordAnswer()
        board.recordClaim()
        board.recordHandover(.silent)
        _ = board.refusal(of: request(epoch: 6))
        for _ in 0..<2 { _ = board.begin(request(epoch: 7, transaction: "1")) }
        board.update(["lamp": entry("east", isElsewhere: true)], problem: "away", at: Self.time)
        _ = board.refusal(of: request())
        let summary = board.summary
        #expect(summary.held == 0 && summary.claims == 1 && summary.error == "away" && summary.answerAge != nil)
        #expect(summary.handovers["silent"] == 1 && summary.handovers["stronger"] == 0)
        #expect(summary.refusedControls == ["not_owner": 1, "other_epoch": 1, "repeated": 1])
    }
}
