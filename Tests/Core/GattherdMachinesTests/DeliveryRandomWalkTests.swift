import GattherdMachines
import GattherdModel
import Testing

@Suite struct DeliveryRandomWalkTests {
    /// The invariants, checked after every step.
    private struct Witness {
        var cursor: Int64 = 0
        /// Readings whose PUBACK the machine has received.
        var acknowledged: Set<Int64> = []

        mutating func check(_ world: DeliveryTestWorld) {
            let now = world.machine.cursor ?? 0
            #expect(now >= cursor, "the cursor never moves back")
            for seq in cursor..<now where world.isWanted(seq + 1) {
                #expect(acknowledged.contains(seq + 1), "the cursor passed \(seq + 1)")
            }
            #expect(world.machine.inFlight <= 20)
            #expect(world.stored <= now, "what is written was acknowledged")
            cursor = now
        }
    }

    @Test(
        arguments: 1...15 as ClosedRange<UInt64>
    )
    func `no sequence of faults loses, reorders or skips a reading, or publishes an unwanted one`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var world = DeliveryTestWorld(seed: seed)
        world.receiveMaximum = 20
        if seed > 5 { world.isWanted = { seq in seed > 10 ? seq / 70 % 2 == 0 : seq % 3 == 0 } }
        var witness = Witness()
        world.step(.start)
        for _ in 0..<1000 {
            act(on: &world, &witness, &random)
            witness.check(world)
        }
        answerAll(&world, &witness)
        #expect(world.machine.cursor == world.committed.last?.seq ?? 0, "everything is published in the end")
        for session in world.sessions { check(order: session) }
        #expect(world.sessions.joined().allSatisfy { world.isWanted($0) })
    }

    /// Checks that first transmissions are in order; a reading is repeated in a session only after a refusal.
    private func check(order session: [Int64]) {
        var seen: Set<Int64> = []
        let firsts = session.filter { seen.insert($0).inserted }
        #expect(firsts == firsts.sorted())
    }

    private func act(on world: inout DeliveryTestWorld, _ witness: inout Witness, _ random: inout SplitMix64) {
        switch Int.random(in: 0..<20, using: &random) {
        case 0: world.loseConnection()
        case 1: fail(&world, &random)
        case 2...6: world.commit(.random(in: 1...60, using: &random))
        case 7...11: answerSome(&world, &witness, &random)
        case 12...14: world.wait()
        case 15: world.now += .milliseconds(.random(in: 1...500, using: &random))
        default: if !world.questions.isEmpty { world.answerOne() }
        }
    }

    private func fail(_ world: inout DeliveryTestWorld, _ random: inout SplitMix64) {
        guard !world.questions.isEmpty else { return }
        switch world.questions.removeFirst() {
        case .loadCursor: world.step(.journalFailed(.load))
        case .fetch: world.step(.journalFailed(.fetch))
        case .save: world.step(.journalFailed(.save))
        case .connect(let session): world.step(.failed(session: session, BrokerFault(.unreachable, "no")))
        case .open(let session): world.step(.opened(session: session))
        default: break
        }
    }

    private func answerSome(
        _ world: inout DeliveryTestWorld,
        _ witness: inout Witness,
        _ random: inout SplitMix64
    ) {
        guard let session = world.session else { return }
        let count = Int.random(in: 0...world.unacknowledged.count, using: &random)
        let outcomes = world.unacknowledged.prefix(count).map { seq in
            let isHeard = Int.random(in: 0..<10, using: &random) > 0
            return PublishOutcome(seq: seq, isHeard ? .accepted : .busy("busy"))
        }
        world.unacknowledged.removeFirst(count)
        for outcome in outcomes where outcome.verdict == .accepted { witness.acknowledged.insert(outcome.seq) }
        world.step(.answered(session: session, outcomes))
    }

    private func answerAll(_ world: inout DeliveryTestWorld, _ witness: inout Witness) {
        for _ in 0..<200_000 where world.machine.cursor != world.committed.last?.seq ?? 0 {
            world.answerAll()
            witness.acknowledged.formUnion(world.unacknowledged)
            world.acknowledge()
            if world.questions.isEmpty, world.unacknowledged.isEmpty { world.wait() }
            witness.check(world)
        }
    }
}
