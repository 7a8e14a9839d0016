import GattherdMachines
import GattherdModel
import Testing

/// How a delivery ends.
@Suite("DeliveryMachine: stops")
struct DeliveryStopTests {
    typealias World = DeliveryTestWorld

    @Test("A stop does not wait for readings that nobody wants, also after a lost connection")
    func skippedStop() {
        var world = World.connected()
        world.isWanted = { _ in false }
        world.commit(700)
        world.settleDown()
        #expect(world.machine.cursor == 700 && world.stored == 700)
        world.loseConnection()
        world.wait()
        world.answerAll()
        world.step(.stop(drain: .seconds(3600)))
        world.answerAll()
        #expect(world.isFinished)
        #expect(world.now < .seconds(60))
    }

    @Test("A clean stop says farewell, closes, writes the cursor, and ends")
    func stop() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.answerAll()
        world.commit(1)
        world.answerAll()
        world.acknowledge()
        world.step(.stop(drain: .zero))
        #expect(world.questions == [.sayFarewell(session: 1)])
        world.answerOne()
        #expect(world.questions == [.save(2)] && world.session == nil)
        world.answerOne()
        #expect(world.isFinished && world.machine.state == .stopped)
    }

    @Test("A stop with time to drain publishes what is left before it says farewell")
    func drain() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.commit(300)
        world.step(.stop(drain: .seconds(5)))
        while !world.questions.contains(.sayFarewell(session: 1)), world.now < .seconds(5) {
            world.answerAll()
            world.acknowledge()
            if world.questions.isEmpty { world.wait() }
        }
        #expect(world.machine.cursor == 301 && world.now < .seconds(1))
    }

    @Test("A stop does not drain for longer than it may, and does not wait for a lost broker")
    func drainLimit() {
        var world = World.connected(committed: 1)
        world.step(.stop(drain: .seconds(5)))
        while world.session != nil, world.questions.isEmpty { world.wait() }
        #expect(world.now == .seconds(5) && world.questions == [.sayFarewell(session: 1)])
        var lost = World.connected(committed: 1)
        lost.step(.stop(drain: .seconds(5)))
        lost.loseConnection()
        #expect(lost.isFinished)
    }

    @Test("A clean stop is bounded when neither broker nor log answers")
    func boundedStop() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.questions.removeAll()
        world.step(.stop(drain: .zero))
        while !world.isFinished, world.machine.deadline != nil { world.wait() }
        #expect(world.isFinished)
        #expect(world.now <= .seconds(4))
    }

    @Test("What has ended waits for nothing, also after readings that nobody wanted")
    func nothingLeft() {
        var world = World.connected()
        world.isWanted = { _ in false }
        world.commit(5)
        world.answerAll()
        world.step(.stop(drain: .zero))
        world.loseConnection()
        #expect(world.isFinished && world.machine.deadline == nil)
    }

    @Test("A stop without a session ends at once")
    func stopWhileConnecting() {
        var world = World()
        world.step(.start)
        world.step(.stop(drain: .zero))
        #expect(world.isFinished)
    }
}
