import GattherdMachines
import GattherdModel
import Testing

@Suite struct DeliveryMachineTests {
    typealias World = DeliveryTestWorld

    @Test func `a start requests the cursor and a session at once`() {
        var world = World()
        world.step(.start)
        #expect(world.questions == [.connect(session: 1), .loadCursor])
        #expect(world.machine.state == .connecting)
    }

    @Test func `readings are published in journal order, and the cursor follows their PUBACKs`() {
        var world = World.connected(committed: 300)
        world.runUntilIdle()
        #expect(world.sessions == [Array(1...300)])
        #expect(world.machine.cursor == 300 && world.stored == 300 && world.machine.backlog == 0)
    }

    @Test func `the cursor passes unwanted readings in order, and they do not count as backlog`() throws {
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
        world.runUntilIdle()
        #expect(world.stored == 6)
    }

    @Test func `the cursor waits for the oldest unacknowledged reading`() throws {
        var world = World.connected(committed: 1)
        world.acknowledge()
        world.commit(4)
        world.answerAll()
        let session = try #require(world.session)
        for (seq, cursor) in [(4, 1), (3, 1), (2, 4), (5, 5)] as [(Int64, Int64)] {
            world.step(.answered(session: session, [PublishOutcome(seq: seq, .accepted)]))
            #expect(world.machine.cursor == cursor)
        }
    }

    @Test func `while readings come all the time, only those after the last acknowledged one wait`() throws {
        var world = World.connected()
        for second in 1...5 as ClosedRange<Int64> {
            world.now = .seconds(second)
            world.commit(1)
            world.answerAll()
            let session = try #require(world.session)
            world.step(.answered(session: session, [PublishOutcome(seq: second - 1, .accepted)]))
            #expect(world.machine.backlog == 1)
        }
        #expect(world.machine.completeUntil == .seconds(4))
    }

    @Test(arguments: [(65_535, 100), (20, 20), (1, 1), (0, 1)])
    func `the number of readings in flight is limited by the window and the broker`(
        receiveMaximum: Int,
        expected: Int
    ) throws {
        var world = World()
        world.receiveMaximum = receiveMaximum
        world.step(.start)
        world.step(.headMoved(0))
        world.answerAll()
        world.commit(500)
        world.answerAll()
        world.now += .seconds(1)
        world.acknowledge()
        #expect(world.machine.inFlight == expected)
    }

    @Test func `a full window is refilled by halves, but the last readings go at once`() throws {
        var world = World()
        world.receiveMaximum = 20
        world.step(.start)
        world.step(.headMoved(0))
        world.answerAll()
        world.commit(33)
        world.answerAll()
        world.acknowledge()
        let session = try #require(world.session)
        let inFlight = (2...33).map { seq in
            world.step(.answered(session: session, [PublishOutcome(seq: Int64(seq), .accepted)]))
            return world.machine.inFlight
        }
        #expect(inFlight.prefix(12) == [19, 18, 17, 16, 15, 14, 13, 12, 11, 20, 19, 20])
        #expect(inFlight.dropFirst(12).elementsEqual((0..<20).reversed()))
    }

    @Test func `no reading is published before the retained state`() {
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

    @Test func `lost connections are retried sooner than refused credentials`() {
        for (kind, range) in [(BrokerFault.Kind.unreachable, 0.5...1.0), (.credentials, 10.0...20.0)] {
            var world = World()
            world.step(.start)
            world.step(.failed(session: 1, BrokerFault(kind, "no")))
            let delay = (world.machine.deadline ?? .zero) / .seconds(1)
            // The cursor's request is pending; the only deadline is the retry.
            #expect(range.contains(delay), "\(kind)")
            #expect(world.machine.state == .backingOff(BrokerFault(kind, "no")))
        }
    }

    @Test func `delays grow while sessions are short and reset after a long one`() {
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

    @Test func `a broker that never answers is abandoned after the connect timeout`() {
        var world = World()
        world.step(.start)
        world.now = .seconds(15)
        world.step(.tick)
        #expect(world.machine.state == .backingOff(BrokerFault(.unreachable, "the broker did not answer in time")))
    }

    @Test func `a busy broker gets the same reading again after a pause, in order`() {
        var world = World.connected(committed: 1)
        world.acknowledge(.busy("quota exceeded"))
        #expect(world.machine.cursor == 0)
        #expect(world.unacknowledged.isEmpty)
        world.commit(2)
        world.runUntilIdle()
        #expect(world.sessions == [[1, 1, 2, 3]])
        #expect(world.remarks.contains(.busy("quota exceeded")))
    }

    @Test func `the newest reading that a busy broker accepted before an older one of its stream follows it again`() {
        var world = World.connected(committed: 1)
        world.passOn()
        for stream in ["s", "s", "t", "s"] { world.commit(1, stream: stream) }
        world.answerAll()
        #expect(world.unacknowledged == [2, 3, 4, 5])
        world.unacknowledged = []
        let outcomes = (2...5).map { PublishOutcome(seq: $0, $0 == 2 ? .busy("quota") : .accepted) }
        world.step(.answered(session: 1, outcomes))
        world.runUntilIdle()
        #expect(world.sessions == [[1, 2, 3, 4, 5, 2, 5]])
        #expect(world.machine.cursor == 5)
    }

    @Test func `an answer that comes when the older reading was sent again already makes its reading follow too`() {
        var world = World.connected(committed: 1)
        world.passOn()
        world.commit(2)
        world.answerAll()
        world.step(.answered(session: 1, [PublishOutcome(seq: 2, .busy("quota"))]))
        for _ in 0..<10 where world.sessions[0].count < 4 { world.wait() }
        #expect(world.sessions == [[1, 2, 3, 2]])
        world.unacknowledged = []
        world.step(.answered(session: 1, [3, 2].map { PublishOutcome(seq: $0, .accepted) }))
        world.runUntilIdle()
        #expect(world.sessions == [[1, 2, 3, 2, 3]])
    }

    @Test func `a stream whose topic is busy does not block other streams`() {
        var world = World.connected()
        world.commit(1, stream: "busy")
        world.commit(5, stream: "free")
        world.answerAll()
        for _ in 0..<8 {
            let outcomes = world.unacknowledged.map { PublishOutcome(seq: $0, $0 == 1 ? .busy("quota") : .accepted) }
            world.unacknowledged = []
            world.step(.answered(session: 1, outcomes))
            world.answerAll()
            if world.unacknowledged.isEmpty { world.wait() }
        }
        #expect(Set(world.sessions[0]) == Set(1...6))
        #expect(world.machine.cursor == 0)
        for _ in 0..<10 where world.unacknowledged.isEmpty { world.wait() }
        #expect(world.sessions[0].filter { $0 > 1 } == [2, 3, 4, 5, 6])
    }

    @Test func `a permanently refused reading is reported and skipped`() {
        var world = World.connected(committed: 2)
        world.acknowledge(.refused("not authorised"))
        world.runUntilIdle()
        #expect(world.machine.cursor == 2)
        #expect(world.remarks.contains(.skipped(world.committed[0], "not authorised")))
    }

    @Test func `a broker that refuses everything loses no reading, and is tried again after growing pauses`() {
        var world = World.connected(committed: 500)
        let end = world.now + .seconds(3600)
        var tries = 0
        while world.now < end {
            tries += world.unacknowledged.count
            world.acknowledge(.unproven("not authorized"))
            world.answerAll()
            if world.unacknowledged.isEmpty { world.wait() }
        }
        #expect(world.machine.cursor == 0)
        #expect(world.remarks.contains(.acceptsNothing("not authorized")))
        #expect(tries < 4000)
        world.runUntilIdle()
        #expect(world.machine.cursor == 500)
        #expect(!world.remarks.contains { if case .skipped = $0 { true } else { false } })
    }

    @Test func `a broker that refuses each reading singly loses 100 readings in all sessions together`() {
        var world = World.connected(committed: 5000)
        let end = world.now + .seconds(3600)
        while world.now < end {
            world.acknowledge(.refused("packet too large"))
            world.answerAll()
            if world.unacknowledged.isEmpty { world.wait() }
        }
        #expect(world.machine.cursor == 100)
        #expect(world.sessions.count > 10)
        #expect(world.remarks.contains(.acceptsNothing("packet too large")))
        world.runUntilIdle()
        #expect(world.machine.cursor == 5000)
        #expect(world.sessions.last?.first == 101)
    }

    @Test func `refused readings of one stream are skipped as long as the broker accepts another one`() {
        var world = World.connected()
        world.commit(400, stream: "large")
        world.commit(400, stream: "small")
        for _ in 0..<2000 where world.machine.cursor != 800 {
            world.answerAll()
            let outcomes = world.unacknowledged.map {
                PublishOutcome(seq: $0, $0 > 400 ? .accepted : .refused("packet too large"))
            }
            world.unacknowledged = []
            world.step(.answered(session: 1, outcomes))
            world.answerAll()
            if world.unacknowledged.isEmpty { world.wait() }
        }
        #expect(world.machine.cursor == 800)
        #expect(world.sessions.count == 1)
    }

    @Test func `a refused reading waits for proof while other streams continue`() {
        var world = World.connected()
        world.commit(1, stream: "denied")
        world.commit(5, stream: "free")
        world.answerAll()
        for _ in 0..<8 {
            let outcomes = world.unacknowledged.map { PublishOutcome(seq: $0, $0 == 1 ? .unproven("no") : .accepted) }
            world.unacknowledged = []
            world.step(.answered(session: 1, outcomes))
            world.answerAll()
            if world.unacknowledged.isEmpty { world.wait() }
        }
        #expect(Set(world.sessions[0]) == Set(1...6))
        #expect(world.machine.cursor == 0)
        world.step(.answered(session: 1, world.unacknowledged.map { PublishOutcome(seq: $0, .setAside("no")) }))
        world.unacknowledged = []
        world.runUntilIdle()
        #expect(world.machine.cursor == 6)
        #expect(world.sessions.count == 1)
    }

    @Test(arguments: [1000, 5000])
    func `a backlog is published no faster than the rate limit`(count: Int) {
        var world = World()
        world.step(.start)
        world.questions.swapAt(0, 1)
        world.commit(count)
        let began = world.now
        world.runUntilIdle()
        let seconds = (world.now - began) / .seconds(1)
        #expect(world.sessions == [Array(1...Int64(count))])
        #expect(seconds >= Double(count - 100) / 4000)
    }

    @Test func `the cursor is written at most four times a second, and once more at the end`() {
        var world = World.connected()
        for _ in 0..<200 {
            world.commit(1)
            world.answerAll()
            world.acknowledge()
            world.answerAll()
            world.now += .milliseconds(50)
            world.step(.tick)
        }
        #expect((36...41).contains(world.saves))
        world.runUntilIdle()
        #expect(world.stored == 200)
    }

    @Test func `a failing journal is asked again after a pause`() {
        var world = World()
        world.step(.start)
        world.questions.removeLast()
        world.step(.journalFailed(.load))
        world.answerAll()
        #expect(world.questions.isEmpty)
        world.wait()
        #expect(world.questions == [.loadCursor])
        world.answerAll()
        world.commit(1)
        world.questions.removeAll()
        world.step(.journalFailed(.fetch))
        world.wait()
        #expect(world.questions == [.fetch(after: 0, limit: 256)])
        world.answerAll()
        world.acknowledge()
        world.wait()
        #expect(world.questions == [.save(1)])
        world.questions.removeAll()
        world.step(.journalFailed(.save))
        world.wait()
        #expect(world.questions == [.save(1)])
    }

    @Test func `gaps in the journal do not stop delivery`() {
        var world = World.connected()
        world.committed = [3, 7, 900].map { .test(seq: $0) }
        world.step(.headMoved(1000))
        world.runUntilIdle()
        #expect(world.sessions == [[3, 7, 900]])
        #expect(world.machine.deadline == nil)
    }
}
