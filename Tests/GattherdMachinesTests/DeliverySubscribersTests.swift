import GattherdMachines
import GattherdModel
import Testing

/// Who is waited for before something is published.
@Suite("DeliveryMachine: subscribers")
struct DeliverySubscribersTests {
    typealias World = DeliveryTestWorld

    @Test("A backlog that becomes known after the broker answered waits for subscribers all the same")
    func lateBacklog() {
        var world = World()
        world.step(.start)
        world.questions.swapAt(0, 1)
        world.answerOne()
        world.commit(3)
        world.answerAll()
        #expect(world.sessions == [[]])
        world.settleDown()
        #expect(world.now >= .seconds(2))
        #expect(world.sessions == [[1, 2, 3]])
    }

    @Test("A backlog from before the start is assumed to have had subscribers")
    func assumedBacklog() {
        var world = World()
        world.commit(1)
        world.step(.start)
        world.answerAll()
        world.wait()
        world.answerAll()
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 0)
    }

    @Test("A first session publishes at once, a reconnect waits for subscribers to settle")
    func settling() {
        var world = World.connected(committed: 1)
        #expect(world.sessions == [[1]])
        world.loseConnection()
        world.wait()
        world.answerAll()
        let reconnectedAt = world.now
        #expect(world.sessions == [[1], []])
        world.wait()
        #expect(world.now == reconnectedAt + .seconds(2))
        #expect(world.sessions == [[1], [1]])
    }

    @Test("A first session with a backlog waits for subscribers as well")
    func backlogAtStart() {
        var world = World()
        world.step(.start)
        world.questions.swapAt(0, 1)
        world.answerOne()
        world.commit(3)
        world.answerAll()
        #expect(world.sessions == [[]])
    }

    @Test("Nobody is waited for who never was there")
    func neverSubscribed() {
        var world = World.connected(committed: 1)
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 1)
    }

    @Test("A reading whose subscribers are missing is held until they are back")
    func missingSubscribers() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.loseConnection()
        world.commit(5)
        world.wait()
        world.answerAll()
        for _ in 0..<3 {
            world.wait()
            world.acknowledge(.noSubscribers)
        }
        #expect(world.machine.cursor == 1)
        world.settleDown()
        #expect(world.machine.cursor == 6)
        #expect(world.remarks.contains(.awaitingSubscribers(world.committed[0])))
    }

    @Test("Subscribers who do not come back in time are not waited for any longer, nor again")
    func impatience() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.commit(300)
        world.answerAll()
        let began = world.now
        while world.machine.cursor != 301, world.now < began + .seconds(100) {
            world.acknowledge(.noSubscribers)
            world.answerAll()
            world.wait()
        }
        #expect(world.machine.cursor == 301)
        #expect((.seconds(30) ... .seconds(32)).contains(world.now - began))
        #expect(world.remarks.filter { $0 == .goingOnWithoutSubscribers }.count == 1)
    }

    @Test("A topic that never had a subscriber does not wait for those of another")
    func otherTopics() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.commit(1, stream: "other")
        world.answerAll()
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 2)
    }

    @Test("A session whose broker never acknowledges a reading is ended, and the next one gets it")
    func overdue() {
        var world = World.connected(committed: 3)
        world.acknowledge()
        let session = world.session ?? 0
        world.step(.settled(session: session, [PublishOutcome(seq: 3, .accepted)]))
        let began = world.now
        for _ in 0..<1000 where world.session == session {
            world.answerAll()
            world.wait()
        }
        #expect(world.now == began + .seconds(120))
        #expect(world.machine.cursor == 1)
        world.settleDown()
        #expect(world.machine.cursor == 3)
    }

    @Test("Nobody waits for the subscribers of a device that is none any more")
    func dismissed() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.step(.dismissed(device: world.committed[0].device))
        world.commit(1)
        world.answerAll()
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 2)
    }

    @Test("A broker that was away at the start is assumed to have had subscribers")
    func assumption() {
        var world = World()
        world.step(.start)
        world.questions.removeFirst()
        world.answerAll()
        world.commit(2)
        world.step(.failed(session: 1, BrokerFault(.unreachable, "no")))
        world.wait()
        world.answerAll()
        world.wait()
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 0)
    }
}
