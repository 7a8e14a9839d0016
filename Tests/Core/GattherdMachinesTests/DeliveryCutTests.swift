import GattherdMachines
import GattherdModel
import Testing

/// Networks that cut each connection after a few messages.
@Suite struct DeliveryCutTests {
    typealias World = DeliveryTestWorld

    @Test(arguments: [1, 2, 10])
    func `delivery continues if a network cuts each connection after a few messages`(count: Int) {
        var world = World.connected(committed: 30)
        for _ in 0..<100 where world.machine.cursor != 30 {
            world.acknowledge(first: count)
            world.reconnect(lastWill: world.session)
        }
        world.runUntilIdle()
        #expect(world.machine.cursor == 30 && world.stored == 30)
    }

    @Test func `readings in batches are excluded from republication as well`() {
        var world = World.connected()
        world.gathering = .milliseconds(100)
        world.commit(30)
        for _ in 0..<3 {
            world.acknowledge(first: 30)
            world.reconnect(lastWill: world.session)
        }
        world.commit(1)
        world.runUntilIdle()
        #expect(world.batches.last == [[31]])
    }

    @Test func `readings behind one that gathers are excluded from republication as well`() {
        var world = World.connected(committed: 1)
        world.passOn()
        world.gathering = .seconds(60)
        world.commit(1, stream: "slow")
        world.passOn()
        world.gathering = nil
        world.commit(30)
        world.answerAll()
        for _ in 0..<4 {
            world.acknowledge(first: 5)
            world.reconnect(lastWill: world.session)
        }
        world.runUntilIdle(limit: .seconds(10))
        #expect(world.sessions.last?.filter { $0 != 2 }.min() ?? 0 > 7)
        world.runUntilIdle()
        #expect(world.stored == 32)
    }

    @Test func `a broker without the last will receives the same readings again, however often it stops`() {
        var world = World.connected(committed: 30)
        for _ in 0..<6 {
            world.acknowledge(first: 10)
            world.reconnect(lastWill: nil)
        }
        world.runUntilIdle()
        #expect(world.sessions.last == Array(1...30))
    }

    @Test func `the last will of an earlier session excludes nothing, as a broker may have restored it`() {
        var world = World.connected(committed: 30)
        var earlier: Int?
        for _ in 0..<6 {
            world.acknowledge(first: 10)
            let lost = world.session
            world.reconnect(lastWill: earlier)
            earlier = lost
        }
        world.runUntilIdle()
        #expect(world.sessions.last == Array(1...30))
    }

    @Test func `a single lost connection republishes acknowledged readings, whatever the broker has kept`() {
        var world = World.connected(committed: 30)
        world.acknowledge(first: 10)
        world.reconnect(lastWill: world.session)
        world.runUntilIdle()
        #expect(world.sessions.last == Array(1...30))
    }

    @Test func `a broker that stops after it has kept readings receives the later ones again`() {
        var world = World.connected(committed: 30)
        for _ in 0..<3 {
            world.acknowledge(first: 10)
            world.reconnect(lastWill: world.session)
        }
        world.acknowledge(first: 10)
        world.reconnect(lastWill: nil)
        world.runUntilIdle()
        #expect(world.sessions.last == Array(11...30))
    }

    @Test func `readings of QoS 0, whose arrival nothing shows, are published again in spite of the last will`() {
        var world = World.connected(committed: 30)
        for _ in 0..<3 {
            world.acknowledge(first: 10, isConfirmed: false)
            world.reconnect(lastWill: world.session)
        }
        world.runUntilIdle()
        #expect(world.sessions.last == Array(1...30))
    }

    @Test(arguments: [0, 5])
    func `a last will that arrives after the first readings excludes none of the next`(acknowledged: Int) {
        var options = DeliveryMachine.Options()
        options.pace = TokenBucket(rate: 300, burst: 5)
        var world = World.connected(committed: 30, options)
        var lost: Int?
        for _ in 0..<3 {
            world.acknowledge(first: 10)
            lost = world.session
            world.reconnect(lastWill: nil)
        }
        world.acknowledge(first: acknowledged)
        for _ in 0..<50 where acknowledged == 0 && world.unacknowledged.isEmpty {
            world.answerAll()
            if world.unacknowledged.isEmpty { world.wait() }
        }
        #expect(world.sessions.last == Array(1...Int64(max(1, acknowledged))))
        #expect(world.unacknowledged.count == (acknowledged == 0 ? 1 : 0))
        if let session = world.session, let lost { world.step(.lastWillFound(session: session, of: lost)) }
        world.runUntilIdle()
        #expect(world.sessions.last == Array(1...30))
    }

    @Test func `a broker that says that it stops receives the same readings again, also after several stops`() {
        var world = World.connected(committed: 30)
        for _ in 0..<6 {
            world.acknowledge(first: 10)
            let stop = BrokerFault(.lost, "server shutting down", wasBrokerDown: true)
            world.reconnect(lastWill: world.session, after: stop)
        }
        world.runUntilIdle()
        #expect(world.sessions.last == Array(1...30))
    }

    @Test func `a broker whose host refused a connection meanwhile receives the same readings again`() {
        var world = World.connected(committed: 30)
        for _ in 0..<6 {
            world.acknowledge(first: 10)
            let refusal = BrokerFault(.unreachable, "connection refused", wasBrokerDown: true)
            world.reconnect(lastWill: world.session, failures: 1, refusal)
        }
        world.runUntilIdle()
        #expect(world.sessions.last == Array(1...30))
    }

    @Test func `a broker whose host refuses a probe after the loss receives the same readings again`() {
        var world = World.connected(committed: 30)
        for _ in 0..<6 {
            world.acknowledge(first: 10)
            world.reconnect(lastWill: world.session, isRefused: true)
        }
        world.runUntilIdle()
        #expect(world.sessions.last == Array(1...30))
    }

    @Test func `a connection is probed only if the last wills suggest that a network has cut it`() {
        var world = World.connected(committed: 30)
        var probes: [Bool] = []
        for index in 0..<5 {
            world.acknowledge(first: 1)
            let lost = world.session
            let stop = BrokerFault(.lost, "server shutting down", wasBrokerDown: index == 3)
            world.loseConnection(stop)
            probes.append(world.questions.contains(.probe))
            world.reconnect(lastWill: lost)
        }
        #expect(probes == [false, false, true, false, false])
    }

    @Test func `a broker without last wills is not probed`() {
        var world = World.connected(committed: 30)
        for _ in 0..<6 {
            world.loseConnection()
            #expect(!world.questions.contains(.probe))
            world.reconnect(lastWill: nil)
        }
    }

    @Test func `the last will counts after failed attempts to connect`() {
        var world = World.connected(committed: 30)
        for _ in 0..<3 {
            world.acknowledge(first: 10)
            world.reconnect(lastWill: world.session, failures: 2)
        }
        world.runUntilIdle()
        #expect(world.sessions.last == Array(11...30))
    }
}

/// Brokers that stop, restore old states, or only lose their connections, at random.
@Suite struct DeliveryCutWalkTests {
    /// A broker that forwards messages a little later; a crash loses the others and restores an old last will.
    private struct Broker {
        private var held: [(seq: Int64, due: Duration)] = []
        private(set) var forwarded: [Int64] = []
        /// The session whose last will the broker retains, and the one in its file.
        private var retained: Int?
        private var saved: Int?
        private var session: Int?

        mutating func receive(from world: inout DeliveryTestWorld, _ count: Int, _ random: inout SplitMix64) {
            for seq in world.unacknowledged.prefix(count) {
                let due = world.now + .milliseconds(Int.random(in: 0...1900, using: &random))
                held.append((seq, max(due, held.last?.due ?? .zero)))
            }
            world.acknowledgeWaiting(count)
        }

        mutating func forward(at now: Duration) {
            while let next = held.first, next.due <= now { forwarded.append(held.removeFirst().seq) }
        }

        /// Sends the retained last will to a new session.
        mutating func greet(_ world: inout DeliveryTestWorld) {
            guard let current = world.session, current != session else { return }
            session = current
            if let retained { world.step(.lastWillFound(session: current, of: retained)) }
            retained = nil
        }

        mutating func lose(_ world: inout DeliveryTestWorld, isSaving: Bool) {
            guard let lost = world.session else { return }
            retained = lost
            if isSaving { saved = lost }
            world.loseConnection()
        }

        mutating func crash(_ world: inout DeliveryTestWorld) {
            guard world.session != nil else { return }
            (held, retained) = ([], saved)
            world.loseConnection()
        }
    }

    @Test(
        arguments: 1...20 as ClosedRange<UInt64>
    )
    func `readings that a broker acknowledged and lost still arrive, in order`(seed: UInt64) {
        var options = DeliveryMachine.Options()
        options.pace = TokenBucket(rate: 300)
        var (random, broker) = (SplitMix64(seed: seed), Broker())
        var world = DeliveryTestWorld(options, seed: seed)
        world.step(.start)
        world.step(.headMoved(0))
        for _ in 0..<1500 {
            act(on: &world, &broker, &random)
            broker.greet(&world)
            broker.forward(at: world.now)
        }
        for _ in 0..<10_000 where world.stored != world.committed.last?.seq ?? 0 {
            world.answerAll()
            broker.greet(&world)
            broker.receive(from: &world, .max, &random)
            world.wait()
        }
        broker.forward(at: world.now + .seconds(2))
        var seen: Set<Int64> = []
        #expect(broker.forwarded.filter { seen.insert($0).inserted } == world.committed.map(\.seq))
    }

    private func act(on world: inout DeliveryTestWorld, _ broker: inout Broker, _ random: inout SplitMix64) {
        switch Int.random(in: 0..<20, using: &random) {
        case 0: broker.crash(&world)
        case 1...3: broker.lose(&world, isSaving: .random(using: &random))
        case 4, 5: world.commit(.random(in: 1...20, using: &random))
        case 6...10: broker.receive(from: &world, .random(in: 1...20, using: &random), &random)
        case 11...14: world.wait()
        case 15: world.now += .milliseconds(.random(in: 1...900, using: &random))
        default: world.answerAll()
        }
    }
}

extension DeliveryTestWorld {
    /// Acknowledges the first messages in flight, at most `count`.
    fileprivate mutating func acknowledgeWaiting(_ count: Int, isConfirmed: Bool = true) {
        let seqs = unacknowledged.prefix(count)
        unacknowledged.removeFirst(seqs.count)
        let outcomes = seqs.map { PublishOutcome(seq: $0, .accepted, isConfirmed: isConfirmed) }
        if let session { step(.answered(session: session, outcomes)) }
    }

    /// Acknowledges the first messages of a session, as soon as they are published.
    fileprivate mutating func acknowledge(first count: Int, isConfirmed: Bool = true) {
        var left = count
        for _ in 0..<50 where left > 0 {
            answerAll()
            guard !unacknowledged.isEmpty else {
                wait()
                continue
            }
            let before = unacknowledged.count
            acknowledgeWaiting(left, isConfirmed: isConfirmed)
            left -= min(left, before)
        }
    }

    /// Loses the connection and connects again, to a broker with the last will of a session.
    fileprivate mutating func reconnect(
        lastWill: Int?,
        after loss: BrokerFault = BrokerFault(.lost, "gone"),
        failures: Int = 0,
        _ failure: BrokerFault = BrokerFault(.unreachable, "gone"),
        isRefused: Bool = false
    ) {
        loseConnection(loss)
        if isRefused, questions.contains(.probe) { step(.brokerWasDown) }
        var left = failures
        for _ in 0..<1000 where session == nil {
            if left > 0, case .connect(let attempt)? = questions.first {
                questions.removeFirst()
                step(.failed(session: attempt, failure))
                left -= 1
            } else if questions.isEmpty {
                wait()
            } else {
                answerOne()
            }
        }
        if let session, let lastWill { step(.lastWillFound(session: session, of: lastWill)) }
    }
}
