import GattherdMachines
import GattherdModel
import Testing

/// The end of a delivery.
@Suite struct DeliveryStopTests {
    typealias World = DeliveryTestWorld

    @Test func `a stop does not wait for unwanted readings, even after a lost connection`() {
        var world = World.connected()
        world.isWanted = { _ in false }
        world.commit(700)
        world.runUntilIdle()
        #expect(world.machine.cursor == 700 && world.stored == 700)
        world.loseConnection()
        world.wait()
        world.answerAll()
        world.step(.stop(drain: .seconds(3600)))
        world.answerAll()
        #expect(world.isFinished)
        #expect(world.now < .seconds(60))
    }

    @Test func `a clean stop publishes offline, closes the session, writes the cursor and ends`() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.answerAll()
        world.commit(1)
        world.answerAll()
        world.acknowledge()
        world.step(.stop(drain: .zero))
        #expect(world.questions == [.publishOffline(session: 1)])
        world.answerOne()
        #expect(world.questions == [.save(2)] && world.session == nil)
        world.answerOne()
        #expect(world.isFinished && world.machine.state == .stopped)
    }

    @Test func `a stop with time to drain publishes the remaining readings before offline`() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.commit(300)
        world.step(.stop(drain: .seconds(5)))
        while !world.questions.contains(.publishOffline(session: 1)), world.now < .seconds(5) {
            world.answerAll()
            world.acknowledge()
            if world.questions.isEmpty { world.wait() }
        }
        #expect(world.machine.cursor == 301 && world.now < .seconds(1))
    }

    @Test func `a stop drains no longer than allowed and does not wait for a lost broker`() {
        var world = World.connected(committed: 1)
        world.step(.stop(drain: .seconds(5)))
        while world.session != nil, world.questions.isEmpty { world.wait() }
        #expect(world.now == .seconds(5) && world.questions == [.publishOffline(session: 1)])
        var lost = World.connected(committed: 1)
        lost.step(.stop(drain: .seconds(5)))
        lost.loseConnection()
        #expect(lost.isFinished)
    }

    @Test func `a clean stop is bounded if neither broker nor journal answers`() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.questions.removeAll()
        world.step(.stop(drain: .zero))
        while !world.isFinished, world.machine.deadline != nil { world.wait() }
        #expect(world.isFinished)
        #expect(world.now <= .seconds(4))
    }

    @Test func `a stopped machine waits for nothing, even after unwanted readings`() {
        var world = World.connected()
        world.isWanted = { _ in false }
        world.commit(5)
        world.answerAll()
        world.step(.stop(drain: .zero))
        world.loseConnection()
        #expect(world.isFinished && world.machine.deadline == nil)
    }

    @Test func `a stop without a session ends at once`() {
        var world = World()
        world.step(.start)
        world.step(.stop(drain: .zero))
        #expect(world.isFinished)
    }
}
