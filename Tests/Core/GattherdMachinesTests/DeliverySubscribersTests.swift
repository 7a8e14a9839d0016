import GattherdMachines
import GattherdModel
import Testing

/// Waiting for subscribers before readings are published.
@Suite struct DeliverySubscribersTests {
    typealias World = DeliveryTestWorld

    @Test func `a backlog that becomes known after the broker's answer still waits for subscribers`() {
        var world = World()
        world.step(.start)
        world.questions.swapAt(0, 1)
        world.answerOne()
        world.commit(3)
        world.answerAll()
        #expect(world.sessions == [[]])
        world.runUntilIdle()
        #expect(world.now >= .seconds(2))
        #expect(world.sessions == [[1, 2, 3]])
    }

    @Test func `a first session publishes at once, a reconnect waits for subscribers`() {
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

    @Test func `a first session with a backlog also waits for subscribers`() {
        var world = World()
        world.step(.start)
        world.questions.swapAt(0, 1)
        world.answerOne()
        world.commit(3)
        world.answerAll()
        #expect(world.sessions == [[]])
    }

    @Test func `events before the first reading do not delay the first session`() {
        var world = World()
        world.step(.start)
        world.step(.headMoved(5))
        world.answerAll()
        world.committed.append(.test(seq: 6))
        world.step(.headMoved(6))
        world.answerAll()
        #expect(world.sessions == [[6]])
    }

    @Test func `a topic that never had subscribers does not wait`() {
        var world = World.connected(committed: 1)
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 1)
    }

    /// Returns a reconnected world with `count` more readings, at the first check for subscribers.
    private func reconnected(committed count: Int, streams: [String] = ["s"]) -> World {
        var world = World.connected()
        for stream in streams { world.commit(1, stream: stream) }
        world.passOn()
        world.now += .seconds(10)
        world.loseConnection()
        for stream in streams { world.commit(count, stream: stream) }
        world.wait()
        world.answerAll()
        world.wait()
        return world
    }

    @Test func `a subscriber that leaves does not delay readings`() {
        var world = World.connected()
        world.commit(1, stream: "a")
        world.commit(1, stream: "b")
        world.passOn()
        let began = world.now
        world.commit(3, stream: "b")
        world.commit(3, stream: "a")
        world.answerAll()
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 8 && world.now == began)
        #expect(world.machine.pause(at: world.now) == nil)
        #expect(!world.remarks.contains { if case .awaitingSubscribers = $0 { true } else { false } })
    }

    @Test func `readings wait after a reconnect until the first subscriber returns`() {
        var world = reconnected(committed: 5)
        for _ in 0..<3 {
            world.acknowledge(.noSubscribers)
            #expect(world.machine.pause(at: world.now) == .awaitingSubscribers)
            world.wait()
        }
        #expect(world.machine.cursor == 1)
        #expect(world.remarks.contains(.awaitingSubscribers(world.committed[1])))
        world.runUntilIdle()
        #expect(world.machine.cursor == 6)
        #expect(world.machine.pause(at: world.now) == nil)
    }

    @Test func `streams do not wait for each other's subscribers: a check covers every stream`() throws {
        var world = reconnected(committed: 10, streams: ["gone", "here"])
        let connectedAt = world.now - .seconds(2)
        while world.machine.cursor != 22, world.now < .seconds(100) {
            let session = try #require(world.session)
            let outcomes = world.unacknowledged.map { seq in
                let isHere = world.committed[Int(seq) - 1].stream.stream == "here"
                return PublishOutcome(seq: seq, isHere ? .accepted : .noSubscribers)
            }
            world.unacknowledged = []
            world.step(.answered(session: session, outcomes))
            world.answerAll()
            if world.unacknowledged.isEmpty { world.wait() }
        }
        #expect(world.machine.cursor == 22)
        #expect(world.now - connectedAt < .seconds(3))
    }

    @Test func `the wait for missing subscribers lasts some seconds and happens once`() {
        var world = reconnected(committed: 300)
        let connectedAt = world.now - .seconds(2)
        func drain() {
            while world.machine.cursor != 301, world.now < connectedAt + .seconds(100) {
                world.acknowledge(.noSubscribers)
                world.answerAll()
                if world.unacknowledged.isEmpty { world.wait() }
            }
        }
        drain()
        #expect(world.machine.cursor == 301)
        #expect((.seconds(5) ... .milliseconds(5500)).contains(world.now - connectedAt))
        #expect(world.remarks.filter { $0 == .goingOnWithoutSubscribers }.count == 1)
        world.now += .seconds(10)
        world.loseConnection()
        world.commit(1)
        world.wait()
        world.answerAll()
        world.wait()
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 302)
    }

    @Test func `readings of other streams are acknowledged once during the wait`() {
        var world = reconnected(committed: 1)
        world.commit(5, stream: "other")
        for _ in 0..<3 {
            world.answerAll()
            world.acknowledge(.noSubscribers)
            world.wait()
        }
        world.runUntilIdle()
        let others = (world.sessions.last ?? []).filter { world.committed[Int($0) - 1].stream.stream == "other" }
        #expect(others == [3, 4, 5, 6, 7])
        #expect(world.machine.cursor == 7)
    }

    @Test func `a topic without subscribers does not wait for those of another topic`() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.commit(1, stream: "other")
        world.answerAll()
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 2)
    }

    @Test func `a session with an overdue acknowledgement ends, and the next one publishes the reading`() {
        var world = World.connected(committed: 3)
        world.acknowledge()
        let session = world.session ?? 0
        world.step(.answered(session: session, [PublishOutcome(seq: 3, .accepted)]))
        let began = world.now
        for _ in 0..<1000 where world.session == session {
            world.answerAll()
            world.wait()
        }
        #expect(world.now == began + .seconds(120))
        #expect(world.machine.cursor == 1)
        world.runUntilIdle()
        #expect(world.machine.cursor == 3)
    }

    @Test func `a reading that the broker leaves out is noticed while it holds back an older one`() {
        var world = World.connected()
        world.commit(1, stream: "busy")
        world.commit(1, stream: "omitted")
        world.answerAll()
        let session = world.session
        for _ in 0..<1000 where world.session == session {
            let busy = world.unacknowledged.filter { $0 == 1 }
            world.unacknowledged.removeAll { $0 == 1 }
            if let session {
                world.step(.answered(session: session, busy.map { PublishOutcome(seq: $0, .busy("quota")) }))
            }
            world.answerAll()
            if !world.unacknowledged.contains(1) { world.wait() }
        }
        #expect(world.now >= .seconds(120) && world.now <= .seconds(360))
        #expect(world.remarks.contains(.unacknowledged(world.committed[1])))
    }

    @Test func `the subscribers of a removed device are not awaited`() {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.step(.dismissed(device: world.committed[0].device))
        world.commit(1)
        world.answerAll()
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 2)
    }

    @Test func `a broker that was away at the start is assumed to have had subscribers`() {
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
