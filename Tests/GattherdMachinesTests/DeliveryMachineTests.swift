import GattherdMachines
import GattherdModel
import Testing

@Suite("DeliveryMachine")
struct DeliveryMachineTests {
    typealias World = DeliveryTestWorld

    /// A world with a session, after `count` readings were committed; nothing is acknowledged.
    private func connected(committed count: Int = 0, _ options: DeliveryMachine.Options = .init()) -> World {
        var world = World(options)
        world.step(.start)
        world.step(.headMoved(0))
        world.answerAll()
        world.commit(count)
        world.answerAll()
        return world
    }

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

    @Test("A start asks for the cursor and for a session at once")
    func start() {
        var world = World()
        world.step(.start)
        #expect(world.questions == [.connect(session: 1), .loadCursor])
        #expect(world.machine.state == .connecting)
    }

    @Test("Readings go out in the log's order, and the cursor follows their PUBACKs")
    func order() {
        var world = connected(committed: 300)
        world.settleDown()
        #expect(world.sessions == [Array(1...300)])
        #expect(world.machine.cursor == 300 && world.stored == 300 && world.machine.backlog == 0)
    }

    @Test("Readings that are not wanted are passed by the cursor in their turn, and are no backlog")
    func skipped() throws {
        var world = World()
        world.isWanted = { $0 % 4 == 0 }
        world.step(.start)
        world.step(.headMoved(0))
        world.answerAll()
        world.commit(6)
        world.answerAll()
        #expect(world.sessions == [[4]])
        #expect(world.machine.cursor == 3)
        world.acknowledge()
        #expect(world.machine.cursor == 6)
        #expect(world.machine.backlog == 0)
        world.settleDown()
        #expect(world.stored == 6)
    }

    @Test("A stop does not wait for readings that nobody wants, also after a lost connection")
    func skippedStop() {
        var world = connected()
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

    @Test("The cursor waits for the oldest reading that is not acknowledged")
    func gap() throws {
        var world = connected(committed: 1)
        world.acknowledge()
        world.commit(4)
        world.answerAll()
        let session = try #require(world.session)
        for (seq, cursor) in [(4, 1), (3, 1), (2, 4), (5, 5)] as [(Int64, Int64)] {
            world.step(.settled(session: session, [PublishOutcome(seq: seq, .accepted)]))
            #expect(world.machine.cursor == cursor)
        }
    }

    @Test(
        "No more readings are in flight than we and the broker allow",
        arguments: [(65_535, 100), (20, 20), (1, 1), (0, 1)]
    )
    func window(receiveMaximum: Int, expected: Int) throws {
        var world = World()
        world.receiveMaximum = receiveMaximum
        world.step(.start)
        world.step(.headMoved(0))
        world.answerAll()
        world.commit(500)
        world.answerAll()
        world.acknowledge()
        world.now += .seconds(1)
        world.step(.tick)
        #expect(world.machine.inFlight == expected)
    }

    @Test("Nothing is published before the retained state is out")
    func opening() {
        var world = World()
        world.step(.start)
        world.step(.headMoved(0))
        world.answerOne()
        world.answerOne()
        world.commit(1)
        let open = world.questions.removeFirst()
        #expect(open == .open(session: 1))
        world.answerAll()
        #expect(world.sessions == [[]])
        world.step(.opened(session: 1))
        #expect(world.sessions == [[1]])
    }

    @Test("What was not acknowledged is published again in the next session, from the cursor on")
    func reconnect() throws {
        var options = DeliveryMachine.Options()
        options.replay = .zero
        var world = connected(committed: 1, options)
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
        var world = connected(committed: 5)
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
            var world = connected(committed: 5)
            world.settleDown()
            world.commit(3)
            world.passOn()
            world.now += .seconds(1)
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

    @Test("A stop without the broker leaves to another run what this one would have published again")
    func replayAfterAStop() {
        var world = connected(committed: 3)
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
        var world = connected(committed: 1)
        world.commit(3000)
        world.settleDown()
        world.loseConnection()
        world.settleDown()
        #expect(world.sessions.last == world.sessions.last.map { Array($0.sorted()) })
        #expect((world.sessions.last ?? []).count <= 1256)
    }

    @Test("A PUBACK of an earlier session moves nothing")
    func stale() throws {
        var world = connected(committed: 1)
        let session = try #require(world.session)
        world.loseConnection()
        world.step(.settled(session: session, [PublishOutcome(seq: 1, .accepted)]))
        #expect(world.machine.cursor == 0)
    }

    @Test("A first session publishes at once, a reconnect waits for subscribers to settle")
    func settling() {
        var world = connected(committed: 1)
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

    @Test("Lost connections are tried again sooner than refused credentials")
    func refusal() {
        for (kind, range) in [(BrokerFault.Kind.unreachable, 0.5...1.0), (.credentials, 10.0...20.0)] {
            var world = World()
            world.step(.start)
            world.step(.failed(session: 1, BrokerFault(kind, "no")))
            let delay = (world.machine.deadline ?? .zero) / .seconds(1)
            // The cursor's question is open; the only deadline is the retry.
            #expect(range.contains(delay), "\(kind)")
            #expect(world.machine.state == .backingOff(BrokerFault(kind, "no")))
        }
    }

    @Test("Delays grow while sessions are short and start anew after a long one")
    func growth() {
        var world = World()
        world.step(.start)
        for attempt in 1...8 {
            world.step(.failed(session: 2 * attempt - 1, BrokerFault(.unreachable, "no"))); world.wait()
        }
        world.answerAll()
        world.now += .seconds(11)
        world.loseConnection()
        let delay = (world.machine.deadline ?? .zero) - world.now
        #expect(delay <= .seconds(1))
    }

    @Test("A broker that never answers is given up after the connect timeout")
    func silence() {
        var world = World()
        world.step(.start)
        world.now = .seconds(15)
        world.step(.tick)
        #expect(world.machine.state == .backingOff(BrokerFault(.unreachable, "the broker did not answer in time")))
    }

    @Test("A busy broker gets the same reading again after a pause, and order is kept")
    func busy() {
        var world = connected(committed: 1)
        world.acknowledge(.busy("quota exceeded"))
        #expect(world.machine.cursor == 0)
        #expect(world.unacknowledged.isEmpty)
        world.commit(2)
        world.settleDown()
        #expect(world.sessions == [[1, 1, 2, 3]])
        #expect(world.remarks.contains(.busy("quota exceeded")))
    }

    @Test("A reading that is refused for good is said and skipped")
    func refused() {
        var world = connected(committed: 2)
        world.acknowledge(.refused("not authorised"))
        world.settleDown()
        #expect(world.machine.cursor == 2)
        #expect(world.remarks.contains(.skipped(world.committed[0], "not authorised")))
    }

    @Test("Nobody is waited for who never was there")
    func neverSubscribed() {
        var world = connected(committed: 1)
        world.acknowledge(.noSubscribers)
        #expect(world.machine.cursor == 1)
    }

    @Test("A reading whose subscribers are missing is held until they are back")
    func missingSubscribers() {
        var world = connected(committed: 1)
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
        var world = connected(committed: 1)
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
        var world = connected(committed: 1)
        world.acknowledge()
        world.commit(1, stream: "other")
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

    @Test("A backlog goes out no faster than the pace", arguments: [1000, 5000])
    func pace(count: Int) {
        var world = World()
        world.step(.start)
        world.questions.swapAt(0, 1)
        world.commit(count)
        let began = world.now
        world.settleDown()
        let seconds = (world.now - began) / .seconds(1)
        #expect(world.sessions == [Array(1...Int64(count))])
        #expect(seconds >= Double(count - 100) / 4000)
    }

    @Test("The cursor is written at most four times a second while it moves, and once more at the end")
    func saving() {
        var world = connected()
        for _ in 0..<200 {
            world.commit(1)
            world.answerAll()
            world.acknowledge()
            world.answerAll()
            world.now += .milliseconds(50)
            world.step(.tick)
        }
        #expect((26...33).contains(world.saves), "eight seconds, for it trails by two")
        world.settleDown()
        #expect(world.stored == 200)
    }

    @Test("A log that fails is asked again after a pause")
    func logFailure() {
        var world = World()
        world.step(.start)
        world.questions.removeLast()
        world.step(.logFailed(.load))
        world.answerAll()
        #expect(world.questions.isEmpty)
        world.wait()
        #expect(world.questions == [.loadCursor])
        world.answerAll()
        world.commit(1)
        world.questions.removeAll()
        world.step(.logFailed(.fetch))
        world.wait()
        #expect(world.questions == [.fetch(after: 0, limit: 256)])
        world.answerAll()
        world.acknowledge()
        world.wait()
        #expect(world.questions == [.save(1)])
        world.questions.removeAll()
        world.step(.logFailed(.save))
        world.wait()
        #expect(world.questions == [.save(1)])
    }

    @Test("A clean stop says farewell, closes, writes the cursor, and ends")
    func stop() {
        var world = connected(committed: 1)
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
        var world = connected(committed: 1)
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
        var world = connected(committed: 1)
        world.step(.stop(drain: .seconds(5)))
        while world.session != nil, world.questions.isEmpty { world.wait() }
        #expect(world.now == .seconds(5) && world.questions == [.sayFarewell(session: 1)])
        var lost = connected(committed: 1)
        lost.step(.stop(drain: .seconds(5)))
        lost.loseConnection()
        #expect(lost.isFinished)
    }

    @Test("A clean stop is bounded when neither broker nor log answers")
    func boundedStop() {
        var world = connected(committed: 1)
        world.acknowledge()
        world.questions.removeAll()
        world.step(.stop(drain: .zero))
        while !world.isFinished, world.machine.deadline != nil { world.wait() }
        #expect(world.isFinished)
        #expect(world.now <= .seconds(4))
    }

    @Test("A stop without a session ends at once")
    func stopWhileConnecting() {
        var world = World()
        world.step(.start)
        world.step(.stop(drain: .zero))
        #expect(world.isFinished)
    }

    @Test("Gaps in the log do not stop delivery")
    func sparseLog() {
        var world = connected()
        world.committed = [3, 7, 900].map { LoggedReading(seq: $0, device: "d", stream: "s", payload: []) }
        world.step(.headMoved(1000))
        world.settleDown()
        #expect(world.sessions == [[3, 7, 900]])
        #expect(world.machine.deadline == nil)
    }
}
