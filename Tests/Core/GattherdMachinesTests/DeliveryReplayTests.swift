import GattherdMachines
import GattherdModel
import Testing

/// What is published again after a session, or a run, has ended.
@Suite("DeliveryMachine: what is published again")
struct DeliveryReplayTests {
    typealias World = DeliveryTestWorld

    @Test("What was not acknowledged is published again in the next session, from the cursor on")
    func reconnect() throws {
        var options = DeliveryMachine.Options()
        options.replay = .zero
        var world = World.connected(committed: 1, options)
        world.acknowledge()
        world.commit(10)
        world.answerAll()
        let session = try #require(world.session)
        world.step(.settled(session: session, [2, 3].map { PublishOutcome(seq: $0, .accepted) }))
        world.now += .milliseconds(1)
        world.loseConnection()
        #expect(world.machine.inFlight == 0)
        world.settleDown()
        #expect(world.sessions.last == Array(4...11))
        #expect(world.republished == 8)
    }

    @Test("What was acknowledged shortly before a loss is published again; the cursor does not go back for it")
    func replay() {
        var world = World.connected(committed: 5)
        world.settleDown()
        world.now += .seconds(10)
        world.commit(3)
        world.passOn()
        world.now += .seconds(1)
        world.loseConnection()
        #expect(world.machine.cursor == 8)
        world.settleDown()
        #expect(world.sessions.last == [6, 7, 8])
        #expect(world.machine.cursor == 8 && world.stored == 8)
        #expect(world.republished == 3)
    }

    @Test("Another run begins with what was acknowledged shortly before, unless the last one ended well")
    func replayByAnotherRun() {
        for isKilled in [true, false] {
            var world = World.connected(committed: 5)
            world.settleDown()
            world.commit(3)
            world.passOn()
            world.now += .milliseconds(200)
            world.step(.tick)
            world.answerAll()
            #expect(world.machine.cursor == 8 && world.stored == 5)
            if !isKilled { world.step(.stop(drain: .zero)) }
            world.answerAll()
            world.restart()
            world.settleDown()
            #expect(world.sessions.last == (isKilled ? [6, 7, 8] : []))
            #expect(world.stored == 8)
        }
    }

    @Test("A kill repeats half a second of acknowledged readings at most", arguments: [1, 20, 400])
    func replayAfterAKill(perStep: Int) {
        var options = DeliveryMachine.Options()
        options.pace = TokenBucket(rate: 100_000, burst: 1000)
        var world = World.connected(options)
        for _ in 0..<100 {
            let began = world.machine.cursor ?? 0
            world.commit(perStep)
            while world.machine.cursor != began + Int64(perStep) {
                world.passOn()
                if world.machine.cursor != began + Int64(perStep) { world.wait() }
            }
            world.answerAll()
            let unsaved = (world.machine.cursor ?? 0) - world.stored
            #expect(unsaved <= min(500, 11 * Int64(perStep)))
            world.now += .milliseconds(50)
            world.step(.tick)
            world.answerAll()
        }
    }

    @Test("A stop whose farewell is not acknowledged repeats nothing that was")
    func stopWithoutFarewell() {
        var world = World.connected(committed: 3)
        world.passOn()
        world.step(.stop(drain: .zero))
        world.questions.removeAll()
        world.settleDown()
        #expect(world.isFinished && world.stored == 3)
    }

    @Test("A stop without the broker leaves to another run what this one would have published again")
    func replayAfterAStop() {
        var world = World.connected(committed: 3)
        world.passOn()
        world.loseConnection()
        #expect(world.machine.cursor == 3)
        world.step(.stop(drain: .seconds(1)))
        world.answerAll()
        #expect(world.isFinished && world.stored == 0)
        world.restart()
        world.settleDown()
        #expect(world.sessions.last == [1, 2, 3])
    }

    @Test("Only so many are published again as are remembered")
    func boundedReplay() {
        var world = World.connected(committed: 1)
        world.commit(3000)
        world.settleDown()
        world.loseConnection()
        world.settleDown()
        #expect(world.sessions.last == world.sessions.last.map { Array($0.sorted()) })
        #expect((world.sessions.last ?? []).count <= 1256)
    }

    @Test("A PUBACK of an earlier session moves nothing")
    func stale() throws {
        var world = World.connected(committed: 1)
        let session = try #require(world.session)
        world.loseConnection()
        world.step(.settled(session: session, [PublishOutcome(seq: 1, .accepted)]))
        #expect(world.machine.cursor == 0)
    }
}
