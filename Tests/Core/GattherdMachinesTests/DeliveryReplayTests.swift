import GattherdMachines
import GattherdModel
import Testing

/// Readings republished after the end of a session or a run.
@Suite struct DeliveryReplayTests {
    typealias World = DeliveryTestWorld

    @Test func `the next session republishes unacknowledged readings, starting at the cursor`() throws {
        var options = DeliveryMachine.Options()
        options.replay = .zero
        var world = World.connected(committed: 1, options)
        world.acknowledge()
        world.commit(10)
        world.answerAll()
        let session = try #require(world.session)
        world.step(.answered(session: session, [2, 3].map { PublishOutcome(seq: $0, .accepted) }))
        world.now += .milliseconds(1)
        world.loseConnection()
        #expect(world.machine.inFlight == 0)
        world.runUntilIdle()
        #expect(world.sessions.last == Array(4...11))
        #expect(world.republished == 8)
    }

    @Test func `readings acknowledged shortly before a loss are republished, and the cursor stays`() {
        var world = World.connected(committed: 5)
        world.runUntilIdle()
        world.now += .seconds(10)
        world.commit(3)
        world.passOn()
        world.now += .seconds(1)
        world.loseConnection()
        #expect(world.machine.cursor == 8)
        world.runUntilIdle()
        #expect(world.sessions.last == [6, 7, 8])
        #expect(world.machine.cursor == 8 && world.stored == 8)
        #expect(world.republished == 3)
    }

    /// Returns a world in which reading 2 gathers for ten seconds, so that the cursor stays at 1.
    private func heldUp() -> World {
        var world = World.connected(committed: 1)
        world.passOn()
        world.now += .seconds(3)
        world.gathering = .seconds(10)
        world.commit(1, stream: "slow")
        world.passOn()
        world.gathering = nil
        return world
    }

    @Test func `readings acknowledged beyond the cursor shortly before a loss are republished`() {
        var world = heldUp()
        world.now += .seconds(3)
        world.commit(2, stream: "old")
        world.passOn()
        world.now += .seconds(3)
        world.commit(3, stream: "new")
        world.passOn()
        #expect(world.sessions == [[1, 3, 4, 5, 6, 7]])
        #expect(world.machine.cursor == 1)
        world.loseConnection()
        world.runUntilIdle()
        #expect(world.sessions.last?.sorted() == [2, 5, 6, 7])
        #expect(world.stored == 7)
    }

    @Test func `readings of QoS 0 beyond the cursor are republished`() throws {
        var world = heldUp()
        world.commit(3, stream: "fast")
        world.answerAll()
        let session = try #require(world.session)
        let sent = world.unacknowledged.map { PublishOutcome(seq: $0, .accepted, isConfirmed: false) }
        world.step(.answered(session: session, sent))
        world.loseConnection()
        world.runUntilIdle()
        #expect(world.sessions.last?.sorted() == [2, 3, 4, 5])
    }

    @Test func `the newest reading of a topic follows an earlier one that is published again`() throws {
        var world = World.connected(committed: 1)
        world.passOn()
        world.commit(3)
        world.commit(1, stream: "other")
        world.answerAll()
        let session = try #require(world.session)
        world.step(.answered(session: session, [3, 4, 5].map { PublishOutcome(seq: $0, .accepted) }))
        world.now += .seconds(121)
        world.step(.tick)
        world.runUntilIdle()
        #expect(world.sessions.last == [2, 4])
        #expect(world.stored == 5)
    }

    @Test func `the next run republishes recently acknowledged readings, unless the last one ended cleanly`() {
        for isKilled in [true, false] {
            var world = World.connected(committed: 5)
            world.runUntilIdle()
            world.commit(3)
            world.passOn()
            world.now += .milliseconds(200)
            world.step(.tick)
            world.answerAll()
            #expect(world.machine.cursor == 8 && world.stored == 5)
            if !isKilled { world.step(.stop(drain: .zero)) }
            world.answerAll()
            world.restart()
            world.runUntilIdle()
            #expect(world.sessions.last == (isKilled ? [6, 7, 8] : []))
            #expect(world.stored == 8)
        }
    }

    @Test(arguments: [1, 20, 400])
    func `a kill repeats at most half a second of acknowledged readings`(perStep: Int) {
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

    @Test func `acknowledged readings are not repeated after a stop without an acknowledgement of offline`() {
        var world = World.connected(committed: 3)
        world.passOn()
        world.step(.stop(drain: .zero))
        world.questions.removeAll()
        world.runUntilIdle()
        #expect(world.isFinished && world.stored == 3)
    }

    @Test func `a stop without the broker leaves the replay to the next run`() {
        var world = World.connected(committed: 3)
        world.passOn()
        world.loseConnection()
        #expect(world.machine.cursor == 3)
        world.step(.stop(drain: .seconds(1)))
        world.answerAll()
        #expect(world.isFinished && world.stored == 0)
        world.restart()
        world.runUntilIdle()
        #expect(world.sessions.last == [1, 2, 3])
    }

    @Test func `a reading is awaited until it and the earlier ones of its stream are acknowledged again`() {
        var world = World.connected(committed: 3)
        world.passOn()
        #expect(!world.machine.awaits(world.committed[2]))
        world.loseConnection()
        #expect(world.machine.awaits(world.committed[2]))
        world.runUntilIdle()
        world.commit(1, stream: "other")
        world.answerAll()
        #expect(!world.machine.awaits(world.committed[2]))
        #expect(world.machine.awaits(world.committed[3]))
    }

    @Test func `the number of republished readings is bounded`() {
        var world = World.connected(committed: 1)
        world.commit(3000)
        world.runUntilIdle()
        world.loseConnection()
        world.runUntilIdle()
        #expect(world.sessions.last == world.sessions.last.map { Array($0.sorted()) })
        #expect((world.sessions.last ?? []).count <= 1256)
    }

    @Test func `a PUBACK of an earlier session is ignored`() throws {
        var world = World.connected(committed: 1)
        let session = try #require(world.session)
        world.loseConnection()
        world.step(.answered(session: session, [PublishOutcome(seq: 1, .accepted)]))
        #expect(world.machine.cursor == 0)
    }
}
