import GattherdMachines
import GattherdModel
import Testing

/// Readings that the shortest interval delays, in virtual time.
@Suite struct DelayedDeliveryTests {
    private func world(_ interval: Duration = .seconds(10)) -> DeliveryTestWorld {
        var world = DeliveryTestWorld.connected()
        var policy = DeliveryPolicy()
        policy.minimumInterval = interval
        world.policy = policy
        return world
    }

    @Test func `the last reading of an interval is published at its end`() {
        var world = world()
        for value in 1...3 as ClosedRange<Int64> {
            world.commit(value: value)
            world.passOn()
            world.wait(.seconds(1))
        }
        #expect(world.sessions == [[1]])
        world.wait(.milliseconds(6900))
        #expect(world.sessions == [[1]])
        world.wait(.milliseconds(200))
        #expect(world.sessions == [[1, 3]])
        world.runUntilIdle()
        #expect(world.sessions == [[1, 3]])
    }

    @Test func `a reading of another stream does not wait for a delayed one`() {
        var world = world()
        world.commit(value: 1)
        world.commit(value: 2)
        world.commit(value: 3, stream: "t")
        world.passOn()
        #expect(world.sessions == [[1, 3]])
        #expect(world.machine.cursor == 3)
        world.runUntilIdle()
        #expect(world.sessions == [[1, 3, 2]])
    }

    @Test func `the written cursor stays before a delayed reading, and another run publishes it`() {
        var world = world()
        world.commit(value: 1)
        world.commit(value: 2)
        world.commit(value: 3, stream: "t")
        world.passOn()
        world.wait(.seconds(5))
        #expect(world.stored == 1)
        world.restart()
        world.runUntilIdle()
        #expect(world.sessions == [[1, 3], [2, 3]])
        #expect(world.stored == 3)
    }

    /// Commits a reading that is delayed, and 400 readings of other streams.
    private func commitManyOthers(_ world: inout DeliveryTestWorld) {
        world.commit(value: 1)
        world.commit(value: 2)
        for stream in 0..<400 { world.commit(value: 1, stream: "s\(stream)") }
        world.passOn()
    }

    @Test func `another run publishes a delayed reading also if many others follow`() {
        var world = world(.seconds(60))
        commitManyOthers(&world)
        world.wait(.seconds(55))
        #expect(world.stored == 1)
        world.restart()
        world.runUntilIdle()
        #expect(world.sessions.last?.contains(2) == true)
        #expect(world.stored == 402)
    }

    @Test func `after a minute a kill repeats no more readings than without delays`() {
        var world = world(.seconds(3600))
        commitManyOthers(&world)
        world.wait(.seconds(61))
        world.commit(value: 1, stream: "another")
        world.passOn()
        world.wait(.seconds(1))
        #expect(world.stored == 403, "250 others are enough")
        world.wait(.seconds(3600))
        #expect(world.sessions[0].last == 2)
    }

    @Test func `a delayed reading survives a lost session`() {
        var world = world()
        world.commit(value: 1)
        world.commit(value: 2)
        world.passOn()
        world.wait(.seconds(3))
        world.loseConnection()
        world.runUntilIdle()
        #expect(world.sessions.map { $0.suffix(1) } == [[1], [2]])
    }

    @Test func `a delayed reading without an acknowledgement is published again`() {
        var world = world()
        world.commit(value: 1)
        world.commit(value: 2)
        world.passOn()
        world.wait()
        while world.sessions[0].count < 2 {
            world.wait()
            world.answerAll()
        }
        #expect(world.stored == 1, "not acknowledged")
        world.loseConnection()
        world.runUntilIdle()
        #expect(world.sessions.last?.last == 2)
        #expect(world.stored == 2)
    }

    @Test func `a delayed reading is published before newer ones of its stream`() {
        var world = world(.seconds(1))
        world.commit(value: 1)
        world.commit(value: 2)
        world.passOn()
        world.loseConnection()
        // The interval ends without a session, and the next one begins.
        for _ in 0..<3 { world.wait() }
        world.now += .seconds(2)
        world.commit(value: 3)
        world.runUntilIdle()
        var seen: Set<Int64> = []
        let firsts = world.sessions.joined().filter { seen.insert($0).inserted }
        #expect(firsts == firsts.sorted())
        #expect(firsts.last == 3)
    }

    @Test func `of a long backlog only the first and the last reading within an interval are published`() {
        var world = world(.seconds(3600))
        world.loseConnection()
        for value in 1...700 as ClosedRange<Int64> { world.commit(value: value) }
        world.now += .seconds(7200)
        world.runUntilIdle()
        #expect(world.sessions.joined().sorted() == [1, 700])
        #expect(world.stored == 700)
    }

    @Test func `a removed device has no delayed readings`() {
        var world = world()
        world.commit(value: 1)
        world.commit(value: 2)
        world.passOn()
        world.filter.forget("d")
        world.step(.dismissed(device: "d"))
        world.runUntilIdle()
        #expect(world.sessions == [[1]])
        #expect(world.stored == 2)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `after any faults the last value of each stream is the last published`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var world = DeliveryTestWorld(seed: seed)
        var policy = DeliveryPolicy()
        policy.minimumInterval = .seconds(1)
        policy.isOnChange = seed % 2 == 0
        world.policy = policy
        if seed > 10 { world.gathering = .milliseconds(300) }
        world.step(.start)
        world.step(.headMoved(0))
        for _ in 0..<1000 {
            act(on: &world, &random)
            let cursor = world.machine.cursor ?? 0
            #expect(world.stored <= cursor)
        }
        world.runUntilIdle()
        #expect(world.machine.cursor == world.committed.last?.seq)
        #expect(world.stored == world.committed.last?.seq)
        check(world, policy)
    }

    private func act(on world: inout DeliveryTestWorld, _ random: inout SplitMix64) {
        switch Int.random(in: 0..<20, using: &random) {
        case 0: world.loseConnection()
        case 1...6:
            world.commit(value: .random(in: 1...3, using: &random), stream: "s\(Int.random(in: 0..<4, using: &random))")
        case 7...10: world.acknowledge(Int.random(in: 0..<10, using: &random) > 0 ? .accepted : .busy("busy"))
        case 11...14: world.wait()
        case 15: world.now += .milliseconds(.random(in: 1...500, using: &random))
        default: if !world.questions.isEmpty { world.answerOne() }
        }
    }

    private func check(_ world: DeliveryTestWorld, _ policy: DeliveryPolicy) {
        let readings = Dictionary(uniqueKeysWithValues: world.committed.map { ($0.seq, $0) })
        for stream in 0..<4 {
            let all = world.committed.filter { $0.stream.stream == "s\(stream)" }
            let published = world.sessions.joined().compactMap { readings[$0] }
                .filter { $0.stream.stream == "s\(stream)" }
            #expect(published.last?.samples.first == all.last?.samples.first)
            for session in world.sessions {
                var seen: Set<Int64> = []
                let firsts = session.filter { readings[$0]?.stream.stream == "s\(stream)" }
                    .filter { seen.insert($0).inserted }
                #expect(firsts == firsts.sorted(), "the readings of a topic are in order")
            }
        }
    }
}
