import GattherdMachines
import GattherdModel
import Testing

/// Readings that are gathered into one message, in virtual time.
@Suite struct BatchedDeliveryTests {
    /// Returns a world whose broker has acknowledged reading 1, so that it gets more than one message at a time.
    private func proven(_ gathering: Duration = .milliseconds(100)) -> DeliveryTestWorld {
        var world = DeliveryTestWorld.connected(committed: 1)
        world.passOn()
        world.gathering = gathering
        return world
    }

    private func world(_ gathering: Duration = .milliseconds(100)) -> DeliveryTestWorld {
        var world = DeliveryTestWorld.connected()
        world.gathering = gathering
        return world
    }

    @Test func `readings of a stream within the interval are one message`() {
        var world = world()
        world.commit(value: 1)
        world.commit(value: 2, stream: "t")
        world.passOn()
        world.wait(.milliseconds(60))
        world.commit(value: 3)
        world.passOn()
        #expect(world.batches == [[]])
        world.wait(.milliseconds(50))
        #expect(world.batches == [[[1, 3], [2]]])
        world.commit(value: 4)
        world.runUntilIdle()
        #expect(world.batches == [[[1, 3], [2], [4]]])
        #expect(world.stored == 4)
    }

    @Test func `the cursor passes a message when all before it are acknowledged`() {
        var world = world()
        world.commit(value: 1)
        world.commit(value: 2, stream: "t")
        world.commit(value: 3)
        world.answerAll()
        while world.unacknowledged.isEmpty { world.wait() }
        guard let session = world.session else { return }
        world.step(.answered(session: session, [1, 3].map { PublishOutcome(seq: $0, .accepted) }))
        #expect(world.machine.cursor == 1)
        world.step(.answered(session: session, [PublishOutcome(seq: 2, .accepted)]))
        #expect(world.machine.cursor == 3)
    }

    @Test func `a full batch does not wait`() {
        var world = world(.seconds(60))
        world.commit(250, stream: "s")
        world.passOn()
        #expect(world.batches[0].map(\.count) == [100, 100])
        world.runUntilIdle()
        #expect(world.sessions == [Array(1...250)])
    }

    @Test func `very many waiting readings do not wait longer`() {
        var world = world(.seconds(60))
        for stream in 0..<3000 { world.commit(1, stream: "s\(stream)") }
        world.passOn()
        world.wait(.seconds(1))
        #expect(world.sessions[0].count > 900)
        world.runUntilIdle()
        #expect(world.sessions[0] == Array(1...3000))
    }

    @Test func `a stream that gathers for long does not stop the others`() {
        var world = proven(.seconds(60))
        world.commit(1, stream: "slow")
        world.passOn()
        world.gathering = nil
        for _ in 0..<6 {
            world.commit(1000, stream: "fast")
            world.passOn()
            world.wait(.seconds(1))
        }
        #expect(world.sessions[0].count == 6002)
        #expect(world.machine.backlog == 0)
    }

    @Test func `many readings in flight do not make batches small`() {
        var world = proven(.seconds(1))
        world.commit(4096)
        world.answerAll()
        #expect(world.unacknowledged.count == 4000)
        #expect(world.batches[0].dropFirst().allSatisfy { $0.count == 100 })
        world.runUntilIdle()
        #expect(world.sessions[0] == Array(1...4097))
    }

    @Test func `the broker's limit counts messages`() {
        var world = world()
        world.receiveMaximum = 3
        world.loseConnection()
        world.runUntilIdle()
        world.commit(value: 0, stream: "s0")
        world.runUntilIdle()
        for value in 0..<40 as Range<Int64> { world.commit(value: value, stream: "s\(value % 4)") }
        world.answerAll()
        while world.unacknowledged.isEmpty { world.wait() }
        #expect(world.batches.last?.map(\.count) == [1, 10, 10, 10])
        #expect(world.machine.inFlight == 3)
        world.runUntilIdle()
        #expect(world.batches.last?.map(\.count) == [1, 10, 10, 10, 10])
    }

    @Test func `a lost session's batches are published again, in order`() {
        var world = proven()
        world.wait(.seconds(10))
        for value in 0..<10 as Range<Int64> { world.commit(value: value, stream: "s\(value % 2)") }
        world.answerAll()
        while world.unacknowledged.isEmpty { world.wait() }
        world.loseConnection()
        world.runUntilIdle()
        let batches: [[Int64]] = [[2, 4, 6, 8, 10], [3, 5, 7, 9, 11]]
        #expect(world.batches == [[[1]] + batches, batches])
        #expect(world.republished == 10)
        #expect(world.stored == 11)
    }

    @Test func `a stop publishes the gathered readings`() {
        var world = world(.seconds(60))
        world.commit(3, stream: "s")
        world.passOn()
        world.step(.stop(drain: .seconds(5)))
        world.runUntilIdle()
        #expect(world.batches == [[[1, 2, 3]]])
        #expect(world.isFinished)
        #expect(world.stored == 3)
    }

    @Test func `a stream that no longer gathers stays in order`() {
        var world = world(.seconds(60))
        world.commit(2, stream: "s")
        world.passOn()
        world.gathering = nil
        world.commit(2, stream: "s")
        world.passOn()
        #expect(world.batches == [[[1, 2], [3], [4]]])
        world.gathering = .milliseconds(100)
        world.commit(2, stream: "s")
        world.runUntilIdle()
        #expect(world.batches == [[[1, 2], [3], [4], [5, 6]]])
    }

    @Test func `a busy broker gets the batch again`() {
        var world = proven()
        world.commit(3, stream: "s")
        world.commit(1, stream: "t")
        world.answerAll()
        while world.unacknowledged.isEmpty { world.wait() }
        world.acknowledge(.busy("quota"))
        world.runUntilIdle()
        #expect(world.batches == [[[1], [2, 3, 4], [5], [2, 3, 4], [5]]])
        #expect(world.stored == 5)
    }

    @Test(arguments: 1...15 as ClosedRange<UInt64>)
    func `no sequence of faults loses or reorders a reading of a batch`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var world = DeliveryTestWorld(seed: seed)
        world.receiveMaximum = 20
        world.gathering = .milliseconds(Int64(seed) * 50)
        world.step(.start)
        world.step(.headMoved(0))
        for _ in 0..<1000 {
            act(on: &world, &random)
            #expect(world.machine.inFlight <= 20)
            #expect(world.stored <= world.machine.cursor ?? 0)
        }
        world.runUntilIdle()
        #expect(Set(world.sessions.joined()) == Set(world.committed.map(\.seq)))
        #expect(world.stored == world.committed.last?.seq)
        for session in world.sessions {
            for stream in 0..<5 {
                var seen: Set<Int64> = []
                let firsts = session.filter { world.committed[Int($0) - 1].stream.stream == "s\(stream)" }
                    .filter { seen.insert($0).inserted }
                #expect(firsts == firsts.sorted())
            }
        }
    }

    private func act(on world: inout DeliveryTestWorld, _ random: inout SplitMix64) {
        switch Int.random(in: 0..<20, using: &random) {
        case 0: world.loseConnection()
        case 1...6:
            let stream = Int.random(in: 0..<5, using: &random)
            if stream == 0 { world.gathering = world.gathering == nil ? .milliseconds(200) : nil }
            world.commit(.random(in: 1...60, using: &random), stream: "s\(stream)")
        case 7...10: world.acknowledge(Int.random(in: 0..<10, using: &random) > 0 ? .accepted : .busy("busy"))
        case 11...14: world.wait()
        case 15: world.now += .milliseconds(.random(in: 1...500, using: &random))
        default: if !world.questions.isEmpty { world.answerOne() }
        }
    }
}
