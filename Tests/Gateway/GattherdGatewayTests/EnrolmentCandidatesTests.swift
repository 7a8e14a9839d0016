import GattherdHistory
import GattherdModel
import Testing

@testable import GattherdGateway

@Suite("Devices that were never ready") struct EnrolmentCandidatesTests {
    private let start = SuspendingClock.now

    private func second(_ count: Int) -> SuspendingClock.Instant { start.advanced(by: .seconds(count)) }

    private func look(_ number: Int, wasReady: Bool = false, hadItsChance: Bool = true) -> EnrolmentCandidates.Look {
        EnrolmentCandidates.Look(device: "d\(number)", wasReady: wasReady, hadItsChance: hadItsChance)
    }

    /// Offers devices one by one, and gives the numbers of those that were admitted.
    private func offer(_ newcomers: inout EnrolmentCandidates, _ numbers: Range<Int>, at time: Int) -> [Int] {
        numbers.filter { number in
            newcomers.admit("d\(number)", at: "a\(number)", by: "rule", now: second(time)) == .admitted
        }
    }

    @Test func `A device that is never ready goes after ten minutes, and its address waits for an hour`() {
        var newcomers = EnrolmentCandidates([], now: start)
        #expect(offer(&newcomers, 0..<1, at: 0) == [0])
        #expect(newcomers.judge([look(0)], now: second(599)) == .init())
        #expect(newcomers.judge([look(0)], now: second(600)) == .init(failed: ["d0"]))
        #expect(newcomers.isEmpty && newcomers.hasPauses)
        #expect(newcomers.admit("d0", at: "a0", by: "rule", now: second(4199)) == .paused)
        #expect(newcomers.admit("d0", at: "a0", by: "rule", now: second(4200)) == .admitted)
    }

    @Test func `A device that was ready once stays, and so does one that had no chance yet`() {
        var newcomers = EnrolmentCandidates([], now: start)
        _ = offer(&newcomers, 0..<2, at: 0)
        #expect(newcomers.judge([look(0, wasReady: true), look(1)], now: second(30)) == .init(proven: ["d0"]))
        #expect(newcomers.judge([look(0), look(1, hadItsChance: false)], now: second(9000)) == .init())
        #expect(!newcomers.contains("d0") && newcomers.contains("d1"))
    }

    @Test func `Fake advertisers take only some of the places, and never keep a rule from others for long`() {
        var newcomers = EnrolmentCandidates([], now: start)
        #expect(offer(&newcomers, 0..<10_000, at: 0).count == EnrolmentCandidates.places)
        #expect(newcomers.admit("x", at: "x", by: "other rule", now: start) == .admitted)
        let looks = (0..<10_000).map { look($0) }
        #expect(newcomers.judge(looks, now: second(600)).failed.count == EnrolmentCandidates.places)
        #expect(newcomers.admit("real", at: "r", by: "rule", now: second(600)) == .admitted)
    }

    @Test func `Devices that become ready at once are made by a hundred, then ten a minute`() {
        var newcomers = EnrolmentCandidates([], now: start)
        var admitted = 0
        for number in 0..<1000 {
            admitted += offer(&newcomers, number..<(number + 1), at: 0).count
            _ = newcomers.judge([look(number, wasReady: true)], now: start)
        }
        #expect(admitted == 100)
        #expect(offer(&newcomers, 2000..<3000, at: 60).count == 10)
    }

    @Test func `Any number of addresses needs bounded memory`() {
        var newcomers = EnrolmentCandidates([], now: start)
        for round in 0..<200 {
            let numbers = round * 50..<(round + 1) * 50
            let time = round * 601
            _ = offer(&newcomers, numbers, at: time)
            _ = newcomers.judge(numbers.map { look($0) }, now: second(time + 600))
            #expect(newcomers.pauseCount <= EnrolmentCandidates.remembered)
        }
    }

    @Test func `After a restart those that were never ready have their time anew`() {
        let record = EnrolledDevice(device: "d0", address: "a0", rule: "rule", isProven: false)
        var newcomers = EnrolmentCandidates(
            [record, EnrolledDevice(device: "d1", address: "a1", rule: "rule")],
            now: start
        )
        #expect(newcomers.contains("d0") && !newcomers.contains("d1"))
        #expect(newcomers.judge([look(0), look(1)], now: second(600)) == .init(failed: ["d0"]))
    }
}
