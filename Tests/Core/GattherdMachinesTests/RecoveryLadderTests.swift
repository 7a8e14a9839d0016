import GattherdMachines
import Testing

@Suite struct RecoveryLadderTests {
    private let listening = RecoveryLadder.Conditions(isListeningSince: .zero, hasLinks: false, hasSessions: false)
    private let idle = RecoveryLadder.Conditions(isListeningSince: nil, hasLinks: false, hasSessions: false)

    /// Returns the steps within a time, as seconds and names, checked once a second.
    private func steps(
        _ ladder: inout RecoveryLadder,
        _ conditions: RecoveryLadder.Conditions,
        seconds: Range<Int>,
        before: (inout RecoveryLadder, Int) -> Void = { _, _ in }
    ) -> [String] {
        seconds.compactMap { second in
            before(&ladder, second)
            let remedy = ladder.nextRemedy(conditions, at: .seconds(second))
            return remedy.map { "\(second) \($0.step.rawValue) \($0.symptom.rawValue)" }
        }
    }

    @Test func `silence is treated in steps, and the next round comes later`() {
        var ladder = RecoveryLadder()
        let found = steps(&ladder, listening, seconds: 0..<700)
        #expect(
            found == [
                "120 restartDiscovery silence", "150 newSession silence", "180 powerCycle silence",
                "420 restartDiscovery silence", "450 newSession silence", "480 powerCycle silence",
            ]
        )
    }

    @Test func `the pauses in an empty room grow up to half an hour`() {
        var ladder = RecoveryLadder()
        let found = steps(&ladder, listening, seconds: 0..<86_400).filter { $0.contains("powerCycle") }
        #expect((45...52).contains(found.count), "\(found.count) power cycles in a day")
    }

    @Test func `any advertisement ends the silence and its treatment`() {
        var ladder = RecoveryLadder()
        #expect(steps(&ladder, listening, seconds: 0..<1000) { $0.heard(at: .seconds($1 / 100 * 100)) }.isEmpty)
        ladder = RecoveryLadder()
        #expect(steps(&ladder, listening, seconds: 0..<125).count == 1)
        ladder.heard(at: .seconds(125))
        #expect(
            steps(&ladder, listening, seconds: 125..<390) == ["365 restartDiscovery silence"],
            "a false alarm makes it more patient"
        )
    }

    @Test func `silence after a long time of hearing is treated as fast as the first`() {
        var ladder = RecoveryLadder()
        for round in 0..<6 {
            let start = round * 10_000
            let found = steps(&ladder, listening, seconds: start..<(start + 1000)) { $0.heard(at: .seconds($1)) }
            #expect(found.isEmpty)
            let silent = steps(&ladder, listening, seconds: (start + 1000)..<(start + 1125))
            #expect(silent == ["\(start + 1119) restartDiscovery silence"])
            for second in (start + 1125)..<(start + 10_000) { ladder.heard(at: .seconds(second)) }
        }
    }

    @Test func `no remedy is applied while no device is sought`() {
        var ladder = RecoveryLadder()
        #expect(steps(&ladder, idle, seconds: 0..<10_000).isEmpty)
        #expect(ladder.deadline(idle, at: .zero) == nil)
    }

    @Test func `steps that would end working links are skipped`() {
        var ladder = RecoveryLadder()
        let busy = RecoveryLadder.Conditions(isListeningSince: .zero, hasLinks: true, hasSessions: true)
        let found = steps(&ladder, busy, seconds: 0..<3600)
        #expect(!found.isEmpty)
        #expect(found.allSatisfy { $0.contains("restartDiscovery") })
        ladder = RecoveryLadder()
        let other = RecoveryLadder.Conditions(isListeningSince: .zero, hasLinks: true, hasSessions: false)
        #expect(!steps(&ladder, other, seconds: 0..<3600).contains { $0.contains("powerCycle") })
    }

    @Test func `adapters are not power-cycled without permission`() {
        var policy = RecoveryLadder.Policy()
        policy.mayPowerCycle = false
        var ladder = RecoveryLadder(policy: policy)
        let found = steps(&ladder, listening, seconds: 0..<3600)
        #expect(found.contains { $0.contains("newSession") })
        #expect(!found.contains { $0.contains("powerCycle") })
    }

    @Test func `continued failures are a wedge, and each step requires more of them`() {
        var ladder = RecoveryLadder()
        let found = steps(&ladder, idle, seconds: 0..<200) { ladder, second in
            if second % 5 == 0 { ladder.failed(at: .seconds(second)) }
        }
        #expect(
            found == [
                "30 restartDiscovery wedge", "65 newSession wedge", "100 powerCycle wedge",
                "160 restartDiscovery wedge", "195 newSession wedge",
            ]
        )
    }

    @Test func `a new link ends a wedge`() {
        var ladder = RecoveryLadder()
        let found = steps(&ladder, idle, seconds: 0..<1000) { ladder, second in
            ladder.failed(at: .seconds(second))
            if second % 20 == 0 { ladder.connected() }
        }
        #expect(found.isEmpty)
    }

    @Test func `the first step against a wedge is to listen for a while`() {
        var ladder = RecoveryLadder()
        for second in 0...30 { ladder.failed(at: .seconds(second)) }
        #expect(!ladder.wantsToListen(at: .seconds(30)))
        #expect(ladder.nextRemedy(idle, at: .seconds(30))?.step == .restartDiscovery)
        #expect(ladder.wantsToListen(at: .seconds(59)))
        #expect(!ladder.wantsToListen(at: .seconds(60)))
        #expect(ladder.deadline(idle, at: .seconds(31)) == .seconds(60))
    }

    @Test func `an adapter counts as hearing nothing after a long silence`() {
        var ladder = RecoveryLadder()
        #expect(ladder.hearsNothing(at: .zero))
        ladder.heard(at: .zero)
        #expect(!ladder.hearsNothing(at: .seconds(120)))
        #expect(ladder.hearsNothing(at: .seconds(121)))
    }
}
